package sandbox_test

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"caisson/sandbox"
)

// TestSTR09_KillStopsACommandWhoseEndNobodySaw kills after the record has ended: what
// it says stays, and the command is stopped all the same.
func TestSTR09_KillStopsACommandWhoseEndNobodySaw(t *testing.T) {
	for reason, stops := range map[sandbox.LostReason]int{sandbox.LostStreamCut: 2, sandbox.LostStatusUnknown: 2, sandbox.LostContainerGone: 0} {
		synctest.Test(t, func(t *testing.T) {
			b := &backend{delay: time.Second, report: sandbox.StopReport{Found: true, Status: code(137)}}
			e := started(t, b, sandbox.ExecSpec{})
			e.StreamEnded(sandbox.StreamEnd{Reason: reason})
			before := show(e.View())
			for range 2 { // each looks for itself: nobody knows what has become of it
				if killed, err := e.Kill(sandbox.SignalKill); killed != (stops > 0) || err != nil {
					t.Errorf("%v: killed %v, %v", reason, killed, err)
				}
			}
			if b.stops != stops || show(e.View()) != before {
				t.Errorf("%v: %d stops; %s, before %s", reason, b.stops, show(e.View()), before)
			}
			if err := e.Close(); err != nil {
				t.Error(err)
			}
			if killed, err := e.Kill(sandbox.SignalKill); killed || err != nil || b.stops != stops {
				t.Errorf("%v, closed: %v, %v, %d stops", reason, killed, err, b.stops)
			}
		})
	}
}

// TestTMO07_KillAfterATimeoutThatCouldNotStop tries again what the timeout could not.
func TestTMO07_KillAfterATimeoutThatCouldNotStop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &backend{err: errors.New("paused")}
		e := started(t, b, sandbox.ExecSpec{Timeout: time.Second})
		<-e.Done()
		synctest.Wait()
		b.err, b.report = nil, sandbox.StopReport{Found: true, Status: code(137)}
		if killed, err := e.Kill(sandbox.SignalKill); !killed || err != nil {
			t.Errorf("killed %v, %v", killed, err)
		}
		if v := e.View(); v.Status != sandbox.StatusTimedOut || b.stops != 2 {
			t.Errorf("%s, %d stops", show(v), b.stops)
		}
	})
}
