package sandbox_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"caisson/sandbox"
)

// backend plays a provider: its stop answers after a while with a set report
// and may end the stream.
type backend struct {
	exec   *sandbox.Exec
	delay  time.Duration
	report sandbox.StopReport
	err    error
	ends   *sandbox.StreamEnd // the stream's end that the stop brings about
	whole  []bool             // what is told of the output before

	mu     sync.Mutex
	stops  int
	stdin  []byte
	eof    bool
	closed bool
	block  chan struct{} // a stdin that is not read
}

func (b *backend) Stop(ctx context.Context, _ sandbox.Signal) (sandbox.StopReport, error) {
	b.mu.Lock()
	b.stops++
	b.mu.Unlock()
	select {
	case <-time.After(b.delay):
	case <-ctx.Done():
		return sandbox.StopReport{}, ctx.Err()
	}
	for _, whole := range b.whole {
		b.exec.OutputWhole(whole)
	}
	if b.ends != nil {
		b.exec.StreamEnded(*b.ends)
	}
	return b.report, b.err
}

func (b *backend) WriteStdin(ctx context.Context, p []byte) (int, error) {
	if b.block != nil {
		select {
		case <-b.block:
		case <-ctx.Done():
			return 0, ctx.Err()
		}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.stdin = append(b.stdin, p...)
	return len(p), nil
}

func (b *backend) CloseStdin() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.eof = true
	return nil
}

func (b *backend) Close() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.closed = true
}

func code(n int) *int { return &n }

// started makes a running exec on b.
func started(t *testing.T, b *backend, spec sandbox.ExecSpec) *sandbox.Exec {
	t.Helper()
	if spec.ID == "" {
		spec.ID = sandbox.NewExecID()
	}
	b.exec = sandbox.NewExec("sbx_x", spec, pool(t, 1024, 0, 0).New(), slog.New(slog.DiscardHandler))
	b.exec.Attach(b)
	t.Cleanup(func() {
		if err := b.exec.Close(); err != nil {
			t.Error(err)
		}
	})
	return b.exec
}

func noteCodes(v sandbox.ExecView) []string {
	var all []string
	for _, n := range v.Notes {
		all = append(all, n.Code)
	}
	return all
}

// show is a view in one line, for comparison.
func show(v sandbox.ExecView) string {
	s := string(v.Status)
	if v.ExitCode != nil {
		s += fmt.Sprintf(" %d", *v.ExitCode)
	}
	if v.CommandExitCode != nil {
		s += fmt.Sprintf(" own=%d", *v.CommandExitCode)
	}
	if v.LostReason != "" {
		s += " " + string(v.LostReason)
	}
	return fmt.Sprint(s, " ", noteCodes(v))
}

var exit7 = sandbox.StreamEnd{Code: code(7), Complete: true}

// TestKIL has a row of the kill table in each case, as the state machine sees it.
func TestKIL01_KIL02_KIL03_KIL04_KIL05_KIL06_KIL08_KIL09_EndsByWhatTheStopFound(t *testing.T) {
	end137 := sandbox.StreamEnd{Code: code(137), Complete: true}
	for _, c := range []struct {
		name   string
		report sandbox.StopReport
		err    error
		ends   *sandbox.StreamEnd
		killed bool
		fails  bool
		within time.Duration
		want   string
	}{
		{"KIL-1 running", sandbox.StopReport{Found: true, Status: code(137)}, nil, &end137, true, false, 0, "killed 137 []"},
		{"KIL-2 exited before", sandbox.StopReport{Found: true, Status: code(3)}, nil, nil, false, false, sandbox.EndGrace, "exited 3 [count_may_miss_output]"},
		{"KIL-3 escaped holder", sandbox.StopReport{Found: true, Status: code(137), Held: true}, nil, nil, true, false, 0, "killed 137 [output_still_held]"},
		{"KIL-4 nothing left, held", sandbox.StopReport{Held: true}, nil, nil, false, false, 0, "lost status_unknown [output_still_held]"},
		{"KIL-5 nothing there, stream ends", sandbox.StopReport{}, nil, &exit7, false, false, 0, "exited 7 []"},
		{"KIL-6 nothing there, stream does not end", sandbox.StopReport{}, nil, nil, false, false, sandbox.EndGrace, "lost status_unknown []"},
		{"KIL-8 stop fails", sandbox.StopReport{}, sandbox.Errorf("stop", sandbox.KindKillFailed, "status_unknown"), nil, false, true, 0, "running [kill_failed]"},
		{"KIL-8 stop fails, stream ends", sandbox.StopReport{}, errors.New("x"), &exit7, false, true, 0, "exited 7 [kill_failed]"},
		{"KIL-9 gone", sandbox.StopReport{Gone: true}, nil, nil, false, false, 0, "lost container_gone [container_gone]"},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := &backend{delay: 100 * time.Millisecond, report: c.report, err: c.err, ends: c.ends}
				e := started(t, b, sandbox.ExecSpec{Timeout: time.Hour})
				begin := time.Now()
				killed, err := e.Kill(sandbox.SignalKill)
				if killed != c.killed || (err != nil) != c.fails {
					t.Errorf("killed %v, error %v", killed, err)
				}
				if err != nil && sandbox.KindOf(err) != sandbox.KindKillFailed {
					t.Errorf("kind %v", sandbox.KindOf(err))
				}
				if took := time.Since(begin); took > time.Second {
					t.Errorf("kill took %v", took)
				}
				if !c.fails {
					<-e.Done()
				}
				synctest.Wait()
				if took := time.Since(begin); took > c.within+time.Second {
					t.Errorf("ended after %v", took)
				}
				if got := show(e.View()); got != c.want {
					t.Errorf("got %s, want %s", got, c.want)
				}
			})
		})
	}
}

func TestKIL12_KillAfterTheEndIsHarmless(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &backend{}
		e := started(t, b, sandbox.ExecSpec{})
		e.StreamEnded(exit7)
		killed, err := e.Kill(sandbox.SignalKill)
		if killed || err != nil || b.stops != 0 || show(e.View()) != "exited 7 []" {
			t.Fatalf("killed %v, %v, %d stops, %s", killed, err, b.stops, show(e.View()))
		}
	})
}

func TestSTP12_StopIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &backend{delay: time.Hour}
		e := started(t, b, sandbox.ExecSpec{})
		begin := time.Now()
		_, err := e.Kill(sandbox.SignalKill)
		if sandbox.KindOf(err) != sandbox.KindKillFailed || time.Since(begin) != sandbox.StopLimit {
			t.Fatalf("%v after %v", err, time.Since(begin))
		}
		if v := e.View(); v.Status != sandbox.StatusRunning {
			t.Fatalf("status %s: a failed stop must not pretend an end", v.Status)
		}
	})
}

func TestSTP12_ConcurrentKillsShareOneStop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &backend{delay: time.Second, report: sandbox.StopReport{Found: true, Status: code(137)}, ends: &sandbox.StreamEnd{Code: code(137)}}
		e := started(t, b, sandbox.ExecSpec{})
		var all sync.WaitGroup
		for range 5 {
			all.Go(func() {
				if killed, err := e.Kill(sandbox.SignalKill); !killed || err != nil {
					t.Errorf("%v, %v", killed, err)
				}
			})
		}
		all.Wait()
		if b.stops != 1 {
			t.Fatalf("%d stops", b.stops)
		}
	})
}

func TestEXW11_HeldOutputThatIsLetGoEndsWithTheCode(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := started(t, &backend{}, sandbox.ExecSpec{Timeout: time.Minute})
		e.CommandExited(3)
		e.StreamEnded(sandbox.StreamEnd{Code: code(3), Complete: true})
		if v := e.View(); show(v) != "exited 3 [output_held]" || v.OutputHeld || !v.OutputComplete {
			t.Fatalf("%s, held %v, complete %v", show(v), v.OutputHeld, v.OutputComplete)
		}
	})
}

func TestSTP05_PoliteSignalLeavesTheEndToTheCommand(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &backend{report: sandbox.StopReport{Found: true}}
		e := started(t, b, sandbox.ExecSpec{})
		begin := time.Now()
		killed, err := e.Kill(sandbox.SignalTerm)
		if !killed || err != nil || time.Since(begin) != 2*time.Second || e.View().Status != sandbox.StatusRunning {
			t.Fatalf("%v, %v after %v, %s", killed, err, time.Since(begin), show(e.View()))
		}
	})
}

func TestSTR12_OutputBeforeTheKillIsKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &backend{report: sandbox.StopReport{Found: true, Status: code(137), Held: true}}
		e := started(t, b, sandbox.ExecSpec{})
		e.Output(sandbox.Stdout, []byte("one "))
		e.Output(sandbox.Stdout, []byte("two"))
		if _, err := e.Kill(sandbox.SignalKill); err != nil {
			t.Fatal(err)
		}
		<-e.Done()
		e.Output(sandbox.Stdout, []byte("from the escaped process"))
		c, err := e.Spool().Read(sandbox.Stdout, 0, 100)
		if err != nil || string(c.Data) != "one two" {
			t.Fatalf("%q, %v", c.Data, err)
		}
		synctest.Wait()
		b.mu.Lock()
		defer b.mu.Unlock()
		if !b.closed {
			t.Error("the stream that something else holds open was not cut")
		}
	})
}

func TestNotesAreKeptOncePerCode(t *testing.T) {
	e := started(t, &backend{}, sandbox.ExecSpec{})
	e.Note("a", "1")
	e.Note("a", "2")
	e.Note("b", "3")
	if got := noteCodes(e.View()); !slices.Equal(got, []string{"a", "b"}) {
		t.Fatal(got)
	}
}
