package wrapper

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"testing"
)

// refused checks that the wrapper ran nothing and said why.
func refused(t *testing.T, b *box, w *wrapped, reason string) {
	t.Helper()
	if w.code != 126 || !strings.Contains(refusal(w), reason) {
		t.Errorf("got %d %q %q %v, want a refusal: %s", w.code, w.stdout(), w.stderr(), w.all, reason)
	}
	if want := "tai-exec: " + refusal(w) + "\n"; w.stderr() != want || w.stdout() != "" {
		t.Errorf("wrote %q and %q, want the line %q on stderr alone", w.stdout(), w.stderr(), want)
	}
	if _, err := os.Stat(b.file("/tmp/ran")); err == nil {
		t.Error("the command was run")
	}
}

var leavesTrace = []string{"sh", "-c", "echo ran; : >/tmp/ran"}

func TestEXW07_UnwritableTmp(t *testing.T) {
	inShells(t, func(t *testing.T, b *box) {
		if err := os.Chmod(b.file("/tmp"), 0o555); err != nil {
			t.Fatal(err)
		}
		refused(t, b, b.run(leavesTrace...), "cannot write /tmp/tai-exec.")
	})
}

func TestEXW07_FullTmp(t *testing.T) {
	inShells(t, func(t *testing.T, b *box) {
		full, err := os.Create(b.file("/tmp/full"))
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = full.Close() }()
		if _, err := io.Copy(full, zeros{}); !errors.Is(err, syscall.ENOSPC) {
			t.Fatal(err)
		}
		refused(t, b, b.run(leavesTrace...), "cannot write /tmp/tai-exec.")
	})
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { return len(p), nil }

// TestEXW07_OutputThatIsNoPipe: what cannot be compared later is not recorded.
func TestEXW07_OutputThatIsNoPipe(t *testing.T) {
	inShells(t, func(t *testing.T, b *box) {
		id := testID(t)
		cmd := b.command(Command{ID: id, Argv: leavesTrace}.ExecArgv()...)
		out, err := os.Create(t.TempDir() + "/out")
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = out.Close() }()
		cmd.Stdout = out
		var errs strings.Builder
		cmd.Stderr = &errs
		code := exitStatus(cmd.Run())
		content, events := NewFilter(id).Feed(Stderr, []byte(errs.String()))
		if code != 126 || len(events) == 0 || events[0].Kind != Refused {
			t.Errorf("got %d %q %v", code, content, events)
		}
		if _, err := os.Stat(b.file("/tmp/ran")); err == nil {
			t.Error("the command was run")
		}
	})
}

func TestEXW08_FifoPathTaken(t *testing.T) {
	inShells(t, func(t *testing.T, b *box) {
		id := testID(t)
		write(t, b.file("/tmp/tai-exec."+id+".fifo"), "", 0o666)
		w := b.start(Command{ID: id, Argv: leavesTrace})
		refused(t, b, w.wait(), "cannot make /tmp/tai-exec.")
	})
}

func TestEXW07_RecordPathTaken(t *testing.T) {
	inShells(t, func(t *testing.T, b *box) {
		id := testID(t)
		write(t, b.file("/tmp/tai-exec."+id+".out"), "x\n", 0o666)
		w := b.start(Command{ID: id, Argv: leavesTrace})
		refused(t, b, w.wait(), "cannot write /tmp/tai-exec.")
	})
}

// contract are the commands that a session image must have, shell apart (EXW-1).
var contract = []string{"setsid", "mkfifo", "mv", "rm", "cat", "kill", "readlink", "ls", "sleep"}

// contractTools is a folder with those, without some, from one static busybox.
func contractTools(t *testing.T, without string) string {
	t.Helper()
	busybox, err := exec.LookPath("busybox")
	if err != nil {
		t.Fatal("busybox is missing: apt-get install busybox-static")
	}
	data, err := os.ReadFile(busybox)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	// The test's own way in needs setpriv.
	for from, to := range map[string]string{"setpriv": "setpriv", "dash": "sh"} {
		path, err := exec.LookPath(from)
		if err != nil {
			t.Fatal(err)
		}
		program, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		write(t, dir+"/"+to, string(program), 0o755)
	}
	write(t, dir+"/.busybox", string(data), 0o755)
	for _, name := range contract {
		if name != without {
			if err := os.Symlink(".busybox", dir+"/"+name); err != nil {
				t.Fatal(err)
			}
		}
	}
	return dir
}

// TestEXW01_STP15_ContractSuffices runs the wrapper where there is nothing but the contract,
// then without each of its commands in turn: all are run or refused, none hangs.
func TestEXW01_STP15_ContractSuffices(t *testing.T) {
	for _, name := range append([]string{""}, contract...) {
		t.Run("without "+name, func(t *testing.T) {
			t.Parallel()
			b := newBoxWith(t, "dash", contractTools(t, name))
			script := "echo started; sleep 0.3 & exit 3"
			w := b.start(Command{Argv: []string{"/bin/sh", "-c", script}})
			w.wait()
			switch name {
			case "mkfifo", "setsid", "mv", "rm", "sleep":
				refused(t, b, w, "the image has no "+name)
				return
			}
			if w.code != 3 || w.stdout() != "started\n" || !w.filter.Complete() {
				t.Errorf("got %d %q %q", w.code, w.stdout(), w.stderr())
			}
			held := b.start(Command{Argv: []string{"/bin/sh", "-c", "setsid sh -c ': >/tmp/escaped; exec sleep 60' & exec sleep 60"}})
			await(t, "a process has escaped", func() bool { return slices.Contains(b.tmp(), "escaped") })
			if r, _ := b.stop(held.id, "KILL"); r.Status != 137 || !r.Found {
				t.Errorf("stop: %+v", r)
			}
			if left := fmt.Sprint(b.tmp()); !strings.Contains(left, held.id) {
				t.Errorf("the wrapper does not wait for what escaped: %v", left)
			}
		})
	}
}

// TestEXW07_NoProcessCanBeStarted: at the cap on processes a fork fails in the middle.
func TestEXW07_NoProcessCanBeStarted(t *testing.T) {
	for i, sh := range shells {
		if sh.name == "bash" || sh.name == "mksh" {
			continue // these try again for half a minute, see docs/exec.md
		}
		for nproc := 1; nproc < 5; nproc++ {
			t.Run(fmt.Sprintf("%s/%d", sh.name, nproc), func(t *testing.T) {
				t.Parallel()
				b := newBox(t, sh.name)
				// The kernel counts by user, so each has its own.
				b.uid, b.nproc = 20000+10*i+nproc, nproc
				w := b.run(leavesTrace...)
				if w.code == 0 && w.stdout() == "ran\n" {
					return // what was left was enough
				}
				if w.code != 126 || refusal(w) == "" {
					t.Errorf("got %d %q %q %v", w.code, w.stdout(), w.stderr(), w.all)
				}
				if _, err := os.Stat(b.file("/tmp/ran")); err == nil {
					t.Error("the command was run")
				}
			})
		}
	}
}
