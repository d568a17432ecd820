package e2e_test

import (
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"
)

// again starts a server under the instance of one that has ended.
func again(t *testing.T, v *server, l launch) *server {
	t.Helper()
	l.env = append(l.env, "SANDBOX_DOCKER_INSTANCE="+v.instance)
	w := start(t, l)
	w.instance = v.instance
	return w
}

// crash ends a server as the kernel's out-of-memory killer would.
func (v *server) crash(t *testing.T) {
	t.Helper()
	if err := v.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	v.code(t, 10*time.Second)
}

func TestTTL08_AttackT60_AClientGoesOnAfterTheServerWasKilled(t *testing.T) {
	t.Parallel()
	v := start(t, launch{http: true})
	a := join(t, v, httpLegacy)
	key := "kept-" + v.instance
	ephemeral := a.session(args{"env": map[string]string{"K": "secret"}, "ttl_seconds": 600})
	persistent := a.session(args{"workspace_key": key, "env": map[string]string{"K": "v"}})
	for _, id := range []string{ephemeral, persistent} {
		a.ok("upload", args{"session_id": id, "path": "data", "content": "of " + id})
	}
	long := into[execOut](t, a.ok("exec", args{"session_id": ephemeral, "command": "echo before; sleep 600", "wait_seconds": 1}))
	short := into[execOut](t, a.ok("exec", args{"session_id": persistent, "command": "sleep 600", "timeout_seconds": 20, "wait_seconds": 0}))
	v.crash(t)

	w := again(t, v, launch{http: true})
	b := join(t, w, httpLegacy)
	for _, id := range []string{ephemeral, persistent} {
		if got := b.ok("download", args{"session_id": id, "path": "data"}).text(); !strings.Contains(got, "of "+id) {
			t.Errorf("%s: %s", id, got)
		}
	}
	if got := b.sh(ephemeral, `echo "$K"`); got != "secret\n" {
		t.Errorf("the session's environment: %q", got)
	}
	for _, x := range []execOut{long, short} {
		got := into[execOut](t, b.do("exec_output", args{"exec_id": x.ExecID}))
		if got.Status != "lost" || got.LostReason != "server_restarted" || got.ExitCode != nil || got.OutputComplete {
			t.Errorf("%s", got)
		}
	}
	if n := b.processes(ephemeral, "sleep 600"); n != 1 {
		t.Errorf("%d of the command run", n)
	}
	if got := into[execOut](t, b.do("kill", args{"exec_id": long.ExecID})); !got.Killed {
		t.Errorf("kill: %s", got)
	}
	if n := b.processes(ephemeral, "sleep 600"); n != 0 {
		t.Errorf("%d of the command run after it was killed", n)
	}
	eventually(t, 40*time.Second, "a command whose timeout was due has ended", func() bool { return b.processes(persistent, "sleep 600") == 0 })
	// What the engine has is what a create is compared with (D10).
	same := b.ok("session_create", args{"workspace_key": key, "env": map[string]string{"K": "v"}})
	if !strings.Contains(same.text(), persistent) {
		t.Errorf("the same spec: %s", same.text())
	}
	b.fails("workspace_in_use", "session_create", args{"workspace_key": key, "env": map[string]string{"K": "w"}})
	b.ok("session_destroy", args{"session_id": persistent})
	b.ok("session_destroy", args{"session_id": ephemeral})
	b.ok("workspace_delete", args{"workspace_key": key})
}

func TestAttackT74_BugLC02_ASharedEndpointKeepsItsSessionsWhenItEnds(t *testing.T) {
	t.Parallel()
	v := start(t, launch{http: true})
	a := join(t, v, httpLegacy)
	id := a.session(nil)
	quick := into[execOut](t, a.ok("exec", args{"session_id": id, "command": "sleep 2; echo done > done", "wait_seconds": 0}))
	into[execOut](t, a.ok("exec", args{"session_id": id, "command": "sleep 599", "wait_seconds": 0}))
	type answer struct {
		result
		err error
	}
	graced := make(chan answer, 1)
	go func() { // asked before the grace begins, which a busy machine may use up between two calls
		r, err := a.call(t.Context(), "exec_output", args{"exec_id": quick.ExecID, "wait_seconds": 30})
		graced <- answer{r, err}
	}()
	if err := v.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	a.fails("engine_unavailable", "session_create", nil)
	if got := <-graced; got.err != nil || !into[execOut](t, got.result).exited(0) {
		t.Errorf("a command that had its grace: %v, %s", got.err, got.text())
	}
	if code := v.code(t, 25*time.Second); code != 0 {
		t.Errorf("exit status %d:\n%s", code, v.stderr)
	}
	b := join(t, again(t, v, launch{http: true}), httpLegacy)
	if got := b.sh(id, "cat done"); got != "done\n" {
		t.Errorf("%q", got)
	}
	if n := b.processes(id, "sleep 599"); n != 0 {
		t.Errorf("%d commands run on", n)
	}
}

// replaced is the exit status of a server whose instance another has taken.
const replaced = 3

func TestAttackT63_TwoServersOfOneInstance(t *testing.T) {
	t.Parallel()
	v := start(t, launch{http: true, env: []string{"SANDBOX_DOCKER_INSTANCE_GRACE_SECONDS=10"}})
	a := join(t, v, httpLegacy)
	id := a.session(nil)
	b := join(t, again(t, v, launch{http: true, env: []string{"SANDBOX_DOCKER_INSTANCE_GRACE_SECONDS=10"}}), httpLegacy)
	if got := b.sh(id, "echo here"); got != "here\n" {
		t.Errorf("%q", got)
	}
	if code := v.code(t, 30*time.Second); code != replaced || !strings.Contains(v.stderr.String(), "taken") {
		t.Errorf("exit status %d:\n%s", code, v.stderr)
	}
	if got := b.sh(id, "echo still"); got != "still\n" {
		t.Errorf("%q", got)
	}
}

// A server that stood still until its lease was over, and another server had taken its
// instance, wakes up in the midst of its work: nothing of that reaches the engine.
func TestAttackT71_AServerThatWakesAfterItsLeaseWritesNothing(t *testing.T) {
	t.Parallel()
	const lease = 10 // seconds; the grace bounds the lease
	l := launch{http: true, env: []string{fmt.Sprintf("SANDBOX_DOCKER_INSTANCE_GRACE_SECONDS=%d", lease), "SANDBOX_DOCKER_REAP_INTERVAL_SECONDS=2"}}
	v := start(t, l)
	a := join(t, v, httpLegacy)
	id := a.session(args{"ttl_seconds": 600})
	idle := a.session(args{"ttl_seconds": 5}) // its end falls into the time that the first stands still
	long := into[execOut](t, a.ok("exec", args{"session_id": id, "command": "sleep 598", "wait_seconds": 0}))
	if err := v.cmd.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	stopped := time.Now()
	b := join(t, again(t, v, l), httpLegacy)
	made := b.session(nil)
	late := make(chan string, 3) // what the first answers when it wakes
	for tool, arguments := range map[string]args{
		"session_create": {}, "session_destroy": {"session_id": id}, "kill": {"exec_id": long.ExecID},
	} {
		go func() {
			r, err := a.call(t.Context(), tool, arguments)
			if err == nil && !r.IsError {
				late <- tool + " succeeded: " + clip(r.text())
				return
			}
			late <- ""
		}()
	}
	eventually(t, time.Minute, "the lease of the first is over, and so is the idle session", func() bool {
		b.sh(id, "true")
		return time.Since(stopped) > (lease+2)*time.Second && b.do("exec", args{"session_id": idle, "argv": []string{"true"}}).IsError
	})
	if err := v.cmd.Process.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	for range cap(late) {
		if text := <-late; text != "" {
			t.Error(text)
		}
	}
	if code := v.code(t, 30*time.Second); code != replaced || !strings.Contains(v.stderr.String(), "taken") {
		t.Errorf("exit status %d:\n%s", code, v.stderr)
	}
	if n := len(onStage(t).engine.of(t, v.instance)); n != 2 {
		t.Errorf("%d sessions, want those of the second server alone", n)
	}
	for _, session := range []string{id, made} {
		if got := b.sh(session, "echo here"); got != "here\n" {
			t.Errorf("%q", got)
		}
	}
	if n := b.processes(id, "sleep 598"); n != 1 {
		t.Errorf("%d of the command run", n)
	}
}

func TestDUR05_D11_TwoServersWantOneWorkspace(t *testing.T) {
	t.Parallel()
	v, w := start(t, launch{http: true}), start(t, launch{http: true})
	a, b := join(t, v, httpLegacy), join(t, w, httpLegacy)
	key := "shared-" + v.instance
	id := a.session(args{"workspace_key": key})
	b.fails("workspace_in_use", "session_create", args{"workspace_key": key})
	b.fails("workspace_in_use", "workspace_delete", args{"workspace_key": key})
	a.ok("session_destroy", args{"session_id": id})
	id = b.session(args{"workspace_key": key})
	b.ok("session_destroy", args{"session_id": id})
	b.ok("workspace_delete", args{"workspace_key": key})
}

func TestTTL09_AttackT69_SoakADeadServersSessionsGo(t *testing.T) {
	t.Parallel()
	quick := []string{"SANDBOX_DOCKER_INSTANCE_GRACE_SECONDS=10", "SANDBOX_DOCKER_REAP_INTERVAL_SECONDS=2"}
	v, w := start(t, launch{http: true, env: quick}), start(t, launch{http: true, env: quick})
	a, b := join(t, v, httpLegacy), join(t, w, httpLegacy)
	dying := a.session(args{"ttl_seconds": 5})
	ours := b.session(args{"ttl_seconds": 120})
	span := time.Duration(times(t, "CAISSON_USED_SECONDS", 8)) * time.Second
	for began := time.Now(); time.Since(began) < span; {
		a.sh(dying, "true")
		<-time.After(2 * time.Second)
	}
	v.crash(t)
	began := time.Now()
	eventually(t, 40*time.Second, "the session of the dead server is gone", func() bool { return len(onStage(t).engine.all(t, v.instance)) == 0 })
	// Its lease is part of what is gone; a third of a lease, the grace and a sweep are its bound.
	took := time.Since(began)
	t.Logf("gone after %v: ttl 5 s, grace 10 s, a sweep each 2 s", took)
	if took < 8*time.Second {
		t.Errorf("gone after %v: nobody could know that its server was dead", took)
	}
	if got := b.sh(ours, "echo here"); got != "here\n" {
		t.Errorf("%q", got)
	}
}

func TestTTL05_BugLC03_SoakAQuietCommandOutlivesTheIdleTime(t *testing.T) {
	t.Parallel()
	v := start(t, launch{http: true, env: []string{"SANDBOX_DOCKER_REAP_INTERVAL_SECONDS=1"}})
	a := join(t, v, httpLegacy)
	ttl := times(t, "CAISSON_QUIET_TTL_SECONDS", 5)
	id := a.session(args{"ttl_seconds": ttl})
	started := into[execOut](t, a.ok("exec", args{"session_id": id, "command": fmt.Sprintf("sleep %d; echo alive", ttl*9/4), "wait_seconds": 0}))
	got := into[execOut](t, a.ok("exec_output", args{"exec_id": started.ExecID, "wait_seconds": 45}))
	if got.Status == "running" {
		got = into[execOut](t, a.ok("exec_output", args{"exec_id": started.ExecID, "wait_seconds": 30}))
	}
	if !got.exited(0) || got.Stdout != "alive\n" {
		t.Fatalf("%s", got)
	}
	ended := time.Now()
	eventually(t, time.Duration(ttl+25)*time.Second, "the idle session is gone", func() bool { return len(onStage(t).engine.of(t, v.instance)) == 0 })
	idle := time.Since(ended)
	t.Logf("gone after %v of idleness, its ttl was %d s", idle, ttl)
	if idle < time.Duration(ttl-1)*time.Second {
		t.Errorf("gone after %v of idleness", idle)
	}
	a.fails("session_lost", "exec", args{"session_id": id, "command": "true"})
}
