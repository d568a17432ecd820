package cli

import (
	"encoding/json"
	"os"
	"strings"
	"syscall"
	"testing"
)

// Every line of a server that logs JSON is JSON, the one with its address too and at any
// level; a fault of the principals is told once.
func TestLinesOfALogAreJSONAndTellAFaultOnce(t *testing.T) {
	t.Parallel()
	name := principalsFile(t, "")
	p, _ := serveHTTP(t, "SANDBOX_MCP_PRINCIPALS_FILE="+name, "SANDBOX_MCP_LOG_LEVEL=error")
	if err := os.WriteFile(name, []byte("principals:\n  - nam: b\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	p.signal(syscall.SIGHUP)
	p.says("not read again")
	p.signal(syscall.SIGTERM)
	if status := p.end(); status != exitOK {
		t.Errorf("status %d", status)
	}
	text := p.stderr.String()
	for line := range strings.Lines(text) {
		if !json.Valid([]byte(line)) {
			t.Errorf("no JSON: %s", line)
		}
	}
	if n := strings.Count(text, "did you mean name?"); n != 1 {
		t.Errorf("told %d times: %s", n, text)
	}
}
