package wrapper

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

func wantReport(t *testing.T, got, want Report) {
	t.Helper()
	if got != want {
		t.Errorf("report %+v, want %+v", got, want)
	}
}

func TestSTP02_KillsTheGroup(t *testing.T) {
	t.Parallel()
	inShells(t, func(t *testing.T, b *box) {
		w := b.running("trap '' TERM; sleep 98 & sh -c 'sleep 99' & echo part; wait")
		await(t, "both run", func() bool { return b.runs("sleep 99") })
		r, took := b.stop(w.id, "KILL")
		wantReport(t, r, Report{Found: true, Status: 137})
		w.wait()
		if w.code != 137 || w.stdout() != "part\n" || w.stderr() != "" || !w.filter.Complete() {
			t.Errorf("got %d %q %q", w.code, w.stdout(), w.stderr())
		}
		if took > 1900*time.Millisecond {
			t.Errorf("took %v", took)
		}
		if b.runs("sleep 98") || b.runs("sleep 99") {
			t.Errorf("alive:\n%s", b.ps())
		}
		if left := b.tmp(); len(left) != 0 {
			t.Errorf("left in /tmp: %v", left)
		}
	})
}

func TestSTP03_CommandHasExited(t *testing.T) {
	t.Parallel()
	inShells(t, func(t *testing.T, b *box) {
		w := b.start(Command{Argv: []string{"sh", "-c", "sleep 99 & exit 7"}})
		if e := <-w.events; e.Kind != Exited || e.Code != 7 {
			t.Fatalf("event %+v", e)
		}
		r, _ := b.stop(w.id, "KILL")
		wantReport(t, r, Report{Found: true, Status: 7})
		if w.wait(); w.code != 7 || strings.Contains(b.ps(), "sleep") {
			t.Errorf("got %d\n%s", w.code, b.ps())
		}
	})
}

func TestSTP04_LeavesWhatLeftTheGroup(t *testing.T) {
	t.Parallel()
	inShells(t, func(t *testing.T, b *box) {
		w := b.running("setsid sleep 97 >/dev/null 2>&1 & sleep 98")
		await(t, "it has left", func() bool { return b.runs("sleep 97") })
		r, _ := b.stop(w.id, "KILL")
		wantReport(t, r, Report{Found: true, Status: 137})
		w.wait()
		if !b.runs("sleep 97") {
			t.Error("what left the group was killed")
		}
	})
}

func TestSTP05_ReportsWhatStillHolds(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, escaped string }{
		{"both", "setsid sh -c ': >/tmp/escaped; exec sleep 97'"},
		{"stdout", "setsid sh -c ': >/tmp/escaped; exec sleep 97' 2>/dev/null"},
		{"stderr", "setsid sh -c ': >/tmp/escaped; exec sleep 97' >/dev/null"},
	} {
		t.Run(c.name, func(t *testing.T) {
			inShells(t, func(t *testing.T, b *box) {
				w := b.running(c.escaped + " & sleep 98")
				await(t, "it has left", func() bool { return slices.Contains(b.tmp(), "escaped") })
				r, took := b.stop(w.id, "KILL")
				wantReport(t, r, Report{Found: true, Status: 137, Held: true})
				if took > 1900*time.Millisecond {
					t.Errorf("took %v", took)
				}
				group := fmt.Sprint(b.recordedPid(w.id))
				await(t, "the group is gone", func() bool { return len(b.inGroup(group)) == 0 })
				// A second stop finds no group, and sends nothing anywhere.
				r, _ = b.stop(w.id, "KILL")
				wantReport(t, r, Report{Status: 137, Held: true})
				b.kill("sleep 97")
				if w.wait(); w.code != 137 {
					t.Errorf("got %d", w.code)
				}
			})
		})
	}
}

func TestSTP06_UnreadableFails(t *testing.T) {
	t.Parallel()
	inShells(t, func(t *testing.T, b *box) {
		w := b.running("cp /usr/bin/sleep /tmp/hidden; chmod 111 /tmp/hidden; setsid /tmp/hidden 97 & sleep 98")
		await(t, "it has left", func() bool { return b.runs("/tmp/hidden 97") })
		r, took := b.stop(w.id, "KILL")
		wantReport(t, r, Report{Found: true, Status: 137, Unreadable: true, Failed: FailedUnreadable})
		if took > 4*time.Second {
			t.Errorf("took %v", took)
		}
		b.kill("/tmp/hidden 97")
		w.wait()
	})
}

// TestSTP08_Races: the command ends about when the kill lands.
func TestSTP08_Races(t *testing.T) {
	t.Parallel()
	inShells(t, func(t *testing.T, b *box) {
		seen := map[int]int{}
		for i := range 15 {
			w := b.start(Command{Argv: []string{"sh", "-c", fmt.Sprintf("sleep 0.0%02d; exit 7", 3*i)}})
			await(t, "command runs or has run", func() bool { return b.has(w.id, "pid") || w.ended() })
			r, _ := b.stop(w.id, "KILL")
			w.wait()
			seen[w.code]++
			switch {
			case w.code != 7 && w.code != 137:
				t.Errorf("ended with %d, report %+v, %q", w.code, r, w.stderr())
			case r.Status >= 0 && r.Status != w.code:
				t.Errorf("reported %+v, ended with %d", r, w.code)
			case r.Failed != "" || r.Held:
				t.Errorf("report %+v", r)
			}
			if w.stderr() != "" || !w.filter.Complete() {
				t.Errorf("wrote %q, complete %v", w.stderr(), w.filter.Complete())
			}
		}
		t.Log(seen)
		for _, name := range b.tmp() {
			if !strings.HasSuffix(name, ".mark") {
				t.Errorf("left in /tmp: %s", name)
			}
		}
	})
}

func TestSTP09_WrapperStopped(t *testing.T) {
	t.Parallel()
	inShells(t, func(t *testing.T, b *box) {
		w := b.running("sleep 98")
		b.signal(b.wrapperPid(w.id), "STOP")
		r, took := b.stop(w.id, "KILL")
		wantReport(t, r, Report{Found: true, Status: -1, Failed: FailedStatus})
		if took < 1900*time.Millisecond || took > 4*time.Second {
			t.Errorf("took %v", took)
		}
		if b.runs("sleep 98") {
			t.Error("the group lives")
		}
		b.signal(b.wrapperPid(w.id), "CONT")
		_ = w.cmd.Process.Signal(syscall.SIGCONT) // nsenter stops with its child
		if w.wait(); w.code != 137 {
			t.Errorf("got %d", w.code)
		}
	})
}

func TestSTP09_WrapperKilled(t *testing.T) {
	t.Parallel()
	inShells(t, func(t *testing.T, b *box) {
		w := b.running("sleep 98")
		b.signal(b.wrapperPid(w.id), "KILL")
		r, took := b.stop(w.id, "KILL")
		wantReport(t, r, Report{Found: true, Status: -1, Failed: FailedStatus})
		if took > 2*time.Second {
			t.Errorf("took %v", took)
		}
		w.wait()
		if b.runs("sleep 98") {
			t.Error("the group lives")
		}
	})
}

// TestKIL04_NothingLeftToKill: the wrapper is gone, the command too, an escaped process
// still holds the output.
func TestKIL04_NothingLeftToKill(t *testing.T) {
	t.Parallel()
	inShells(t, func(t *testing.T, b *box) {
		w := b.running("setsid sh -c ': >/tmp/escaped; exec sleep 97' & exec sleep 98")
		await(t, "it has left", func() bool { return slices.Contains(b.tmp(), "escaped") })
		await(t, "it runs", func() bool { return b.runs("sleep 98") })
		b.signal(b.wrapperPid(w.id), "KILL")
		b.kill("sleep 98")
		r, _ := b.stop(w.id, "KILL")
		wantReport(t, r, Report{Status: -1, Held: true, Marker: true})
		b.kill("sleep 97")
		w.wait()
	})
}

func TestSTP10_WhileHeld(t *testing.T) {
	t.Parallel()
	inShells(t, func(t *testing.T, b *box) {
		w := b.start(Command{Argv: []string{"sh", "-c", "sleep 99 & setsid sh -c ': >/tmp/escaped; exec sleep 98' & exit 4"}})
		<-w.events
		await(t, "it has left", func() bool { return slices.Contains(b.tmp(), "escaped") })
		r, _ := b.stop(w.id, "KILL")
		wantReport(t, r, Report{Found: true, Status: 4, Held: true})
		await(t, "the group is dead", func() bool { return !b.runs("sleep 99") })
		b.kill("sleep 98")
		if w.wait(); w.code != 4 {
			t.Errorf("got %d", w.code)
		}
	})
}

func TestSTP11_NothingToStop(t *testing.T) {
	t.Parallel()
	inShells(t, func(t *testing.T, b *box) {
		w := b.run("true")
		r, took := b.stop(w.id, "KILL")
		wantReport(t, r, Report{Status: -1, Marker: true})
		if took > 1900*time.Millisecond || !b.has(w.id, "mark") {
			t.Errorf("took %v, /tmp holds %v", took, b.tmp())
		}
		// A command that starts late finds its mark, and is not run.
		id := testID(t)
		r, _ = b.stop(id, "KILL")
		wantReport(t, r, Report{Status: -1, Marker: true})
		late := b.start(Command{ID: id, Argv: leavesTrace})
		late.wait()
		if late.code != 137 || late.stdout() != "" || slices.Contains(b.tmp(), "ran") || b.has(id, "mark") {
			t.Errorf("got %d %q, /tmp holds %v", late.code, late.stdout(), b.tmp())
		}
		if !late.filter.Complete() {
			t.Error("not complete")
		}
	})
}

// TestEXW06_STP11_WhileStarting stops at every instant of a start: the command is either
// killed or never run, and nothing says so wrongly.
func TestEXW06_STP11_WhileStarting(t *testing.T) {
	t.Parallel()
	inShells(t, func(t *testing.T, b *box) {
		outcomes := map[string]int{}
		for range 15 {
			w := b.start(Command{Argv: []string{"sleep", "60"}})
			r, _ := b.stop(w.id, "KILL")
			w.wait()
			if w.code != 137 || r.Failed != "" || r.Held || w.stderr() != "" {
				t.Errorf("ended with %d, report %+v, %q", w.code, r, w.stderr())
			}
			outcomes[fmt.Sprintf("%+v", r)]++
		}
		t.Log(outcomes)
		if strings.Contains(b.ps(), "sleep") {
			t.Errorf("alive:\n%s", b.ps())
		}
	})
}

func TestSTP01_ConcurrentStops(t *testing.T) {
	t.Parallel()
	inShells(t, func(t *testing.T, b *box) {
		w := b.running("sleep 98")
		other := b.running("sleep 99")
		var wg sync.WaitGroup
		for range 4 {
			wg.Go(func() {
				r, _ := b.stop(w.id, "KILL")
				if (r.Status != 137 && r.Found) || r.Failed != "" || r.Held {
					t.Errorf("report %+v", r)
				}
			})
		}
		wg.Wait()
		if w.wait(); w.code != 137 {
			t.Errorf("got %d", w.code)
		}
		if !b.runs("sleep 99") {
			t.Error("another command was stopped too")
		}
		b.stop(other.id, "KILL")
		other.wait()
	})
}

// TestSTP02_OtherSignals are handed to the group and nothing more.
func TestSTP02_OtherSignals(t *testing.T) {
	t.Parallel()
	inShells(t, func(t *testing.T, b *box) {
		for sig, code := range map[string]int{"TERM": 143, "INT": 130, "HUP": 129, "QUIT": 131, "USR1": 138, "USR2": 140} {
			w := b.running("exec sleep 98")
			r, _ := b.stop(w.id, sig)
			wantReport(t, r, Report{Found: true, Status: -1})
			if w.wait(); w.code != code || w.stderr() != "" || b.has(w.id, "mark") {
				t.Errorf("%s: got %d %q", sig, w.code, w.stderr())
			}
		}
		w := b.start(Command{Argv: []string{"sh", "-c", "trap 'echo got it; exit 9' INT; : >/tmp/ready; while :; do sleep 0.05; done"}})
		await(t, "it is ready", func() bool { return slices.Contains(b.tmp(), "ready") })
		b.stop(w.id, "INT")
		if w.wait(); w.code != 9 || w.stdout() != "got it\n" {
			t.Errorf("got %d %q", w.code, w.stdout())
		}
		for _, sig := range []string{"STOP", "9", "", "0", "TERM; touch /tmp/oops", "'"} {
			if r, _ := b.stop(w.id, sig); r.Failed != FailedSignal || r.Found {
				t.Errorf("%q: %+v", sig, r)
			}
		}
		if r, _ := b.stop(testID(t), "TERM"); r != (Report{Status: -1}) {
			t.Errorf("nothing to signal: %+v", r)
		}
		if left := b.tmp(); fmt.Sprint(left) != "[ready]" {
			t.Errorf("left in /tmp: %v", left)
		}
	})
}
