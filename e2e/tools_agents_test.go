package e2e_test

import (
	"strings"
	"testing"
)

const agentKey = "agent-key-5d0c71"

// An agent of the image is asked, and gets its key from its rule's env alone; one
// that only the manifest knows fails by name; one that nobody declared never reaches
// the engine.
func TestAGT01_AGT02_AGT03_AGT04_AGT05_AGT06_AGT07_AgentsThroughTheServer(t *testing.T) {
	t.Parallel()
	v := serveTools(t, `agents:
  - {name: dummy, agent_ref: dummy, description: Repeats the question.}
  - {name: keyless, agent_ref: dummy, description: Repeats the question.}
  - {name: nobody, agent_ref: nobody.knows, description: Is not in the image.}
execution_policy:
  rules:
    dummy: {name: docker, options: {env: {DUMMY_KEY: "${E2E_AGENT_KEY}"}}}
    keyless: {name: docker, options: {mode: ephemeral}}
    "*": docker
`, "E2E_AGENT_KEY="+agentKey)
	a := join(t, v, httpLegacy)
	r := a.ok("dummy", args{"question": "What now?"})
	if d := into[declared](t, r); !strings.HasPrefix(d.text(), "asked: ") || !strings.Contains(d.text(), "What now?") || !strings.HasSuffix(d.text(), "key: [redacted]") || strings.Contains(r.text(), agentKey) {
		t.Errorf("%+v", d)
	}
	if d := a.tool("keyless", args{"question": "And now?"}); !strings.Contains(d.text(), "And now?") || !strings.HasSuffix(d.text(), "key: none") {
		t.Errorf("an agent without a key in its rule's env: %+v", d)
	}
	if d := a.toolFails("nobody", args{"question": "Who?"}); !strings.Contains(d.Error, "nobody.knows") || !strings.Contains(d.Error, "dummy") {
		t.Errorf("an agent that the image does not know: %q", d.Error)
	}
	for _, wrong := range []args{{}, {"question": 7}, {"query": "x"}} {
		a.fails("invalid_argument", "dummy", wrong)
	}
	boxes := len(the.engine.toolBoxes(t, v.instance))
	for name, arguments := range map[string]args{"reviewer": {"question": "x"}, "nobody.knows": {"question": "x"}} {
		if r, err := a.call(t.Context(), name, arguments); err == nil && !r.IsError {
			t.Errorf("%s was asked: %s", name, r.text())
		}
	}
	if n := len(the.engine.toolBoxes(t, v.instance)); n != boxes {
		t.Errorf("what nobody declared has made a container")
	}
}
