package mcp_test

import (
	"strings"
	"testing"
)

// TestKillOfALostCommandSaysNoMoreThanIsKnown: nobody saw the end of a lost
// command, so no answer may say that it had ended.
func TestKillOfALostCommandSaysNoMoreThanIsKnown(t *testing.T) {
	r := newRig(t)
	c := r.dial("inprocess", legacy)
	cut := c.want("lost", "exec", args{"command": "cut"})
	for signal, words := range map[string]string{"KILL": "no process of the command", "TERM": "no signal was sent"} {
		got := c.ok("kill", args{"exec_id": cut.str("exec_id"), "signal": signal})
		if got.fields["killed"] != false || strings.Contains(got.text, "had ended") || !strings.Contains(got.text, words) {
			t.Errorf("%s: %s", signal, got.text)
		}
	}
	gone := c.ok("exec", args{"command": "echo x; sleep 100", "wait_for": "x"})
	r.fake.Vanish(gone.str("session_id"))
	eventually(t, "the loss is seen", func() bool {
		return c.call("exec_output", args{"exec_id": gone.str("exec_id")}).code == "lost"
	})
	got := c.ok("kill", args{"exec_id": gone.str("exec_id")})
	if got.fields["killed"] != false || !strings.Contains(got.text, "container is gone") {
		t.Errorf("%s", got.text)
	}
}
