package executor_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"caisson/executor"
)

// scratch is a folder for the length of this run.
var scratch = sync.OnceValues(func() (string, error) { return os.MkdirTemp("", "caisson-executor-test-") })

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, goleak.Cleanup(func(code int) {
		if dir, err := scratch(); err == nil {
			_ = os.RemoveAll(dir)
		}
		os.Exit(code)
	}))
}

// workerBinary builds the worker once for all tests of this run.
var workerBinary = sync.OnceValues(func() (string, error) {
	dir, err := scratch()
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, "caisson-worker")
	build := exec.Command("go", "build", "-o", path, "caisson/executor/worker/caisson-worker")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	out, err := build.CombinedOutput()
	if err != nil {
		return "", &exec.Error{Name: string(out), Err: err}
	}
	return path, nil
})

// localRig is a toolbox whose tool t runs a shell script on this host.
func localRig(t *testing.T, script, rule string) *rig {
	t.Helper()
	path, err := workerBinary()
	if err != nil {
		t.Fatal(err)
	}
	manifest := "tools:\n  - name: t\n    description: x\n    input_schema: {type: object}\n    command: [sh, -c, " + quote(script) + "]\nexecution_policy: {rules: {t: " + rule + "}}\n"
	return newRig(t, manifest, func(o *executor.ToolboxOptions) { o.Local = []string{path} })
}

func quote(text string) string { return string(mustJSON(text)) }

func TestALocalCallIsAProcessWithNothingOfTheServers(t *testing.T) {
	t.Setenv("SERVER_SECRET", canary)
	r := localRig(t, `env | sort; echo "dir=$(pwd)"; cat; echo; for f in v t n c; do echo "limit $f=$(ulimit -$f)"; done; ps -o args= -p $PPID 2>/dev/null`, "{name: local, remote_timeout_seconds: 50, options: {env: {GIVEN: value}}}")
	result := r.call("t", `{"text":"argument-`+canary+`"}`)
	if !result.Success || meta(result, "executor") != "local" || meta(result, "mode") != "process" {
		t.Fatalf("%+v", result)
	}
	text := strings.ReplaceAll(strings.Trim(string(result.Result), `"`), `\n`, "\n")
	lines := strings.Split(text, "\n")
	var names []string
	dir := ""
	for _, line := range lines {
		name, value, _ := strings.Cut(line, "=")
		if name == "dir" {
			dir = value
		}
		if dir == "" {
			names = append(names, name)
		}
	}
	names = slices.DeleteFunc(names, func(name string) bool { return slices.Contains([]string{"OLDPWD", "PWD", "SHLVL", "_"}, name) }) // the shell's own
	if want := []string{"GIVEN", "HOME", "LANG", "PATH", "TMPDIR"}; !slices.Equal(names, want) {
		t.Errorf("the environment is %q, want %q", names, want)
	}
	for _, want := range []string{"HOME=" + dir, "argument-" + canary, "limit v=4194304", "limit t=51", "limit n=1024", "limit c=0"} {
		if !strings.Contains(strings.ReplaceAll(text, `\"`, `"`), want) {
			t.Errorf("no %s in\n%s", want, text)
		}
	}
	if _, err := os.Stat(dir); dir == "" || !os.IsNotExist(err) {
		t.Errorf("its folder %q is left: %v", dir, err)
	}
	if len(r.fake.Sessions()) != 0 {
		t.Error("the engine was asked")
	}
}

func TestALocalCallsWholeGroupEnds(t *testing.T) {
	for name, c := range map[string]struct{ script, rule, want string }{
		"timeout":  {"sleep 317 & sleep 317", "{name: local, remote_timeout_seconds: 1}", "did not finish within 1 s"},
		"leftover": {"sleep 317 >/dev/null 2>&1 & echo done", "{name: local}", ""},
	} {
		r := localRig(t, c.script, c.rule)
		result := r.call("t", "{}")
		if result.Success != (c.want == "") || !strings.Contains(result.Error, c.want) {
			t.Errorf("%s: %+v", name, result)
		}
		r.eventually("its processes are gone", func() bool { return len(running(t, "sleep\x00317\x00")) == 0 })
	}
}

func TestALocalCallIsCancelled(t *testing.T) {
	r := localRig(t, "sleep 319", "{name: local}")
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go func() {
		for ctx.Err() == nil && len(running(t, "sleep\x00319\x00")) == 0 {
			time.Sleep(5 * time.Millisecond)
		}
		cancel()
	}()
	result, err := r.Call(ctx, caller("alice"), "t", nil, nil)
	if err != nil || !strings.Contains(result.Error, "was cancelled") {
		t.Errorf("%+v %v", result, err)
	}
	r.eventually("its processes are gone", func() bool { return len(running(t, "sleep\x00319\x00")) == 0 })
}

func TestD09_WithoutTheWorkerThereIsNoLocalExecutor(t *testing.T) {
	r := newRig(t, rule("local"))
	if e := r.refusal(caller("alice"), "t", "{}"); e.Kind.String() != "tool unavailable" || !strings.Contains(e.Text, "local is not available") {
		t.Error(e)
	}
}

// running lists the processes of this host with that command line.
func running(t *testing.T, commandLine string) []string {
	files, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Error(err)
	}
	return slices.DeleteFunc(files, func(file string) bool {
		text, err := os.ReadFile(file)
		return err != nil || string(text) != commandLine
	})
}
