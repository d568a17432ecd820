package mcp_test

import (
	"strings"
	"testing"

	"caisson/sandbox"
	"caisson/sandbox/sandboxtest"
)

// TestADeadEngineIsSaidByTheList: an empty list would pass for all being
// well.
func TestADeadEngineIsSaidByTheList(t *testing.T) {
	r := newRig(t)
	c := r.dial("inprocess", legacy)
	dead := sandbox.Errorf("list sessions", sandbox.KindUnavailable, "the engine at tcp://192.0.2.1:2376 refused the connection")
	r.fake.Fail(sandboxtest.OpList, dead)
	if got := c.want("engine_unavailable", "session_list", nil); !strings.Contains(got.text, "192.0.2.1") {
		t.Errorf("%s", got.text)
	}
	r.fake.Fail(sandboxtest.OpList, nil)
	if got := c.ok("session_list", nil); len(got.list("sessions")) != 0 {
		t.Errorf("%v", got.fields)
	}
	id := c.ok("session_create", nil).str("session_id")
	r.fake.Fail(sandboxtest.OpList, dead)
	for _, a := range []args{nil, {"session_id": id}} {
		got := c.ok("session_list", a)
		if len(got.list("sessions")) != 1 || !strings.Contains(got.text, "engine_unavailable") {
			t.Errorf("%v: %s", a, got.text)
		}
	}
	r.fake.Fail(sandboxtest.OpList, nil)
}
