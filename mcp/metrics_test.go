package mcp_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	"caisson/mcp"
	"caisson/sandbox"
	"caisson/sandbox/sandboxtest"
)

// metricsOf reads the metrics as a scraper does.
func metricsOf(t *testing.T, r *rig) string {
	t.Helper()
	answer := httptest.NewRecorder()
	r.metrics.Handler().ServeHTTP(answer, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/metrics", nil))
	if answer.Code != http.StatusOK {
		t.Fatalf("%d %s", answer.Code, answer.Body)
	}
	return answer.Body.String()
}

func TestMetricsCountWhatHappens(t *testing.T) {
	r := newRig(t)
	c := r.dial("http", legacy)
	id := c.ok("session_create", nil).session()["session_id"].(string)
	c.ok("session_create", nil)
	c.ok("exec", args{"session_id": id, "command": "echo hello"})
	c.ok("exec", args{"session_id": id, "command": "exit 3"})
	c.want("session_not_found", "exec", args{"session_id": sandbox.NewSessionID(), "command": "true"})
	r.fake.Fail(sandboxtest.OpCreate, sandbox.Errorf("create", sandbox.KindCapacity, "full"))
	c.want("capacity", "session_create", nil)
	r.fake.Fail(sandboxtest.OpCreate, nil)
	c.ok("session_destroy", args{"session_id": id})
	r.metrics.EngineFailed(sandbox.KindUnavailable)
	r.metrics.Probed(sandbox.NetworkEgress, 0, sandbox.Errorf("probe", sandbox.KindFirewall, "open"))
	eventually(t, "the commands are counted", func() bool { return strings.Contains(metricsOf(t, r), `caisson_execs_total{outcome="failed"} 1`) })
	text := metricsOf(t, r)
	for _, want := range []string{
		`caisson_calls_total{code="ok",tool="exec"} 2`, `caisson_calls_total{code="session_not_found",tool="exec"} 1`, `caisson_calls_total{code="capacity",tool="session_create"} 1`,
		`caisson_call_duration_seconds_count{tool="exec"} 3`, `caisson_principal_calls_total{decision="refused",principal="none"} 1`,
		`caisson_execs_total{outcome="succeeded"} 1`, `caisson_exec_output_bytes_total{stream="stdout"} 6`,
		`caisson_session_create_duration_seconds_count{code="ok"} 2`, `caisson_session_create_duration_seconds_count{code="capacity"} 1`,
		`caisson_sessions_ended_total{how="ended"} 1`, `caisson_sessions{state="running"} 1`, `caisson_principal_sessions{principal="none"} 1`,
		`caisson_engine_errors_total{kind="engine_unavailable"} 1`, `caisson_probe_duration_seconds_count{result="not_in_force",tier="egress"} 1`,
		`caisson_client_sessions 1`, `caisson_calls_under_way 0`, `caisson_execs_running 0`, `caisson_exec_records 2`, `caisson_halted 0`, `caisson_info{version="test"} 1`,
		`caisson_call_bytes_total{direction="in"}`, `caisson_call_bytes_total{direction="out"}`, "go_goroutines", "process_resident_memory_bytes",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("no %s in\n%s", want, text)
		}
	}
	if strings.Contains(text, id) || strings.Contains(text, id[:12]) || strings.Contains(text, "img") {
		t.Error("a metric has a handle or an image")
	}
}

// What a client or a toolkit's server names cannot make series without end.
func TestMetricsAreBounded(t *testing.T) {
	r := newRig(t)
	c := r.dial("inprocess", legacy)
	for i := range 50 {
		_, _ = c.try(t.Context(), fmt.Sprintf("tool-%d", i), nil, nil)
	}
	if text := metricsOf(t, r); !strings.Contains(text, `caisson_calls_total{code="unknown_tool",tool="unknown"} 50`) || strings.Contains(text, "tool-1") {
		t.Errorf("%s", text)
	}
	if n := mcp.ToolLabels(1000); n > 301 {
		t.Errorf("%d labels", n)
	}
}

// Where metrics can be read: on an endpoint of one's own machine alone, and never by a
// page of somebody else's. Nothing else is there: no profiles, no debug pages.
func TestAttackT59_MetricsAndDebugPagesAreClosed(t *testing.T) {
	closed := newRig(t).web()
	for _, path := range []string{"/metrics", "/debug", "/debug/pprof/", "/debug/vars", "/health", "/config", "/", "/mcp/../metrics", "/metrics/"} {
		if response, body := send(t, closed, http.MethodGet, path, ""); response.StatusCode != http.StatusNotFound || strings.Contains(body, "caisson") {
			t.Errorf("%s: %s %s", path, response.Status, body)
		}
	}
	open := newRig(t, func(o *mcp.Options) { o.OpenMetrics = true }).web()
	if response, body := send(t, open, http.MethodGet, "/metrics", ""); response.StatusCode != http.StatusOK || !strings.Contains(body, "caisson_info") {
		t.Errorf("%s %s", response.Status, body)
	}
	for _, header := range [][]string{{"Host", "evil.example"}, {"Origin", "https://evil.example"}, {"Origin", "null"}} {
		if response, _ := send(t, open, http.MethodGet, "/metrics", "", header...); response.StatusCode != http.StatusForbidden {
			t.Errorf("%v: %s", header, response.Status)
		}
	}
	own := httptest.NewServer(newRig(t).metrics.Handler())
	t.Cleanup(own.Close)
	for _, c := range []struct {
		method, path string
		headers      []string
		status       int
	}{
		{http.MethodGet, "/metrics", nil, http.StatusOK},
		{http.MethodGet, "/metrics", []string{"Host", "evil.example"}, http.StatusForbidden},
		{http.MethodGet, "/metrics", []string{"Origin", own.URL}, http.StatusForbidden},
		{http.MethodPost, "/metrics", nil, http.StatusMethodNotAllowed},
		{http.MethodGet, "/mcp", nil, http.StatusNotFound},
		{http.MethodGet, "/debug/pprof/", nil, http.StatusNotFound},
	} {
		if response, _ := send(t, own, c.method, c.path, "", c.headers...); response.StatusCode != c.status {
			t.Errorf("%s %s %v: %s", c.method, c.path, c.headers, response.Status)
		}
	}
}

// The tables of docs/operations.md are those of the program.
func TestDocsOfOperationsAreCurrent(t *testing.T) {
	var b strings.Builder
	b.WriteString("| metric | kind | labels | meaning |\n| --- | --- | --- | --- |\n")
	for _, row := range mcp.NewMetrics("").Rows() {
		labels := "–"
		if len(row.Labels) > 0 {
			labels = "`" + strings.Join(row.Labels, "`, `") + "`"
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", row.Name, row.Kind, labels, row.Help)
	}
	page(t, "metrics", b.String())
	b.Reset()
	b.WriteString("| field | meaning |\n| --- | --- |\n")
	for _, field := range mcp.AuditFields() {
		fmt.Fprintf(&b, "| `%s` | %s |\n", field.Name, field.Meaning)
	}
	page(t, "audit", b.String())
}

// page holds a table between its markers against docs/operations.md, or writes it under
// -update.
func page(t *testing.T, name, table string) {
	t.Helper()
	const path = "../docs/operations.md"
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	begin, end := "<!-- generated: "+name+" -->\n", "<!-- end: "+name+" -->"
	head, rest, found := strings.Cut(string(text), begin)
	_, tail, ended := strings.Cut(rest, end)
	if !found || !ended {
		t.Fatalf("%s has lost its markers of %s", path, name)
	}
	golden(t, path, head+begin+table+end+tail)
}
