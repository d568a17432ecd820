package e2e_test

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// TestSTP08_KIL02_RaceOfExitAndKill kills a command that exits with 7 at a random
// instant: it ends with 7 or 137, in time.
func TestSTP08_KIL02_RaceOfExitAndKill(t *testing.T) {
	a := connectPlain(t, httpLegacy)
	s := &soak{conn: a.conn}
	for i := range 2 {
		s.sessions[i] = a.session(nil)
	}
	total := times(t, "CAISSON_RACES", 50)
	jobs := make(chan int, total)
	for i := range total {
		jobs <- i
	}
	close(jobs)
	var seen [256]atomic.Int64
	var slowest atomic.Int64
	// How long a command may take, in milliseconds: what one end has won too often is made
	// rarer, so that both are met on a machine that is slow to start or to kill.
	var reach atomic.Int64
	reach.Store(400)
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for i := range jobs {
				length := time.Duration(rand.Int64N(reach.Load())) * time.Millisecond
				x, err := s.ask(t.Context(), "exec", args{"session_id": s.sessions[i%2], "argv": []string{"sh", "-c", fmt.Sprintf("sleep %.3f; exit 7", length.Seconds())}, "wait_seconds": 0})
				if err != nil {
					t.Errorf("race %d: %v", i, err)
					continue
				}
				pause := time.NewTimer(time.Duration(rand.IntN(400)) * time.Millisecond)
				<-pause.C
				began := time.Now()
				y, err := s.ask(t.Context(), "kill", args{"exec_id": x.ExecID})
				for err == nil && y.Status == "running" {
					y, err = s.ask(t.Context(), "exec_output", args{"exec_id": x.ExecID, "wait_seconds": 5})
				}
				took := time.Since(began)
				if took > 2*time.Second {
					t.Logf("race %d took %v: %v", i, took, y)
				}
				slowest.Store(max(slowest.Load(), int64(took)))
				switch {
				case err != nil || y.ExitCode == nil || !y.exited(7) && (y.Status != "killed" || *y.ExitCode != 137) || !y.OutputComplete:
					t.Errorf("race %d: %v, %v", i, err, y)
				case took > 5*time.Second:
					t.Errorf("race %d: ended %v after the kill", i, took)
				default:
					seen[*y.ExitCode].Add(1)
					if *y.ExitCode == 7 {
						reach.Store(min(reach.Load()*5/4, 8000))
					} else {
						reach.Store(max(reach.Load()*4/5, 50))
					}
				}
			}
		})
	}
	wg.Wait()
	t.Logf("7 came %d times, 137 %d times; the slowest ended %v after its kill", seen[7].Load(), seen[137].Load(), time.Duration(slowest.Load()))
	if seen[7].Load() == 0 || seen[137].Load() == 0 {
		t.Error("only one of the two ends was met: the test shows nothing")
	}
}
