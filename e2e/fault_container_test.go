package e2e_test

import (
	"context"
	"testing"
	"time"

	"github.com/docker/docker/api/types/container"
)

// A container is removed behind our back: the call in flight ends as lost, and the
// handle says once and for all that the session is gone, and why. Another one of the
// same server knows nothing of it.
func TestAttackT61_AContainerRemovedBehindOurBackIsALostSession(t *testing.T) {
	t.Parallel()
	a := connect(t, httpModern)
	s, other := a.session(nil), a.session(nil)
	f := a.fly(s, 615)
	removed := time.Now()
	if err := the.engine.api.ContainerRemove(t.Context(), the.engine.container(t, s).ID, container.RemoveOptions{Force: true, RemoveVolumes: true}); err != nil {
		t.Fatal(err)
	}
	a.lost(f, removed, 15*time.Second, "container_gone")
	for _, c := range []struct {
		tool string
		args args
	}{
		{"exec", args{"command": "true"}}, {"upload", args{"path": "x", "content": "x"}}, {"download", args{"path": "x"}}, {"list_files", args{}},
	} {
		c.args["session_id"] = s
		a.typed(10*time.Second, "session_lost", c.tool, c.args)
	}
	for _, l := range a.list() {
		if l.SessionID == s {
			t.Error("it is still listed")
		}
	}
	a.well(10*time.Second, other)
}

// A container is stopped behind our back, as a restart of the engine's host does: the
// next call starts it again, its files are there (D28).
func TestBugLC07_AContainerStoppedBehindOurBackIsStartedAgain(t *testing.T) {
	t.Parallel()
	a := connect(t, sseLegacy)
	s := a.session(nil)
	a.sh(s, "echo precious > file")
	f := a.fly(s, 616)
	stopped := time.Now()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	if err := the.engine.api.ContainerKill(ctx, the.engine.container(t, s).ID, "KILL"); err != nil {
		t.Fatal(err)
	}
	a.lost(f, stopped, 15*time.Second, "container_gone")
	if got := a.sh(s, "cat file"); got != "precious\n" {
		t.Errorf("%q", got)
	}
	if n := a.processes(s, "sleep 616"); n != 0 {
		t.Errorf("%d processes have outlived their container", n)
	}
}

// A command that takes more memory than its session has is killed by the kernel, which
// is told on evidence (D33), and the session lives on.
func TestAttackT61_OutOfMemoryIsToldAndTheSessionLivesOn(t *testing.T) {
	t.Parallel()
	a := connect(t, httpLegacy)
	s := a.session(args{"memory_mb": 32})
	a.sh(s, "echo precious > file")
	x := a.exec(s, `exec dd if=/dev/zero of=/dev/null bs=512M count=1`)
	if !x.exited(137) || x.OOMKilled == nil || !*x.OOMKilled {
		t.Errorf("%v, oom_killed %v", x, x.OOMKilled)
	}
	if got := a.sh(s, "cat file"); got != "precious\n" {
		t.Errorf("%q", got)
	}
	y := a.exec(s, "kill -9 $$")
	if !y.exited(137) || y.OOMKilled == nil || *y.OOMKilled {
		t.Errorf("a kill that was no want of memory: %v, oom_killed %v", y, y.OOMKilled)
	}
}
