package mcp_test

import (
	"context"
	"encoding/json"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"caisson/mcp"
)

const initializeBody = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`

func initialize(t *testing.T, web *httptest.Server) string {
	t.Helper()
	response, body := post(t, web, "/mcp", initializeBody)
	id := response.Header.Get("Mcp-Session-Id")
	if response.StatusCode != http.StatusOK || len(id) < 32 {
		t.Fatalf("initialize: %s %q %s", response.Status, id, body)
	}
	return id
}

// rpcError reads a JSON-RPC error.
func rpcError(t *testing.T, body string) (code int, text string) {
	t.Helper()
	var e struct {
		JSONRPC string
		Error   struct {
			Code    int
			Message string
		}
	}
	if err := json.Unmarshal([]byte(body), &e); err != nil || e.JSONRPC != "2.0" || e.Error.Code == 0 {
		t.Fatalf("no JSON-RPC error: %q (%v)", body, err)
	}
	return e.Error.Code, e.Error.Message
}

// MT-08, T50: no page of a browser drives the server, neither by its Origin nor
// by a name of its own that points at us.
func TestBugMT08_AttackT50_ForeignPagesAreRefused(t *testing.T) {
	r := newRig(t, func(o *mcp.Options) {
		o.AllowedOrigins = []string{"https://app.example", "*", "null", "https://*.example"}
		o.AllowedHosts = []string{"caisson.example"}
	})
	web := r.web()
	session := initialize(t, web)
	endpoints := []struct{ method, path string }{
		{http.MethodPost, "/mcp"},
		{http.MethodGet, "/mcp"},
		{http.MethodDelete, "/mcp"},
		{http.MethodOptions, "/mcp"},
		{http.MethodGet, "/sse"},
		{http.MethodPost, "/message?sessionId=x"},
	}
	for _, e := range endpoints {
		for _, origin := range []string{"https://evil.example", "null", "*", "http://localhost.evil.example", "https://app.example:8443", "http://app.example", "http://127.0.0.1:1", "http://localhost", "https://none.invalid", "file://"} {
			response, body := send(t, web, e.method, e.path, initializeBody, "Origin", origin, "Mcp-Session-Id", session)
			if response.StatusCode != http.StatusForbidden {
				t.Errorf("%s %s from %s: %s %s", e.method, e.path, origin, response.Status, body)
			}
			if acao := response.Header.Get("Access-Control-Allow-Origin"); acao != "" {
				t.Errorf("%s %s from %s: Access-Control-Allow-Origin %s", e.method, e.path, origin, acao)
			}
		}
		for _, host := range []string{"evil.example", "evil.example:80", "localhost.evil.example", "127.0.0.1.evil.example", "[::2]", "10.0.0.1"} {
			if response, body := send(t, web, e.method, e.path, initializeBody, "Host", host, "Mcp-Session-Id", session); response.StatusCode != http.StatusForbidden {
				t.Errorf("%s %s as %s: %s %s", e.method, e.path, host, response.Status, body)
			}
		}
	}
	for _, host := range []string{"localhost", "localhost:8811", "127.0.0.1", "[::1]:80", "caisson.example", "Caisson.Example:443"} {
		if response, body := post(t, web, "/mcp", initializeBody, "Host", host); response.StatusCode != http.StatusOK {
			t.Errorf("as %s: %s %s", host, response.Status, body)
		}
	}
	if response, body := post(t, web, "/mcp", initializeBody, "Origin", web.URL); response.StatusCode != http.StatusOK {
		t.Errorf("our own address: %s %s", response.Status, body)
	}
	response, _ := post(t, web, "/mcp", initializeBody, "Origin", "https://app.example")
	if response.StatusCode != http.StatusOK || response.Header.Get("Access-Control-Allow-Origin") != "https://app.example" {
		t.Errorf("a permitted page: %s %v", response.Status, response.Header)
	}
	response, _ = send(t, web, http.MethodOptions, "/mcp", "", "Origin", "https://app.example", "Access-Control-Request-Method", "POST")
	if response.StatusCode != http.StatusNoContent || !strings.Contains(response.Header.Get("Access-Control-Allow-Headers"), "Mcp-Method") {
		t.Errorf("its preflight: %s %v", response.Status, response.Header)
	}
	for _, kind := range []string{"text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x", ""} {
		for _, path := range []string{"/mcp", "/message?sessionId=x"} {
			if response, body := post(t, web, path, initializeBody, "Content-Type", kind); response.StatusCode < 400 || response.StatusCode >= 500 {
				t.Errorf("%s as %q: %s %s", path, kind, response.Status, body)
			}
		}
	}
}

// On an address that is not loopback a page can have a name of its own lead to
// us, so that its Origin and the Host agree: that does not make it ours.
func TestReboundNameIsNotOurs(t *testing.T) {
	handler := newRig(t).server.Handler()
	outside := func(headers ...string) int {
		request := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/mcp", strings.NewReader(initializeBody))
		local := &net.TCPAddr{IP: net.IPv4(192, 0, 2, 1), Port: 80}
		request = request.WithContext(context.WithValue(request.Context(), http.LocalAddrContextKey, local))
		request.Header.Set("Content-Type", "application/json")
		request.Host = "evil.example"
		for i := 0; i+1 < len(headers); i += 2 {
			request.Header.Set(headers[i], headers[i+1])
		}
		answer := httptest.NewRecorder()
		handler.ServeHTTP(answer, request)
		return answer.Code
	}
	if code := outside(); code != http.StatusOK {
		t.Errorf("a program: %d", code)
	}
	if code := outside("Origin", "http://evil.example"); code != http.StatusForbidden {
		t.Errorf("a page under that name: %d", code)
	}
}

// Without a page on the list no answer carries a CORS header, on SSE either,
// where mcp-go would send a wildcard.
func TestNoCORSWithoutAList(t *testing.T) {
	web := newRig(t).web()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, web.URL+"/sse", nil)
	if err != nil {
		t.Fatal(err)
	}
	response, err := web.Client().Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode != http.StatusOK || response.Header.Get("Access-Control-Allow-Origin") != "" || response.Header.Get("X-Accel-Buffering") != "no" {
		t.Errorf("%s %v", response.Status, response.Header)
	}
}

func TestRequestBodiesAreBounded(t *testing.T) {
	r := newRig(t, func(o *mcp.Options) { o.MaxBody = 1 << 20 })
	web := r.web()
	session := initialize(t, web)
	full := strings.Repeat("x", 1<<20)
	for _, path := range []string{"/mcp", "/message?sessionId=x"} {
		response, body := post(t, web, path, full, "Mcp-Session-Id", session)
		if code, text := rpcError(t, body); response.StatusCode != http.StatusOK && response.StatusCode < 400 || code == 0 {
			t.Errorf("%s: %s %s", path, response.Status, text)
		}
		response, body = post(t, web, path, full+"x", "Mcp-Session-Id", session)
		if _, text := rpcError(t, body); response.StatusCode != http.StatusRequestEntityTooLarge || !strings.Contains(text, "larger than 1 MiB") {
			t.Errorf("%s: %s %s", path, response.Status, body)
		}
	}
	// Without a declared length, the body is cut off as it arrives.
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, web.URL+"/mcp", struct{ *strings.Reader }{strings.NewReader(strings.Repeat("x", 8<<20))})
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Content-Type", "application/json")
	response, err := web.Client().Do(request)
	if err == nil {
		_ = response.Body.Close()
		if response.StatusCode != http.StatusRequestEntityTooLarge {
			t.Errorf("an endless body: %s", response.Status)
		}
	}
}

// MT-06: a session id that is not alive is answered so that the client starts
// over, and never served.
func TestBugMT06_SessionIDsThatAreNotAlive(t *testing.T) {
	web := newRig(t).web()
	list := `{"jsonrpc":"2.0","id":"q","method":"tools/list"}`
	alive := initialize(t, web)
	deleted := initialize(t, web)
	if response, _ := send(t, web, http.MethodDelete, "/mcp", "", "Mcp-Session-Id", deleted); response.StatusCode != http.StatusOK {
		t.Errorf("DELETE: %s", response.Status)
	}
	for name, id := range map[string]string{
		"forged": "mcp-session-6ba7b810-9dad-11d1-80b4-00c04fd430c8", "deleted": deleted, "cut": alive[:31], "longer": alive + "0", "other case": strings.ToUpper(alive), "made up": strings.Repeat("0", 32),
	} {
		for _, method := range []string{http.MethodPost, http.MethodGet, http.MethodDelete} {
			response, body := send(t, web, method, "/mcp", list, "Mcp-Session-Id", id)
			if _, text := rpcError(t, body); response.StatusCode != http.StatusNotFound || !strings.Contains(text, "initialize") {
				t.Errorf("%s with a %s id: %s %s", method, name, response.Status, body)
			}
			if method == http.MethodPost && !strings.Contains(body, `"id":"q"`) {
				t.Errorf("the answer is for no request: %s", body)
			}
		}
	}
	for _, method := range []string{http.MethodPost, http.MethodGet, http.MethodDelete} {
		if response, body := send(t, web, method, "/mcp", list); response.StatusCode != http.StatusBadRequest {
			t.Errorf("%s without an id: %s %s", method, response.Status, body)
		}
	}
	if response, body := post(t, web, "/mcp", list, "Mcp-Session-Id", alive); response.StatusCode != http.StatusOK || !strings.Contains(body, `"session_create"`) {
		t.Errorf("the live one: %s %.100s", response.Status, body)
	}
	if response, body := post(t, web, "/message?sessionId=6ba7b810-9dad-11d1-80b4-00c04fd430c8", list); response.StatusCode != http.StatusBadRequest {
		t.Errorf("SSE: %s %s", response.Status, body)
	}
}

// T51: headers that say something else than the body are refused before any
// tool runs.
func TestAttackT51_HeadersMustAgreeWithTheBody(t *testing.T) {
	r := newRig(t)
	web := r.web()
	body := `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"session_create","arguments":{},"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}`
	for _, headers := range [][]string{
		{"MCP-Protocol-Version", "2026-07-28"},
		{"MCP-Protocol-Version", "2026-07-28", "Mcp-Method", "tools/list", "Mcp-Name", "session_create"},
		{"MCP-Protocol-Version", "2026-07-28", "Mcp-Method", "tools/call", "Mcp-Name", "session_list"},
		{"MCP-Protocol-Version", "2026-07-28", "Mcp-Method", "tools/call"},
		{"MCP-Protocol-Version", "2025-11-25", "Mcp-Method", "tools/call", "Mcp-Name", "session_create"},
		{"Mcp-Method", "tools/call", "Mcp-Name", "session_create"},
	} {
		response, answer := post(t, web, "/mcp", body, headers...)
		if code, _ := rpcError(t, answer); response.StatusCode != http.StatusBadRequest || code != -32020 {
			t.Errorf("%v: %s %s", headers, response.Status, answer)
		}
	}
	if n := len(r.fake.Sessions()); n != 0 {
		t.Errorf("%d sessions were made", n)
	}
	if response, answer := post(t, web, "/mcp", body, "MCP-Protocol-Version", "2026-07-28", "Mcp-Method", "tools/call", "Mcp-Name", "session_create"); response.StatusCode != http.StatusOK || len(r.fake.Sessions()) != 1 {
		t.Errorf("agreeing headers: %s %s", response.Status, answer)
	}
}

// The end of a mere stream is not the end of its client (the default session
// stays).
func TestClosedStreamKeepsTheClientSession(t *testing.T) {
	r := newRig(t)
	web := r.web()
	session := initialize(t, web)
	run := `{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"exec","arguments":{"command":"true"}}}`
	post(t, web, "/mcp", run, "Mcp-Session-Id", session)
	ctx, cancel := context.WithCancel(t.Context())
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, web.URL+"/mcp", nil)
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Mcp-Session-Id", session)
	response, err := web.Client().Do(request)
	if err != nil {
		t.Fatal(err)
	}
	cancel()
	_ = response.Body.Close()
	for range 20 {
		if _, body := post(t, web, "/mcp", run, "Mcp-Session-Id", session); strings.Contains(body, "session_created") {
			t.Fatalf("another default session: %s", body)
		}
	}
	if n := len(r.fake.Sessions()); n != 1 {
		t.Errorf("%d sessions", n)
	}
}

// MT-02: on SSE the POST is answered at once, and the call goes on.
func TestBugMT02_CallsOutliveTheirPost(t *testing.T) {
	c := newRig(t).dial("sse", legacy)
	if got := c.ok("exec", args{"command": "sleep 1; echo ok"}); got.str("stdout") != "ok\n" {
		t.Errorf("%v", got.fields)
	}
}

func TestHealthAndReadiness(t *testing.T) {
	var asked atomic.Int64
	var down atomic.Bool
	r := newRig(t, func(o *mcp.Options) {
		o.Ready = func(context.Context) error {
			asked.Add(1)
			if down.Load() {
				return errors.New("dial tcp 10.0.0.1: canary")
			}
			return nil
		}
	})
	web := r.web()
	for range 20 {
		if response, body := send(t, web, http.MethodGet, "/readyz", ""); response.StatusCode != http.StatusOK || body != "ready\n" {
			t.Errorf("%s %s", response.Status, body)
		}
	}
	if n := asked.Load(); n > 2 {
		t.Errorf("the engine was asked %d times", n)
	}
	down.Store(true)
	eventually(t, "not ready", func() bool {
		response, body := send(t, web, http.MethodGet, "/readyz", "")
		if strings.Contains(body, "canary") {
			t.Fatal("the answer carries the cause")
		}
		return response.StatusCode == http.StatusServiceUnavailable
	})
	if response, body := send(t, web, http.MethodGet, "/healthz", ""); response.StatusCode != http.StatusOK || body != "alive\n" {
		t.Errorf("%s %s", response.Status, body)
	}
}

// Large arguments and results pass in one piece.
func TestLargeMessagesOverHTTP(t *testing.T) {
	for _, how := range []string{"http", "sse"} {
		c := newRig(t).dial(how, legacy)
		for _, size := range []int{1 << 20, large} {
			content := strings.Repeat("y", size)
			if got := c.ok("upload", args{"path": "f", "content": content}); got.list("files")[0].(args)["size"] != float64(size) {
				t.Errorf("%v", got.fields)
			}
			if got := c.ok("download", args{"path": "f", "limit": 1 << 20}); len(got.str("content")) != 1<<20 {
				t.Errorf("%d", len(got.str("content")))
			}
		}
	}
}

// The server ends with calls under way: they are cancelled, their commands
// stopped, and it does not hang.
func TestCloseStopsWhatIsUnderWay(t *testing.T) {
	r := newRig(t)
	c := r.dial("http", legacy)
	session := c.ok("session_create", nil).session()["session_id"].(string)
	done := make(chan struct{})
	go func() {
		defer close(done)
		_, _ = c.try(t.Context(), "exec", args{"session_id": session, "command": "sleep 1000", "wait_seconds": 40}, nil)
	}()
	eventually(t, "the command runs", func() bool { return r.fake.Running() == 1 })
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	if err := r.server.Close(ctx); err != nil {
		t.Error(err)
	}
	<-done
	if n := r.fake.Running(); n != 0 {
		t.Errorf("%d commands run", n)
	}
}
