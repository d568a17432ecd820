package mcp_test

import (
	"strings"
	"testing"
)

func TestExecReturnsHowTheCommandEnded(t *testing.T) {
	for _, version := range []string{legacy, modern} {
		c := newRig(t).dial("inprocess", version)
		got := c.ok("exec", args{"command": "echo hello; echo no >&2; exit 3"})
		if got.str("status") != "exited" || got.num("exit_code") != 3 || got.str("stdout") != "hello\n" || got.str("stderr") != "no\n" {
			t.Errorf("%s: %v", version, got.fields)
		}
		if got.fields["session_created"] != true || got.fields["truncated"] != false || got.fields["output_complete"] != true {
			t.Errorf("%s: %v", version, got.fields)
		}
		for _, part := range []string{"exited with code 3", "hello\n", "no\n", got.str("exec_id"), got.str("session_id")} {
			if !strings.Contains(got.text, part) {
				t.Errorf("text lacks %q:\n%s", part, got.text)
			}
		}
		if again := c.ok("exec", args{"argv": []string{"pwd"}, "cwd": "sub"}); again.str("stdout") != "/workspace/sub\n" || again.fields["session_created"] != nil || again.str("session_id") != got.str("session_id") {
			t.Errorf("%v", again.fields)
		}
	}
}
