package wrapper

import (
	"bytes"
	"crypto/rand"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"
)

// TestEXW17_ArgvIsLiteral sends what a shell could take for something else.
func TestEXW17_ArgvIsLiteral(t *testing.T) {
	args := []string{
		"", " ", "a b", "'", `"`, `\`, "a\nb", "\n", "$HOME", "${x}", "$(id)", "`id`", "*", "?", "[a]", "~", "!x",
		"-n", "-", "--", "-e", "#c", ";", "&", "|", ">x", "{a,b}", "a=b", "\xff\xfe\x80", "\x01\x7f", "é",
		strings.Repeat("x", 100<<10), "",
	}
	want := strings.Join(args, "\x00") + "\x00"
	inShells(t, func(t *testing.T, b *box) {
		w := b.run(append([]string{"/usr/bin/printf", "%s\\0"}, args...)...)
		if w.code != 0 || w.stdout() != want {
			t.Errorf("got %d %q", w.code, w.stderr())
			for i, got := range strings.Split(w.stdout(), "\x00") {
				if i < len(args) && got != args[i] {
					t.Errorf("argument %d: got %.80q, want %.80q", i, got, args[i])
				}
			}
		}
	})
}

// TestEXW17_CommandIsNoBuiltin runs names that mean something to a shell itself.
func TestEXW17_CommandIsNoBuiltin(t *testing.T) {
	inShells(t, func(t *testing.T, b *box) {
		for _, name := range []string{"exit", ":", "a=b", "tai_publish", "", "cd", "read"} {
			if w := b.run(name, "3"); w.code != 127 && w.code != 126 {
				t.Errorf("%q: got %d %q %q", name, w.code, w.stdout(), w.stderr())
			}
		}
		// A name with a leading dash is looked up like any other.
		write(t, b.file("/tmp/-x"), "#!/bin/sh\necho ran \"$1\"\n", 0o755)
		c := Command{Argv: []string{"-x", "-y"}, Path: "/tmp:/usr/bin:/bin"}
		w := b.start(c)
		_ = w.stdin.Close()
		if w.wait(); w.code != 0 || w.stdout() != "ran -y\n" {
			t.Errorf("-x: got %d %q %q", w.code, w.stdout(), w.stderr())
		}
	})
}

func TestEXW21_NoSuchCommandAndNotExecutable(t *testing.T) {
	inShells(t, func(t *testing.T, b *box) {
		for argv, code := range map[string]int{"nosuch": 127, "/no/such": 127, "/etc/passwd": 126, "/tmp": 126} {
			w := b.run(argv)
			if w.code != code || !strings.Contains(w.stderr(), argv) {
				t.Errorf("%s: got %d %q, want %d", argv, w.code, w.stderr(), code)
			}
			if refusal(w) != "" {
				t.Errorf("%s: taken for the wrapper's own failure: %v", argv, w.all)
			}
			if !w.filter.Complete() {
				t.Errorf("%s: output not complete", argv)
			}
		}
	})
}

func TestEXW18_StdinReachesTheCommand(t *testing.T) {
	data := make([]byte, 10<<20)
	if _, err := rand.Read(data); err != nil {
		t.Fatal(err)
	}
	inShells(t, func(t *testing.T, b *box) {
		w := b.start(Command{Argv: []string{"cat"}})
		if _, err := w.stdin.Write(data); err != nil {
			t.Error(err)
		}
		_ = w.stdin.Close()
		if w.wait(); w.code != 0 || !bytes.Equal(w.out[Stdout].Bytes(), data) {
			t.Errorf("got %d, %d bytes, %q", w.code, w.out[Stdout].Len(), w.stderr())
		}
	})
}

// TestD27_LingersForTheHalfClose: without a stdin the command sees its end at once, and
// the wrapper ends when ours does, its files gone and both markers given by then.
func TestD27_LingersForTheHalfClose(t *testing.T) {
	inShells(t, func(t *testing.T, b *box) {
		w := b.start(Command{Argv: []string{"sh", "-c", "cat; echo done; exit 5"}, Linger: true})
		if w.wait(); w.code != 5 || w.stdout() != "done\n" || !w.filter.Complete() {
			t.Errorf("got %d %q %q", w.code, w.stdout(), w.stderr())
		}
		if w.took > 2*time.Second {
			t.Errorf("took %v", w.took)
		}
		if left := b.tmp(); len(left) != 0 {
			t.Errorf("left in /tmp: %v", left)
		}
	})
}

func TestD27_LingerIsBounded(t *testing.T) {
	all := map[*box]*wrapped{}
	for _, sh := range shells {
		b := newBox(t, sh.name)
		all[b] = b.start(Command{Argv: []string{"sh", "-c", "exit 6"}, Linger: true}, func(c *exec.Cmd) {
			c.Env = append(c.Env, neverCloses)
		})
	}
	for b, w := range all {
		w.wait()
		if w.code != 6 || !w.filter.Complete() || w.took < 9*time.Second || w.took > 13*time.Second {
			t.Errorf("%s: ended with %d after %v", b.shell, w.code, w.took)
		}
		await(t, "its processes are gone", func() bool { return !strings.Contains(b.ps(), "sleep") })
	}
}

// TestEXW19_NothingLeaks compares what a command sees under the wrapper and without it.
func TestEXW19_NothingLeaks(t *testing.T) {
	const look = `cd / && ls -l /proc/self/fd | grep -c -- '->'; grep -E '^Sig(Blk|Ign)|^Umask' /proc/self/status; pwd; tr '\0' '\n' </proc/$$/environ | sort`
	inShells(t, func(t *testing.T, b *box) {
		env := []string{
			"PATH=/usr/bin:/bin:/opt/x", "HOME=/tmp", "LANG=C", "EMPTY=", "MULTI=a\nb", "QUOTE='\"$x", "LATIN=\xe9",
		}
		bare := b.command("/usr/bin/env", "/usr/bin/bash", "-c", look)
		bare.Env = env
		want, err := bare.Output()
		if err != nil {
			t.Fatal(err)
		}
		w := b.start(Command{Argv: []string{"/usr/bin/env", "/usr/bin/bash", "-c", look}}, func(c *exec.Cmd) { c.Env = env })
		_ = w.stdin.Close()
		w.wait()
		got := w.stdout()
		if b.shell == "bash" || b.shell == "mksh" {
			// These cannot be kept from it, which docs/exec.md says.
			got = without(got, "SHLVL=", "_=")
			want = []byte(without(string(want), "SHLVL=", "_="))
		}
		if got != string(want) {
			t.Errorf("got\n%s\nwant\n%s\n%s", got, want, w.stderr())
		}
	})
}

func without(text string, prefixes ...string) string {
	var kept []string
lines:
	for line := range strings.Lines(text) {
		for _, p := range prefixes {
			if strings.HasPrefix(line, p) {
				continue lines
			}
		}
		kept = append(kept, line)
	}
	return strings.Join(kept, "")
}

func TestD19_PathIsTheCommandsOwn(t *testing.T) {
	inShells(t, func(t *testing.T, b *box) {
		// A session may plant programs; none of them runs in place of the wrapper's.
		for _, name := range []string{"mkfifo", "setsid", "mv", "rm", "sleep", "readlink", "ls", "sh", "tool"} {
			write(t, b.file("/tmp/"+name), "#!/bin/sh\n: >/tmp/planted-ran\nexit 9\n", 0o755)
		}
		w := b.start(Command{Argv: []string{"/usr/bin/printenv", "PATH"}, Path: "/tmp:/x"})
		_ = w.stdin.Close()
		if w.wait(); w.code != 0 || w.stdout() != "/tmp:/x\n" {
			t.Errorf("got %d %q %q", w.code, w.stdout(), w.stderr())
		}
		w = b.start(Command{Argv: []string{"tool"}}, func(c *exec.Cmd) { c.Env = []string{"PATH=/tmp"} })
		_ = w.stdin.Close()
		if w.wait(); w.code != 9 {
			t.Errorf("the command's own PATH does not count: got %d %q", w.code, w.stderr())
		}
		if _, err := os.Stat(b.file("/tmp/planted-ran")); err == nil {
			// The one planted program that ran was the command itself.
			if err := os.Remove(b.file("/tmp/planted-ran")); err != nil {
				t.Fatal(err)
			}
		}
		w = b.start(Command{Argv: []string{"/bin/true"}}, func(c *exec.Cmd) { c.Env = []string{"PATH=/tmp"} })
		_ = w.stdin.Close()
		w.wait()
		if _, err := os.Stat(b.file("/tmp/planted-ran")); err == nil {
			t.Error("the wrapper ran a planted program")
		}
	})
}

// TestEXW17_TooLongArguments: the kernel takes no argument over 128 KiB and no argv over
// about 2 MiB; what does not fit never runs, and is never a success.
func TestEXW17_TooLongArguments(t *testing.T) {
	inShells(t, func(t *testing.T, b *box) {
		many := make([]string, 30)
		for i := range many {
			many[i] = strings.Repeat("y", 100<<10)
		}
		cmd := b.command(Command{ID: testID(t), Argv: append([]string{"true"}, many...)}.ExecArgv()...)
		if err := cmd.Run(); err == nil {
			t.Error("3 MiB of arguments ended well")
		}
	})
}

func write(t testing.TB, path, text string, mode os.FileMode) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), mode); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(path, mode); err != nil {
		t.Fatal(err)
	}
}

// refusal is the reason of a Refused event.
func refusal(w *wrapped) string {
	for _, e := range w.all {
		if e.Kind == Refused {
			return e.Reason
		}
	}
	return ""
}
