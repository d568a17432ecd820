package sandbox_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"caisson/sandbox"
)

// TestD27_KIL01_KIL02_TMO04_AllOutputIsTheEndOfAStoppedCommand has every byte arrive and
// the stream's end stay away, as it does while the engine is busy with another
// command's: the stop's report tells the rest.
func TestD27_KIL01_KIL02_TMO04_AllOutputIsTheEndOfAStoppedCommand(t *testing.T) {
	for _, c := range []struct {
		name    string
		report  sandbox.StopReport
		whole   []bool // what is told of the output, one after another
		timeout bool
		after   time.Duration // from the stop to the end
		want    string
	}{
		{"killed", sandbox.StopReport{Found: true, Status: code(137)}, []bool{true}, false, 0, "killed 137 [] complete"},
		{"exited before", sandbox.StopReport{Found: true, Status: code(3)}, []bool{true}, false, 0, "exited 3 [] complete"},
		{"exited before, nothing left", sandbox.StopReport{Status: code(3)}, []bool{true}, false, 0, "exited 3 [] complete"},
		{"a status alone", sandbox.StopReport{Status: code(3)}, nil, false, sandbox.EndGrace, "lost status_unknown []"},
		{"all output without a status", sandbox.StopReport{}, []bool{true}, false, sandbox.EndGrace, "lost status_unknown [] complete"},
		{"taken back", sandbox.StopReport{Found: true, Status: code(137)}, []bool{true, false}, false, sandbox.EndGrace, "killed 137 [count_may_miss_output]"},
		{"taken back and told again", sandbox.StopReport{Found: true, Status: code(137)}, []bool{true, false, true}, false, 0, "killed 137 [] complete"},
		{"markers beside a holder", sandbox.StopReport{Found: true, Status: code(137), Held: true}, []bool{true}, false, 0, "killed 137 [output_still_held]"},
		{"timed out", sandbox.StopReport{Found: true, Status: code(137)}, []bool{true}, true, 0, "timed_out [] complete"},
		{"timed out, exited before", sandbox.StopReport{Status: code(3)}, []bool{true}, true, 0, "exited 3 [] complete"},
		{"timed out, killed by a stop whose report was lost", sandbox.StopReport{Status: code(137)}, []bool{true}, true, 0, "timed_out [] complete"},
		{"timed out without a status", sandbox.StopReport{}, []bool{true}, true, sandbox.EndGrace, "timed_out [] complete"},
		{"timed out beside a holder", sandbox.StopReport{Found: true, Status: code(137), Held: true}, []bool{true}, true, 0, "timed_out [output_still_held]"},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				const timeout = 3 * time.Second
				b := &backend{report: c.report, whole: c.whole}
				spec := sandbox.ExecSpec{}
				if c.timeout {
					spec.Timeout = timeout
				}
				e := started(t, b, spec)
				e.CommandExited(3) // it may have been held for a while
				begin := time.Now().Add(spec.Timeout)
				if !c.timeout {
					if _, err := e.Kill(sandbox.SignalKill); err != nil {
						t.Error(err)
					}
				}
				<-e.Done()
				if took := time.Since(begin); took != c.after {
					t.Errorf("ended after %v", took)
				}
				v := e.View()
				if v.OutputHeld && v.OutputComplete {
					t.Error("held and complete")
				}
				v.CommandExitCode, v.Notes = nil, v.Notes[1:]
				got := show(v)
				if v.OutputComplete {
					got = fmt.Sprint(got, " complete")
				}
				if got != c.want {
					t.Errorf("got %s, want %s", got, c.want)
				}
			})
		})
	}
}
