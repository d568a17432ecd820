package cli

import (
	"encoding/json"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"
)

var metricsAt = regexp.MustCompile(`"address":"(http://[^"]+)"`)

// audits reads the audit log, each line of which is one record.
func audits(t *testing.T, path string) []map[string]any {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var all []map[string]any
	for line := range strings.Lines(string(text)) {
		var r map[string]any
		if err := json.Unmarshal([]byte(line), &r); err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		all = append(all, r)
	}
	return all
}

// The operator's signals on a server whose engine is not there: the switch works all the
// same, the server stays up and says so, and both are on record.
func TestAttackT57_OperatorsSignals(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	p, url := serveHTTP(t, "SANDBOX_MCP_AUDIT_FILE="+path, "SANDBOX_MCP_METRICS_ADDR=127.0.0.1:0")
	at := metricsAt.FindStringSubmatch(p.says("metrics are served"))
	if at == nil {
		t.Fatal(p.stderr)
	}
	if status, body := get(t, at[1]); status != http.StatusOK || !strings.Contains(body, "caisson_halted 0") {
		t.Errorf("metrics: %d %.200s", status, body)
	}
	if err := os.Rename(path, path+".1"); err != nil {
		t.Fatal(err)
	}
	p.signal(syscall.SIGHUP)
	p.says("read again")
	for ctx := soon(t); len(auditsOf(path)) == 0 && ctx.Err() == nil; {
		time.Sleep(10 * time.Millisecond)
	}
	p.signal(syscall.SIGUSR1)
	p.says("halted by the operator")
	if status, body := get(t, url+"/readyz"); status != http.StatusServiceUnavailable || body != "not ready: halted\n" {
		t.Errorf("readyz: %d %s", status, body)
	}
	if status, _ := get(t, url+"/healthz"); status != http.StatusOK {
		t.Errorf("healthz: %d", status)
	}
	p.signal(syscall.SIGTERM)
	if status := p.end(); status != exitOK && status != exitFailed { // what the engine has could not be seen to
		t.Errorf("status %d: %s", status, p.stderr)
	}
	var actions []string
	for _, r := range audits(t, path) {
		actions = append(actions, r["action"].(string))
	}
	if got := strings.Join(actions, " "); got != "reload halt" {
		t.Errorf("actions %q", got)
	}
}

func auditsOf(path string) []byte {
	text, _ := os.ReadFile(path) // not there yet: nothing
	return text
}

// What cannot be opened is a fault of its setting, said at once with the others.
func TestWhatCannotBeSeenIsAFault(t *testing.T) {
	t.Parallel()
	_, p := run(t, []string{deadEngine, "SANDBOX_MCP_AUDIT_FILE=/nowhere/audit", "SANDBOX_MCP_METRICS_ADDR=192.0.2.1:9090"}, "serve", "--transport=http")
	if text := p.stderr.String(); p.status != exitSetting || !strings.Contains(text, "SANDBOX_MCP_AUDIT_FILE cannot be written") || !strings.Contains(text, "SANDBOX_MCP_METRICS_ADDR cannot be listened on") {
		t.Errorf("status %d: %s", p.status, text)
	}
}

// A setting that is refused has had no effect before: nobody was listened to, and no
// file was made.
func TestWhatIsRefusedIsNotOpenedBefore(t *testing.T) {
	t.Parallel()
	const audit = "refused-audit.jsonl" // relative, which is the fault
	t.Cleanup(func() { _ = os.Remove(audit) })
	for _, set := range [][]string{
		{"SANDBOX_MCP_METRICS_ADDR=0.0.0.0:0"},
		{"SANDBOX_MCP_METRICS_ADDR=[::]:0"},
		{"SANDBOX_MCP_METRICS_ADDR=[::%lo]:0"},
		{"SANDBOX_MCP_METRICS_ADDR=127.0.0.1:0", "SANDBOX_MCP_AUDIT_FILE=" + audit},
		{"SANDBOX_MCP_METRICS_ADDR=127.0.0.1:0", "SANDBOX_MCP_OWNER=a\ab"},
	} {
		_, p := run(t, append([]string{deadEngine}, set...), "serve", "--transport=http")
		if text := p.stderr.String(); p.status != exitSetting || strings.Contains(text, "metrics are served") {
			t.Errorf("%q: status %d: %s", set, p.status, text)
		}
	}
	if _, err := os.Stat(audit); err == nil {
		t.Error("the audit file of a refused setting was made")
	}
}

// Also a name that only turns out to stand for all addresses is refused before one of
// them is listened on.
func TestMetricsAreNeverServedEverywhere(t *testing.T) {
	t.Parallel()
	for _, addr := range []string{"0.0.0.0:0", "[::]:0", "[::ffff:0.0.0.0]:0", "[::%lo]:0", ":0"} {
		page, err := openMetrics(t.Context(), addr, http.NotFoundHandler())
		if !errors.Is(err, errEverywhere) {
			t.Errorf("%s: %v", addr, err)
		}
		_ = page.close()
	}
	page, err := openMetrics(t.Context(), "127.0.0.1:0", http.NotFoundHandler())
	if err != nil {
		t.Fatal(err)
	}
	if err := page.close(); err != nil {
		t.Errorf("closed before it serves: %v", err)
	}
}
