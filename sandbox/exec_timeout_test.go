package sandbox_test

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"caisson/sandbox"
)

func TestTMO02_TMO04_TMO05_TMO06_TMO07_TMO09_EndsByWhatTheStopFound(t *testing.T) {
	for _, c := range []struct {
		name   string
		report sandbox.StopReport
		err    error
		ends   *sandbox.StreamEnd
		after  time.Duration // from the timeout to the end
		want   string
	}{
		{"TMO-4 stream ends", sandbox.StopReport{Found: true, Status: code(137)}, nil, &sandbox.StreamEnd{Code: code(137), Complete: true}, 0, "timed_out []"},
		{"TMO-5 stream does not end", sandbox.StopReport{Found: true, Status: code(137)}, nil, nil, sandbox.EndGrace, "timed_out [count_may_miss_output]"},
		{"TMO-6 still held", sandbox.StopReport{Found: true, Status: code(137), Held: true}, nil, nil, 0, "timed_out [output_still_held]"},
		{"TMO-7 stop fails", sandbox.StopReport{}, errors.New("no"), nil, sandbox.EndGrace, "timed_out [kill_failed count_may_miss_output]"},
		{"TMO-10 ended just before", sandbox.StopReport{}, nil, &exit7, 0, "exited 7 []"},
		{"killed by a stop whose report was lost", sandbox.StopReport{}, nil, &sandbox.StreamEnd{Code: code(137)}, 0, "timed_out []"},
		{"gone", sandbox.StopReport{Gone: true}, nil, nil, 0, "lost container_gone [container_gone]"},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := &backend{report: c.report, err: c.err, ends: c.ends}
				e := started(t, b, sandbox.ExecSpec{Timeout: 3 * time.Second})
				begin := time.Now()
				<-e.Done()
				if took := time.Since(begin); took != 3*time.Second+c.after {
					t.Errorf("ended after %v", took)
				}
				if got := show(e.View()); got != c.want {
					t.Errorf("got %s, want %s", got, c.want)
				}
			})
		})
	}
}

func TestTMO10_EndWithinTheTimeoutIsNoTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &backend{}
		e := started(t, b, sandbox.ExecSpec{Timeout: 3 * time.Second})
		<-time.After(3*time.Second - 1)
		e.StreamEnded(exit7)
		<-time.After(time.Minute)
		if show(e.View()) != "exited 7 []" || b.stops != 0 {
			t.Fatalf("%s, %d stops", show(e.View()), b.stops)
		}
	})
}

// TestTMO07_KillThatFailsLeavesTheTimeout has a kill in flight when the timeout
// comes: when the kill fails, the timeout still ends the command.
func TestTMO07_KillThatFailsLeavesTheTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &backend{delay: 2 * time.Second, err: errors.New("no")}
		e := started(t, b, sandbox.ExecSpec{Timeout: 3 * time.Second})
		<-time.After(2 * time.Second)
		if _, err := e.Kill(sandbox.SignalKill); err == nil {
			t.Error("the kill did not fail")
		}
		<-e.Done()
		if show(e.View()) != "timed_out [kill_failed count_may_miss_output]" || b.stops != 2 {
			t.Fatalf("%s, %d stops", show(e.View()), b.stops)
		}
	})
}

func TestSTR05_TMO09_D04_HeldOutputCountsAsRunning(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &backend{report: sandbox.StopReport{Found: true, Status: code(3)}, ends: &sandbox.StreamEnd{Code: code(3), Complete: true}}
		e := started(t, b, sandbox.ExecSpec{Timeout: 3 * time.Second})
		e.CommandExited(3)
		v := e.View()
		if show(v) != "running own=3 [output_held]" || !v.OutputHeld {
			t.Fatalf("%s", show(v))
		}
		<-e.Done()
		if got := show(e.View()); got != "timed_out own=3 [output_held]" {
			t.Fatalf("%s", got)
		}
	})
}
