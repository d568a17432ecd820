package e2e_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/docker/docker/api/types/container"
)

// grace is how long after its timeout a command's result may take: the bound of
// a stop, and a busy machine.
const grace = 6 * time.Second

func TestBugEX01_AChildThatHoldsTheOutputDoesNotHoldTheCall(t *testing.T) {
	t.Parallel()
	a := connect(t, stdioModern)
	s := a.session(nil)
	for _, command := range []string{"sleep 300 & echo started", "sleep 300 >/dev/null & echo started"} {
		began := time.Now()
		x := a.exec(s, command, args{"timeout_seconds": 30, "wait_seconds": 1})
		took(t, began, 4*time.Second, command)
		if x.Status != "running" || !x.OutputHeld || x.CommandExitCode == nil || *x.CommandExitCode != 0 || x.Stdout != "started\n" || x.ExitCode != nil {
			t.Errorf("%s: %v", command, x)
		}
		a.ok("kill", args{"exec_id": x.ExecID})
	}
	if n := a.processes(s, "sleep 300"); n != 0 {
		t.Errorf("%d sleeps left after kill", n)
	}
}

func TestBugEX02_ATimeoutStopsTheWholeGroup(t *testing.T) {
	t.Parallel()
	a := connect(t, stdioLegacy)
	s := a.session(nil)
	began := time.Now()
	x := a.exec(s, `sleep 301 & while :; do echo x >> /tmp/t; sleep 0.2; done`, args{"timeout_seconds": 2})
	took(t, began, 2*time.Second+grace, "the call")
	if x.Status != "timed_out" || x.ExitCode != nil && *x.ExitCode == 0 {
		t.Errorf("%v", x)
	}
	first := a.sh(s, "wc -l < /tmp/t")
	if first == "0\n" {
		t.Error("the loop never wrote: the test shows nothing")
	}
	if second := a.sh(s, "sleep 2; wc -l < /tmp/t"); second != first {
		t.Errorf("it goes on writing: %q, then %q", first, second)
	}
	if n := a.processes(s, "sleep 301"); n != 0 {
		t.Errorf("%d children left", n)
	}
}

func TestBugEX03_ATimeoutReturnsThoughTheCommandIgnoresSignals(t *testing.T) {
	t.Parallel()
	a := connect(t, httpModern)
	s := a.session(nil)
	began := time.Now()
	x := a.exec(s, `echo part; trap "" TERM; sleep 120 & sleep 120`, args{"timeout_seconds": 2})
	took(t, began, 2*time.Second+grace, "the call")
	if x.Status != "timed_out" || x.Stdout != "part\n" {
		t.Errorf("%v", x)
	}
	if n := a.processes(s, "sleep 120"); n != 0 {
		t.Errorf("%d sleeps left", n)
	}
}

const zombies = `cat /proc/[0-9]*/status 2>/dev/null | grep -c "^State:.*Z"`

func TestBugEX04_OrphansAreCollected(t *testing.T) {
	t.Parallel()
	a := connect(t, httpLegacy)
	s := a.session(nil)
	a.sh(s, `i=0; while [ $i -lt 50 ]; do (sleep 0.2 >/dev/null 2>&1 &); i=$((i+1)); done`)
	eventually(t, 10*time.Second, "the orphans have ended", func() bool { return a.processes(s, "sleep 0.2") == 0 })
	eventually(t, 5*time.Second, "no zombie is left", func() bool { return strings.TrimSpace(a.exec(s, zombies).Stdout) == "0" })
}

func TestBugEX05_OutOfMemoryIsToldApart(t *testing.T) {
	t.Parallel()
	a := connect(t, sseLegacy)
	s := a.session(args{"memory_mb": 64})
	oom := func(x execOut) bool { return x.OOMKilled != nil && *x.OOMKilled }
	if x := a.exec(s, "kill -9 $$"); !x.exited(137) || oom(x) {
		t.Errorf("a kill of its own: %v, oom %v", x, oom(x))
	}
	if x := a.exec(s, "sleep 60", args{"timeout_seconds": 1}); x.Status != "timed_out" || oom(x) {
		t.Errorf("a timeout: %v, oom %v", x, oom(x))
	}
	if x := a.exec(s, "tail /dev/zero"); x.ExitCode == nil || *x.ExitCode == 0 || !oom(x) {
		t.Errorf("out of memory: %v, oom %v", x, oom(x))
	}
	if out := a.sh(s, "echo ok"); out != "ok\n" {
		t.Errorf("afterwards: %q", out)
	}
}

// The command is so short that its end races everything: whatever is read too
// early shows as a wrong code or as missing output.
func TestBugEX06_FiveHundredShortCommandsAllTellTheirCodeAndOutput(t *testing.T) {
	a := connect(t, httpLegacy)
	const sessions, together, total = 4, 20, 500
	var ids [sessions]string
	for i := range ids {
		ids[i] = a.session(nil)
	}
	jobs := make(chan int, total)
	for i := range total {
		jobs <- i
	}
	close(jobs)
	var wg sync.WaitGroup
	for range together {
		wg.Go(func() {
			for i := range jobs {
				if err := shortCommand(t.Context(), a, ids[i%sessions]); err != nil {
					t.Errorf("command %d: %v", i, err)
				}
			}
		})
	}
	wg.Wait()
	for _, id := range ids {
		eventually(t, 5*time.Second, "no zombie is left", func() bool { return strings.TrimSpace(a.exec(id, zombies).Stdout) == "0" })
	}
}

func shortCommand(ctx context.Context, c conn, session string) error {
	r, err := c.call(ctx, "exec", args{"session_id": session, "argv": []string{"sh", "-c", "echo running; exit 7"}})
	if err != nil {
		return err
	}
	x := execOut{}
	if err := unmarshal(r, &x); err != nil {
		return fmt.Errorf("%w: %s", err, clip(r.text()))
	}
	if r.IsError || !x.exited(7) || x.Stdout != "running\n" || x.Stderr != "" || x.StdoutBytes != 8 || !x.OutputComplete || x.Truncated {
		return fmt.Errorf("%v: %s", x, clip(r.text()))
	}
	return nil
}

func TestBugEX07_AContainerThatIsGoneIsALostSession(t *testing.T) {
	t.Parallel()
	a := connect(t, stdioModern)
	for _, how := range []string{"removed", "killed"} {
		s := a.session(args{"labels": args{"name": "again"}})
		box := the.engine.container(t, s)
		var err error
		if how == "removed" {
			err = the.engine.api.ContainerRemove(t.Context(), box.ID, container.RemoveOptions{Force: true, RemoveVolumes: true})
		} else {
			err = the.engine.api.ContainerKill(t.Context(), box.ID, "KILL")
		}
		if err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		r := a.do("exec", args{"session_id": s, "command": "echo hi"})
		took(t, began, 5*time.Second, "an exec in a session whose container was "+how)
		switch {
		case how == "removed" && r.code() != "session_lost":
			t.Errorf("removed: %v %s", r.Meta, r.text())
		case how == "killed" && !r.IsError:
			// A stopped container is started again (D28).
			if x := into[execOut](t, r); !x.exited(0) || x.Stdout != "hi\n" {
				t.Errorf("killed: %v", x)
			}
		case how == "killed" && r.code() != "session_lost":
			t.Errorf("killed: %v %s", r.Meta, r.text())
		}
		for _, listed := range a.list() {
			if how == "removed" && listed.SessionID == s && listed.State == "running" {
				t.Errorf("still listed as running: %+v", listed)
			}
		}
		a.ok("session_destroy", args{"session_id": s})
	}
	again := a.session(args{"labels": args{"name": "again"}})
	if out := a.sh(again, "echo hi"); out != "hi\n" {
		t.Errorf("a new session: %q", out)
	}
}

// listed is one session of session_list.
type listed struct {
	SessionID string `json:"session_id"`
	State     string `json:"state"`
	Network   string `json:"network"`
}

func (a *actor) list() []listed {
	a.t.Helper()
	return into[struct{ Sessions []listed }](a.t, a.ok("session_list", args{})).Sessions
}
