package cli

import (
	"strings"
	"testing"
)

// TestAnAddressWithoutHTTPIsSaidToBeIgnored: somebody who names one waits for a
// listener that never comes.
func TestAnAddressWithoutHTTPIsSaidToBeIgnored(t *testing.T) {
	_, p := run(t, []string{"SANDBOX_DOCKER_HOST=tcp://192.0.2.1:2376"}, "serve", "--addr", "127.0.0.1:0")
	if text := p.stderr.String(); !strings.Contains(text, "--addr is ignored") {
		t.Errorf("standard error: %s", text)
	}
	_, p = run(t, []string{"SANDBOX_DOCKER_HOST=tcp://192.0.2.1:2376"}, "serve")
	if text := p.stderr.String(); strings.Contains(text, "ignored") {
		t.Errorf("standard error: %s", text)
	}
}

func TestHelpSaysWhatTheProgramDoesWithoutACommand(t *testing.T) {
	out, _ := run(t, nil, "--help")
	for _, want := range []string{"Without a command it serves MCP over stdio", "terminal"} {
		if !strings.Contains(out, want) {
			t.Errorf("help lacks %q:\n%s", want, out)
		}
	}
}
