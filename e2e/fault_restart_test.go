package e2e_test

import (
	"fmt"
	"syscall"
	"testing"
	"time"

	"github.com/docker/docker/api/types/container"
)

// flying is a command under way, and what its call came to.
type flying struct {
	began time.Time
	done  chan result
}

// fly starts a command that takes ten minutes, and returns once it runs.
func (a *actor) fly(session string, n int) *flying {
	a.t.Helper()
	f := &flying{began: time.Now(), done: make(chan result, 1)}
	go func() {
		f.done <- a.do("exec", args{"session_id": session, "argv": []string{"sleep", fmt.Sprint(n)}, "wait_seconds": 45})
	}()
	eventually(a.t, 20*time.Second, "the command runs", func() bool { return a.processes(session, fmt.Sprint("sleep ", n)) == 1 })
	return f
}

// lost waits for the call to end as it must when its command's fate is not known.
func (a *actor) lost(f *flying, since time.Time, limit time.Duration, reasons ...string) execOut {
	a.t.Helper()
	r := <-f.done
	if d := time.Since(since); d > bounded(limit) {
		a.t.Errorf("the call in flight ended after %v, %v at most", d.Round(time.Millisecond), limit)
	}
	var x execOut
	if err := unmarshal(r, &x); err != nil || x.Status != "lost" || x.ExitCode != nil || !r.IsError {
		a.t.Errorf("the call in flight: %v %v", err, r.text())
	}
	for _, reason := range reasons {
		if x.LostReason == reason {
			return x
		}
	}
	a.t.Errorf("lost for %q, want one of %q", x.LostReason, reasons)
	return x
}

// The engine's daemons end in order and come back: containers are stopped. The call in
// flight ends, calls meanwhile are refused, and afterwards the sessions are there with
// their files and without their processes (D28), by themselves.
func TestBugLC07_AttackT61_AnEngineThatRestartsNeedsNoServerRestart(t *testing.T) {
	t.Parallel()
	e := privateEngine(t, "fault-restart")
	v, a := e.serve(t)
	busy, idle := a.session(nil), a.session(args{"workspace_key": "kept"})
	a.sh(idle, "echo precious > file")
	f := a.fly(busy, 611)
	stopped := time.Now()
	e.script("stop")
	a.lost(f, stopped, 20*time.Second, "container_gone", "stream_cut", "status_unknown")
	a.typed(10*time.Second, "engine_unavailable", "exec", args{"session_id": idle, "command": "true"})
	a.typed(10*time.Second, "engine_unavailable", "session_create", args{})
	a.typed(10*time.Second, "engine_unavailable", "upload", args{"session_id": idle, "path": "never", "content": "x"})
	unready(t, v, 10*time.Second)
	e.script("start")
	back := time.Now()
	a.well(15*time.Second, idle)
	a.well(15*time.Second, busy)
	ready(t, v, 15*time.Second)
	if got := a.sh(idle, "cat file; ls"); got != "precious\nfile\n" {
		t.Errorf("after the restart: %q", got)
	}
	if n := a.processes(busy, "sleep 611"); n != 0 {
		t.Errorf("%d processes have lived on in a container that was stopped", n)
	}
	for _, s := range a.list() {
		if s.State != "running" {
			t.Errorf("session %s is listed as %s", s.SessionID, s.State)
		}
	}
	took(t, back, 20*time.Second, "to be well again")
	a.ok("session_destroy", args{"session_id": idle})
	a.ok("workspace_delete", args{"workspace_key": "kept"})
}

// dockerd is killed and comes back: with live-restore the containers know nothing of it,
// without they are found stopped.
func TestAttackT61_BugLC07_AnEngineThatIsKilledNeedsNoServerRestart(t *testing.T) {
	t.Parallel()
	for _, live := range []bool{true, false} {
		t.Run(fmt.Sprint("live-restore ", live), func(t *testing.T) {
			t.Parallel()
			e := privateEngine(t, fmt.Sprint("fault-live-", live), fmt.Sprint("CAISSON_ENGINE_LIVE_RESTORE=", live))
			v, a := e.serve(t)
			s := a.session(nil)
			a.sh(s, "echo precious > file")
			f := a.fly(s, 612)
			killed := time.Now()
			e.script("bounce")
			x := a.lost(f, killed, 15*time.Second, "stream_cut", "status_unknown", "container_gone")
			a.well(15*time.Second, s)
			ready(t, v, 15*time.Second)
			if got := a.sh(s, "cat file"); got != "precious\n" {
				t.Errorf("after the kill: %q", got)
			}
			runs := a.processes(s, "sleep 612")
			if live != (runs == 1) {
				t.Errorf("%d processes of the command", runs)
			}
			if live {
				a.ok("kill", args{"exec_id": x.ExecID})
				eventually(t, 10*time.Second, "the lost command can be killed", func() bool { return a.processes(s, "sleep 612") == 0 })
			}
		})
	}
}

// dockerd stands still under load: every call ends in its time and typed, and nothing
// is made twice when it goes on.
func TestAttackT65_AnEngineThatStandsStillIsWaitedForInVain(t *testing.T) {
	t.Parallel()
	e := privateEngine(t, "fault-still")
	v, a := e.serve(t)
	s := a.session(nil)
	a.well(10*time.Second, s)
	calls := []struct {
		codes, tool string
		args        args
	}{
		{"engine_unavailable unknown_outcome", "exec", args{"session_id": s, "command": "true"}},
		{"engine_unavailable unknown_outcome", "session_create", args{}},
		{"engine_unavailable unknown_outcome", "upload", args{"session_id": s, "path": "x", "content": "x"}},
	}
	e.signal(syscall.SIGSTOP)
	stood := time.Now()
	done := make(chan struct{})
	for _, c := range calls {
		go func() {
			defer func() { done <- struct{}{} }()
			a.typed(deedLimit, c.codes, c.tool, c.args)
		}()
	}
	unready(t, v, 10*time.Second)
	for range calls {
		<-done
	}
	for time.Since(stood) < long(0, 2*time.Minute) {
		a.typed(deedLimit, "engine_unavailable unknown_outcome", "exec", args{"session_id": s, "command": "true"})
	}
	e.signal(syscall.SIGCONT)
	a.well(10*time.Second, s)
	ready(t, v, 10*time.Second)
	eventually(t, 40*time.Second, "what nobody got is gone", func() bool {
		found, err := e.api.ContainerList(t.Context(), container.ListOptions{All: true})
		n := 0
		for _, c := range found {
			if c.Labels["caisson.id"] != "" {
				n++
			}
		}
		return err == nil && n == 1 && len(a.list()) == 1
	})
}
