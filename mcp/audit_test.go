package mcp_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"caisson/mcp"
	"caisson/sandbox"
	"caisson/sandbox/sandboxtest"
)

// record is a line of the audit log.
type record map[string]any

func (r record) str(name string) string { s, _ := r[name].(string); return s }

// audited is a rig whose audit log is a file.
func audited(t *testing.T, change ...func(*mcp.Options)) (r *rig, path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "audit.jsonl")
	audit, err := mcp.NewAuditLog(path, nil)
	if err != nil {
		t.Fatal(err)
	}
	r = newRig(t, append(change, func(o *mcp.Options) { o.Audit = audit })...)
	return r, path
}

// records reads an audit log; every line of it must be one record.
func records(t *testing.T, path string) []record {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var all []record
	lines := bufio.NewScanner(strings.NewReader(string(text)))
	for lines.Scan() {
		var r record
		if err := json.Unmarshal(lines.Bytes(), &r); err != nil {
			t.Fatalf("%q: %v", lines.Text(), err)
		}
		all = append(all, r)
	}
	return all
}

// ends are the records of ends, by request id; there is one for each.
func ends(t *testing.T, path string) map[string]record {
	t.Helper()
	by := map[string]record{}
	for _, r := range records(t, path) {
		id := r.str("request_id")
		if len(id) != 24 || r.str("time") == "" || r.str("phase") != "begin" && r.str("phase") != "end" {
			t.Errorf("%v", r)
		}
		if r.str("phase") == "begin" {
			if by[id] != nil || r["decision"] != nil || r["code"] != nil {
				t.Errorf("a begin after its end, or with an outcome: %v", r)
			}
			continue
		}
		if by[id] != nil {
			t.Errorf("two ends: %v and %v", by[id], r)
		}
		by[id] = r
	}
	return by
}

// A call has one record of its end, whatever it came to, and before that one of its
// beginning when it can change something (R33).
func TestAttackT59_EveryCallHasOneRecordOfItsEnd(t *testing.T) {
	for _, how := range []string{"inprocess", "http", "sse"} {
		r, path := audited(t)
		c := r.dial(how, legacy)
		id := c.ok("session_create", nil).session()["session_id"].(string)
		c.ok("exec", args{"session_id": id, "command": "echo hello"})
		c.want("invalid_argument", "exec", args{"session_id": id})
		c.want("session_not_found", "exec", args{"session_id": sandbox.NewSessionID(), "command": "true"})
		c.want("exec_not_found", "kill", args{"exec_id": sandbox.NewExecID()})
		c.ok("session_list", nil)
		r.fake.Fail(sandboxtest.OpReadDir, panicking{os.ErrClosed})
		c.want("internal", "list_files", args{"session_id": id})
		r.fake.Fail(sandboxtest.OpReadDir, nil)
		if _, err := c.try(t.Context(), "no\nsuch \"tool", nil, nil); err == nil {
			t.Error("a tool that is not there was called")
		}
		ctx, cancel := context.WithCancel(t.Context())
		gone := make(chan struct{})
		go func() {
			defer close(gone)
			_, _ = c.try(ctx, "exec", args{"session_id": id, "command": "sleep 1000"}, nil)
		}()
		eventually(t, "the command runs", func() bool { return r.fake.Running() == 1 })
		cancel()
		<-gone
		if how == "sse" { // mcp-go's client sends no notice there: it goes
			_ = c.c.Close()
		}
		eventually(t, "the cancelled call has ended", func() bool { return r.server.CallsUnderWay() == 0 && len(ends(t, path)) == 9 })
		got := map[string]int{}
		for _, e := range ends(t, path) {
			got[fmt.Sprintf("%s %s %s", e.str("tool"), e.str("decision"), e.str("code"))]++
			if e.str("principal") != "local" || e["duration_ms"] == nil || e["bytes_in"] == nil || e["bytes_out"] == nil || how != "inprocess" && e.str("transport") != how {
				t.Errorf("%s: %v", how, e)
			}
			if e.str("tool") != "unknown" && e.str("tool") != "kill" && e.str("tool") != "session_list" && e.str("code") != "invalid_argument" && len(e.str("session")) != 16 {
				t.Errorf("%s: no session in %v", how, e)
			}
		}
		for _, want := range []string{
			"session_create allowed ok", "exec allowed ok", "exec refused invalid_argument", "exec refused session_not_found", "kill refused exec_not_found",
			"session_list allowed ok", "list_files allowed internal", "unknown refused unknown_tool", "exec allowed cancelled",
		} {
			if got[want] != 1 {
				t.Errorf("%s: %d of %q: %v", how, got[want], want, got)
			}
		}
		checkBegins(t, path)
	}
}

func checkBegins(t *testing.T, path string) {
	t.Helper()
	begun := map[string]bool{}
	for _, r := range records(t, path) {
		id := r.str("request_id")
		begins := r.str("tool") == "exec" || r.str("tool") == "session_create" || r.str("tool") == "kill"
		switch {
		case r.str("phase") == "begin":
			begun[id] = true
			if !begins {
				t.Errorf("begins: %v", r)
			}
		case begins && !begun[id]:
			t.Errorf("ends without having begun: %v", r)
		}
	}
}

// Nothing that a client sends can begin a record of its own, or end one.
func TestAttackT59_ALineBreakCannotForgeARecord(t *testing.T) {
	r, path := audited(t)
	c := r.dial("http", legacy)
	forged := "x\n{\"time\":\"2026-01-01T00:00:00Z\",\"phase\":\"end\",\"request_id\":\"forged\",\"tool\":\"exec\"}\n\u2028\r\n"
	for _, a := range []args{{"session_id": forged, "command": forged}, {"command": forged, "cwd": forged}, {forged: forged}} {
		c.call("exec", a)
	}
	c.call("kill", args{"exec_id": forged})
	_, _ = c.try(t.Context(), forged, args{}, nil)
	post(t, r.web(), "/mcp", `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`, "Mcp-Session-Id", "forged", "X-Request-Id", "forged", "User-Agent", "forged")
	for id, e := range ends(t, path) {
		if raw := mustJSON(t, e); strings.Contains(raw, "forged") || id == "forged" {
			t.Errorf("%v", e)
		}
	}
	if n := len(ends(t, path)); n != 6 {
		t.Errorf("%d ends", n)
	}
}

// A log that cannot be written stops what changes something, and nothing else; it
// goes on when there is room again, without a broken line.
func TestAttackT59_NoRecordNoChange(t *testing.T) {
	r, path := audited(t)
	c := r.dial("inprocess", legacy)
	id := c.ok("session_create", nil).session()["session_id"].(string)
	var before syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_FSIZE, &before); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	full := before
	full.Cur = uint64(info.Size()) + 100 // room for a part of a record
	limitFiles(t, full)
	got := c.want("engine_unavailable", "exec", args{"session_id": id, "command": "true"})
	if !strings.Contains(got.text, "audit log") {
		t.Error(got.text)
	}
	c.want("engine_unavailable", "session_destroy", args{"session_id": id})
	c.ok("session_list", nil)
	if n := len(r.fake.Sessions()); n != 1 {
		t.Errorf("%d sessions", n)
	}
	if !strings.Contains(r.log.String(), "the audit log cannot be written") || !strings.Contains(metricsOf(t, r), "caisson_audit_failures_total 5") {
		t.Errorf("the operator was not told:\n%s", r.log)
	}
	limitFiles(t, before)
	c.ok("exec", args{"session_id": id, "command": "true"})
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	broken := 0
	for line := range strings.Lines(string(text)) {
		if !json.Valid([]byte(line)) && strings.TrimSpace(line) != "" {
			broken++
		}
	}
	if broken != 1 {
		t.Errorf("%d broken lines:\n%s", broken, text)
	}
}

// A file that is renamed away goes on being written until it is opened again.
func TestAuditLogIsOpenedAgain(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "audit.jsonl")
	audit, err := mcp.NewAuditLog(path, nil)
	if err != nil {
		t.Fatal(err)
	}
	r := newRig(t, func(o *mcp.Options) { o.Audit = audit })
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v %v", info.Mode(), err)
	}
	c := r.dial("inprocess", legacy)
	c.ok("session_list", nil)
	if err := os.Rename(path, path+".1"); err != nil {
		t.Fatal(err)
	}
	c.ok("session_list", nil)
	if err := audit.Reopen(); err != nil {
		t.Fatal(err)
	}
	c.ok("session_list", nil)
	if old, young := len(records(t, path+".1")), len(records(t, path)); old != 2 || young != 1 {
		t.Errorf("%d and %d records", old, young)
	}
	for name, make := range map[string]func(string) error{
		"a pipe":      func(p string) error { return syscall.Mkfifo(p, 0o600) },
		"a directory": func(p string) error { return os.Mkdir(p, 0o700) },
		"a broken line": func(p string) error {
			return os.WriteFile(p, []byte(`{"phase":"en`), 0o600)
		},
	} {
		p := filepath.Join(dir, strings.ReplaceAll(name, " ", "-"))
		if err := make(p); err != nil {
			t.Fatal(err)
		}
		if _, err := mcp.NewAuditLog(p, nil); (err == nil) != (name == "a broken line") {
			t.Errorf("%s: %v", name, err)
		}
	}
	torn, err := mcp.NewAuditLog(filepath.Join(dir, "a-broken-line"), nil)
	if err != nil {
		t.Fatal(err)
	}
	newRig(t, func(o *mcp.Options) { o.Audit = torn }).dial("inprocess", legacy).ok("session_list", nil)
	text, err := os.ReadFile(filepath.Join(dir, "a-broken-line"))
	if err != nil || !strings.HasPrefix(string(text), "{\"phase\":\"en\n{\"time\":") {
		t.Errorf("%q %v", text, err)
	}
}

// Refusals that anybody can cause have records, but not without bound.
func TestAttackT59_RefusalsCannotFillTheDisk(t *testing.T) {
	r, path := audited(t)
	web := r.web()
	for range 500 {
		response, _ := post(t, web, "/mcp", initializeBody, "Host", "evil.example")
		if response.StatusCode != http.StatusForbidden || len(response.Header.Get("X-Request-Id")) != 24 {
			t.Fatal(response.Status, response.Header)
		}
	}
	all := ends(t, path)
	if n := len(all); n < 60 || n > 100 {
		t.Errorf("%d records", n)
	}
	for _, e := range all {
		if e.str("decision") != "refused" || e.str("code") != "forbidden" || e["principal"] != nil || e["tool"] != nil {
			t.Errorf("%v", e)
		}
	}
	if !strings.Contains(metricsOf(t, r), `caisson_http_refusals_total{reason="forbidden"} 500`) {
		t.Error(metricsOf(t, r))
	}
}

// Calls that are refused before a tool is asked have records, but not without bound, and
// each principal a bound of its own.
func TestAttackT59_RefusedCallsCannotFillTheDisk(t *testing.T) {
	for name, row := range map[string]struct{ tool, code, more string }{
		"over the rate": {"session_list", "limit_exceeded", ", rate_per_minute: 1"},
		"no such tool":  {"no_such_tool", "unknown_tool", ""},
	} {
		path := filepath.Join(t.TempDir(), "audit.jsonl")
		audit, err := mcp.NewAuditLog(path, nil)
		if err != nil {
			t.Fatal(err)
		}
		s := newShared(t, row.more, unlimited, func(o *mcp.Options) { o.Audit = audit })
		call := `{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"` + row.tool + `"}}`
		headers := []string{"Mcp-Session-Id", s.initialized(tokenA), "Authorization", "Bearer " + tokenA}
		for range 500 {
			if response, body := post(t, s.site, "/mcp", call, headers...); response.StatusCode != http.StatusOK || strings.Contains(body, `"isError":false`) {
				t.Fatal(response.Status, body)
			}
		}
		session := s.initialized(tokenB)
		post(t, s.site, "/mcp", strings.Replace(call, "session_list", "no_such_tool", 1), "Mcp-Session-Id", session, "Authorization", "Bearer "+tokenB)
		of, suppressed := map[string]int{}, 0.0
		for _, e := range ends(t, path) {
			of[e.str("principal")]++
			n, _ := e["suppressed"].(float64)
			suppressed += n
			if e.str("decision") != "refused" || e.str("principal") == "a" && e.str("code") != row.code {
				t.Errorf("%s: %v", name, e)
			}
		}
		if of["a"] < 60 || of["a"] > 120 || of["b"] != 1 || float64(of["a"])+suppressed > 500 {
			t.Errorf("%s: %v records, %v suppressed", name, of, suppressed)
		}
		if lines := strings.Count(s.log.String(), `level=INFO msg="tool call"`); lines > 130 {
			t.Errorf("%s: %d lines in the log", name, lines)
		}
		if !strings.Contains(metricsOf(t, s.rig), `caisson_principal_calls_total{decision="refused",principal="other"} 501`) {
			t.Errorf("%s: not all are counted", name)
		}
	}
}
