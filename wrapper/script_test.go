package wrapper

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

func scripts(t *testing.T) []string {
	t.Helper()
	files, err := filepath.Glob("*.sh")
	if err != nil || len(files) == 0 {
		t.Fatalf("no scripts: %v", err)
	}
	return files
}

func TestScriptsAreShort(t *testing.T) {
	for _, file := range scripts(t) {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if n := strings.Count(string(data), "\n"); n > 150 {
			t.Errorf("%s has %d lines", file, n)
		}
	}
}

func TestScriptsPassShellcheck(t *testing.T) {
	path, err := exec.LookPath("shellcheck")
	if err != nil {
		t.Fatal("shellcheck is missing: apt-get install shellcheck")
	}
	if out, err := exec.Command(path, append([]string{"-s", "sh"}, scripts(t)...)...).CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

// TestScriptsParse checks what is really sent, comments and indentation gone, in every
// shell.
func TestScriptsParse(t *testing.T) {
	run := Command{ID: fid, Argv: []string{"true"}}.ExecArgv()
	stop := StopArgv(fid, "KILL")
	for _, sh := range shells {
		path, err := exec.LookPath(sh.file)
		if err != nil {
			t.Fatalf("%s is missing: apt-get install %s", sh.name, sh.pkg)
		}
		for _, script := range []string{run[2], stop[2], compact(childScript)} {
			cmd := exec.Command(path, "-n", "-c", script)
			if sh.name == "ash" {
				cmd = exec.Command(path, "sh", "-n", "-c", script)
			}
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Errorf("%s: %v %s", sh.name, err, out)
			}
		}
	}
	for _, script := range []string{run[2], stop[2]} {
		if len(script) > 8<<10 {
			t.Errorf("a script of %d bytes is read anew for each command", len(script))
		}
	}
}

// TestEXW19_NamesAreOurs: a shell variable of the name of one in the environment would
// change it for the command, so all of ours begin alike.
func TestEXW19_NamesAreOurs(t *testing.T) {
	assigned := regexp.MustCompile(`(?m)(?:^|[\s;(])([A-Za-z_][A-Za-z0-9_]*)=`)
	read := regexp.MustCompile(`\bread -r (?:-t "?\$?[0-9.]+"? )?((?:[a-z_]+ ?)+)`)
	known := map[string]bool{"PATH": true, "IFS": true, "found": true, "status": true, "held": true, "unreadable": true, "marker": true, "failed": true}
	for _, file := range scripts(t) {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		text := compact(string(data))
		for _, m := range assigned.FindAllStringSubmatch(text, -1) {
			if !strings.HasPrefix(m[1], "tai_") && !known[m[1]] {
				t.Errorf("%s sets %s", file, m[1])
			}
		}
		for _, m := range read.FindAllStringSubmatch(text, -1) {
			for _, name := range strings.Fields(m[1]) {
				if !strings.HasPrefix(name, "tai_") {
					t.Errorf("%s reads %s", file, name)
				}
			}
		}
	}
}

// TestD07_NewID: 32 hex characters, never the same.
func TestD07_NewID(t *testing.T) {
	seen := map[string]bool{}
	for range 1000 {
		id := testID(t)
		if !regexp.MustCompile(`^[0-9a-f]{32}$`).MatchString(id) || seen[id] {
			t.Fatalf("id %q", id)
		}
		seen[id] = true
	}
}

// TestEXW17_IDIsNoScript: an id that is none stays text.
func TestEXW17_IDIsNoScript(t *testing.T) {
	for _, argv := range [][]string{
		{"sh", "-c", "tai_id=" + quote("'; exit 9; '") + "\nexit 3"},
	} {
		if err := exec.Command(argv[0], argv[1:]...).Run(); exitStatus(err) != 3 {
			t.Errorf("%q: %v", argv, err)
		}
	}
	if got := (Command{ID: "$(x)'", Argv: []string{"a"}}).ExecArgv()[2]; !strings.HasPrefix(got, `tai_id='$(x)'\'''`+"\n") {
		t.Errorf("script begins %.40q", got)
	}
}
