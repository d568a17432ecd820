package wrapper

import (
	"fmt"
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
			if !w.filter.Complete() {
				t.Errorf("exit %d: output not complete", code)
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

func TestSTP02_KillsTheGroup(t *testing.T) {
	inShells(t, func(t *testing.T, b *box) {
		w := b.start(Command{Argv: []string{"sh", "-c", "sleep 98 & sleep 99"}})
		await(t, "command runs", func() bool { return len(b.tmp()) == 4 })
		r, took := b.stop(w.id, "KILL")
		if want := (Report{Found: true, Status: 137}); r != want {
			t.Errorf("report %+v, want %+v", r, want)
		}
		w.wait()
		t.Log(took)
		if w.code != 137 || w.stderr() != "" || !w.filter.Complete() {
			t.Errorf("got %d %q", w.code, w.stderr())
		}
		if left := b.tmp(); len(left) != 0 {
			t.Errorf("left in /tmp: %v", left)
		}
	})
}
