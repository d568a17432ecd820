package wrapper

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"
)

func TestEXW13_ExitCodes(t *testing.T) {
	inShells(t, func(t *testing.T, b *box) {
		for _, code := range []int{0, 1, 42, 125, 126, 127, 137, 255} {
			w := b.sh(fmt.Sprintf("echo out; echo err >&2; exit %d", code))
			if w.code != code || w.stdout() != "out\n" || w.stderr() != "err\n" {
				t.Errorf("exit %d: got %d %q %q %v", code, w.code, w.stdout(), w.stderr(), w.all)
			}
			if !w.filter.Complete() || refusal(w) != "" {
				t.Errorf("exit %d: complete %v, refusal %q", code, w.filter.Complete(), refusal(w))
			}
			if w.took > 2*time.Second {
				t.Errorf("exit %d: took %v", code, w.took)
			}
		}
		if left := b.tmp(); len(left) != 0 {
			t.Errorf("left in /tmp: %v", left)
		}
	})
}

// TestEXW02_EXW03_EXW04_Records: what the command's output is connected to is in its .out file while
// it runs, and its pid, which is its group's too, in the .pid file.
func TestEXW02_EXW03_EXW04_Records(t *testing.T) {
	inShells(t, func(t *testing.T, b *box) {
		w := b.start(Command{Argv: []string{
			"sh", "-c",
			`ls -l /proc/$$/fd/1 /proc/$$/fd/2; read -r stat </proc/$$/stat; echo "$stat"; read -r line; exit 0`,
		}})
		await(t, "command runs", func() bool { return b.has(w.id, "pid") })
		record, err := os.ReadFile(b.file("/tmp/tai-exec." + w.id + ".out"))
		if err != nil {
			t.Fatal(err)
		}
		pid := b.recordedPid(w.id)
		wrapper := b.wrapperPid(w.id)
		_ = w.stdin.Close()
		w.wait()
		out := strings.Split(strings.TrimSpace(w.stdout()), "\n")
		if len(out) != 3 || w.code != 0 {
			t.Fatalf("got %d %q %q", w.code, w.stdout(), w.stderr())
		}
		for i, line := range strings.Split(string(record), "\n")[:2] {
			if !strings.HasPrefix(line, "pipe:[") || !strings.HasSuffix(out[i], " -> "+line) {
				t.Errorf("recorded %q, the command's is %q", line, out[i])
			}
		}
		// EXW-4: pid, parent, group, session.
		if f := strings.Fields(out[2]); f[0] != fmt.Sprint(pid) || f[3] != wrapper || f[4] != f[0] || f[5] != f[0] {
			t.Errorf("recorded pid %d, wrapper %s; the command's stat is %q", pid, wrapper, out[2])
		}
	})
}

// TestEXW05_PidFileIsWholeOrAbsent reads it as fast as it can while commands start.
func TestEXW05_PidFileIsWholeOrAbsent(t *testing.T) {
	inShells(t, func(t *testing.T, b *box) {
		for range 10 {
			w := b.start(Command{Argv: []string{"true"}})
			path := b.file("/tmp/tai-exec." + w.id + ".pid")
		poll:
			for {
				if data, err := os.ReadFile(path); err == nil && (len(data) < 2 || data[len(data)-1] != '\n') {
					t.Errorf("pid file holds %q", data)
				}
				select {
				case <-w.done:
					break poll
				default:
				}
			}
		}
	})
}

// TestD27_BigOutputIsComplete: a big output is whole, in order, on both streams.
func TestD27_BigOutputIsComplete(t *testing.T) {
	inShells(t, func(t *testing.T, b *box) {
		w := b.sh(`i=0; while [ $i -lt 20000 ]; do echo "line $i"; i=$((i+1)); done; head -c 3000000 /dev/zero | tr '\0' t >&2; exit 5`)
		var want strings.Builder
		for i := range 20000 {
			fmt.Fprintf(&want, "line %d\n", i)
		}
		if w.code != 5 || w.stdout() != want.String() || w.stderr() != strings.Repeat("t", 3000000) || !w.filter.Complete() {
			t.Errorf("got %d, %d and %d bytes", w.code, len(w.stdout()), len(w.stderr()))
		}
	})
}

// TestD27_CommandThatWritesMarkers gains nothing but a false word about itself.
func TestD27_CommandThatWritesMarkers(t *testing.T) {
	inShells(t, func(t *testing.T, b *box) {
		id := testID(t)
		p := "tai-exec:" + id + ":"
		w := b.start(Command{ID: id, Argv: []string{
			"sh", "-c",
			"echo " + p + "end; echo more; echo " + p + "end; echo x " + p + "refused me >&2; echo " + p + "exited 999 >&2; exit 4",
		}})
		_ = w.stdin.Close()
		w.wait()
		if w.code != 4 || w.stdout() != p+"end\nmore\n"+p+"end\n" || w.stderr() != "x "+p+"refused me\n"+p+"exited 999\n" {
			t.Errorf("got %d %q %q", w.code, w.stdout(), w.stderr())
		}
		if !w.filter.Complete() || refusal(w) != "" {
			t.Errorf("complete %v, events %v", w.filter.Complete(), w.all)
		}
	})
}
