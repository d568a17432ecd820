package e2e_test

import (
	"context"
	"encoding/json"
	"testing"
	"time"
)

// family is a command with children of every kind that might outlive it: in the
// group, deaf, stopped, and without a terminal; and one that left the group, which
// lives on (D24).
const family = `trap '' TERM HUP INT; sleep 733 & nohup sleep 733 >/dev/null 2>&1 & (trap '' TERM; sleep 733) &
(sleep 733 & sleep 0.5; kill -STOP $!) & (sleep 733 &) & setsid sleep 734 >/dev/null 2>&1 & sleep 733`

func (a *actor) familyGone(session, how string) {
	a.t.Helper()
	eventually(a.t, 10*time.Second, how+": the whole group is gone", func() bool { return a.processes(session, "sleep 733") == 0 })
	if n := a.processes(session, "sleep 734"); n != 1 {
		a.t.Errorf("%s: %d of 1 that left the group live", how, n)
	}
	a.sh(session, `for p in /proc/[0-9]*; do case $(tr '\0' ' ' <$p/cmdline) in "sleep 734 "*) kill -9 ${p#/proc/} ;; esac; done 2>/dev/null; true`)
}

// TestAttackT73_STP13_CancelledCallsLeaveNothingOfTheirGroups gives calls up in every
// way that a client has, and cancels again while the stop is under way.
func TestAttackT73_STP13_CancelledCallsLeaveNothingOfTheirGroups(t *testing.T) {
	t.Parallel()
	for _, way := range []via{stdioLegacy, stdioModern} {
		v := start(t, launch{})
		a, w := attach(t, v, way)
		s := a.session(nil)
		id, _, err := w.begin("tools/call", callParams("exec", args{"session_id": s, "command": family, "shell": "sh"}))
		if err != nil {
			t.Fatal(err)
		}
		eventually(t, 20*time.Second, "all of it runs", func() bool { return a.processes(s, "sleep 733") == 6 && a.processes(s, "sleep 734") == 1 })
		for range 3 {
			if err := w.notify("notifications/cancelled", map[string]any{"requestId": json.RawMessage(id)}); err != nil {
				t.Fatal(err)
			}
		}
		a.familyGone(s, string(way))
	}
	for _, way := range []via{httpLegacy, httpModern, sseLegacy} {
		a, leaving := connect(t, way), connect(t, way)
		s := a.session(nil)
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() {
			_, err := leaving.call(ctx, "exec", args{"session_id": s, "command": family, "shell": "sh"})
			ended <- err
		}()
		eventually(t, 20*time.Second, "all of it runs", func() bool { return a.processes(s, "sleep 733") == 6 && a.processes(s, "sleep 734") == 1 })
		cancel()
		_ = leaving.close()
		if err := <-ended; err == nil {
			t.Errorf("%s: a cancelled call was answered as if nothing had been", way)
		}
		a.familyGone(s, string(way))
	}
}

// TestAttackT73_EndsOfStdioClients ends the input of a stdio server while its command
// runs, as the death of its client does.
func TestAttackT73_EndsOfStdioClients(t *testing.T) {
	t.Parallel()
	v := start(t, launch{})
	a, w := attach(t, v, stdioLegacy)
	s := a.session(nil)
	if _, _, err := w.begin("tools/call", callParams("exec", args{"session_id": s, "command": family, "shell": "sh"})); err != nil {
		t.Fatal(err)
	}
	eventually(t, 20*time.Second, "it runs", func() bool { return a.processes(s, "sleep 733") == 6 })
	box := the.engine.container(t, s).ID
	began := time.Now()
	_ = v.stdin.Close()
	v.code(t, 20*time.Second)
	took(t, began, 5*time.Second+grace, "the end after stdin's")
	eventually(t, 10*time.Second, "its session is gone", func() bool { _, err := the.engine.api.ContainerInspect(t.Context(), box); return err != nil })
}
