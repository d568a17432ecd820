package e2e_test

import (
	"strings"
	"testing"
	"time"

	"github.com/docker/docker/api/types/container"
)

// The link goes down and comes back: what is attached ends by itself, new calls are
// refused, and afterwards everything is where it was.
func TestAttackT66_ACutLinkIsNoticedAndHealed(t *testing.T) {
	t.Parallel()
	e := privateEngine(t, "fault-cut")
	v, a := e.serve(t)
	s := a.session(nil)
	a.sh(s, "echo precious > file")
	f := a.fly(s, 613)
	e.script("cut")
	cut := time.Now()
	a.typed(30*time.Second, "engine_unavailable", "exec", args{"session_id": s, "command": "true"})
	a.typed(30*time.Second, "engine_unavailable", "session_create", args{})
	unready(t, v, 10*time.Second)
	// Keep-alive takes 20 s, the look at what became of the command 10 s.
	x := a.lost(f, cut, 35*time.Second, "stream_cut")
	for time.Since(cut) < long(0, 30*time.Second) {
		a.typed(30*time.Second, "engine_unavailable", "exec", args{"session_id": s, "command": "true"})
	}
	e.script("heal")
	a.well(15*time.Second, s)
	ready(t, v, 15*time.Second)
	if got := a.sh(s, "cat file"); got != "precious\n" {
		t.Errorf("%q", got)
	}
	a.ok("kill", args{"exec_id": x.ExecID})
	eventually(t, 10*time.Second, "the lost command can be killed", func() bool { return a.processes(s, "sleep 613") == 0 })
	if n := len(a.list()); n != 1 {
		t.Errorf("%d sessions, one was made", n)
	}
}

// A firewall forgets the flows and says nothing: a quiet command whose connection is
// gone is known to be lost within a minute, and an idle connection holds up no call.
func TestBugEN03_AttackT66_ASilentLossIsNoticed(t *testing.T) {
	t.Parallel()
	e := privateEngine(t, "fault-silent")
	v, a := e.serve(t)
	s := a.session(nil)
	f := a.fly(s, 614)
	heal := e.silent()
	gone := time.Now()
	done := make(chan struct{})
	go func() {
		defer close(done)
		a.typed(deedLimit, "engine_unavailable unknown_outcome", "exec", args{"session_id": s, "command": "true"})
	}()
	unready(t, v, 10*time.Second)
	x := a.lost(f, gone, deedLimit, "stream_cut")
	<-done
	for time.Since(gone) < long(0, 5*time.Minute) {
		a.typed(deedLimit, "engine_unavailable unknown_outcome", "exec", args{"session_id": s, "command": "true"})
	}
	heal()
	a.well(20*time.Second, s)
	ready(t, v, 15*time.Second)
	a.ok("kill", args{"exec_id": x.ExecID})
	eventually(t, 10*time.Second, "the lost command can be killed", func() bool { return a.processes(s, "sleep 614") == 0 })
}

// The engine's disk is full: creates and writes say so, nothing half-made is left, and
// with room again everything works.
func TestAttackT67_AFullDiskIsSaidAndLeavesNothing(t *testing.T) {
	t.Parallel()
	e := privateEngine(t, "fault-full")
	v, a := e.serve(t)
	s := a.session(nil)
	room := e.fill()
	x := a.exec(s, "dd if=/dev/zero of=big bs=64k 2>&1; dd if=/dev/zero of=small bs=1k 2>&1; echo and on >>small")
	if !strings.Contains(x.Stdout, "No space left") {
		t.Fatalf("the disk is not full: %v", x)
	}
	a.typed(deedLimit, "no_space", "upload", args{"session_id": s, "path": "f", "content": strings.Repeat("x", 1<<20)})
	a.fails("file_not_found", "download", args{"session_id": s, "path": "f"})
	r := a.do("session_create", args{})
	if r.IsError {
		if code := r.code(); code != "no_space" && code != "capacity" {
			t.Errorf("session_create: %v %s", r.Meta, r.text())
		}
	} else { // a container needs little
		a.ok("session_destroy", args{"session_id": into[listed](t, r).SessionID})
	}
	room()
	a.well(10*time.Second, s)
	a.ok("upload", args{"session_id": s, "path": "f", "content": strings.Repeat("x", 1<<20)})
	a.session(nil)
	ready(t, v, 10*time.Second)
	found, err := e.api.ContainerList(t.Context(), container.ListOptions{All: true})
	n := 0
	for _, c := range found {
		if c.Labels["caisson.id"] != "" {
			n++
		}
	}
	if err != nil || n != 2 {
		t.Errorf("%d containers for two sessions: %v", n, err)
	}
}
