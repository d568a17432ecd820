package e2e_test

import (
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"
)

const initialize = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"e2e","version":"1"}}}`

// A page of a foreign site may not drive a server on its visitor's machine,
// neither directly nor by giving that machine's address a name of its own.
func TestBugMT08_ForeignPagesAreRefused(t *testing.T) {
	t.Parallel()
	v := start(t, launch{http: true, env: []string{"SANDBOX_MCP_ALLOWED_ORIGINS=https://app.example.invalid"}})
	if !strings.HasPrefix(v.url, "http://127.0.0.1:") {
		t.Errorf("listens on %s", v.url)
	}
	for _, path := range []string{"POST /mcp", "GET /mcp", "DELETE /mcp", "GET /sse", "POST /message?sessionId=x"} {
		for _, c := range []struct {
			name, origin, host string
			refused            bool
		}{
			{"a foreign origin", "https://evil.example.invalid", "", true},
			{"a sandboxed frame", "null", "", true},
			{"a look-alike", "https://app.example.invalid.evil.invalid", "", true},
			{"a foreign host", "", "evil.example.invalid", true},
			{"a foreign host and port", "", "evil.example.invalid:80", true},
			{"no origin", "", "", false},
			{"a permitted origin", "https://app.example.invalid", "", false},
		} {
			status := knock(t, v, path, c.origin, c.host)
			if (status == http.StatusForbidden) != c.refused || status >= 500 {
				t.Errorf("%s with %s: %d", path, c.name, status)
			}
		}
	}
}

// knock makes one request and returns its status.
func knock(t *testing.T, v *server, what, origin, host string) int {
	t.Helper()
	method, path, _ := strings.Cut(what, " ")
	request, err := http.NewRequestWithContext(t.Context(), method, v.url+path, strings.NewReader(initialize))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Accept", "application/json, text/event-stream")
	if origin != "" {
		request.Header.Set("Origin", origin)
	}
	request.Host = host
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: 10 * time.Second}
	response, err := client.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	response.Body.Close() // a stream would go on for ever
	return response.StatusCode
}

func TestHealthIsToldWithoutAConversation(t *testing.T) {
	t.Parallel()
	v := start(t, launch{http: true})
	for path, want := range map[string]int{"/healthz": 200, "/readyz": 200, "/nowhere": 404} {
		if got := knock(t, v, "GET "+path, "", ""); got != want {
			t.Errorf("%s: %d", path, got)
		}
	}
}

// A client that sends half a request holds nobody up and is sent away.
func TestAttackT53_ASlowHeaderHoldsNobodyUp(t *testing.T) {
	t.Parallel()
	v := start(t, launch{http: true})
	for range 50 {
		c, err := net.Dial("tcp", strings.TrimPrefix(v.url, "http://"))
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		if _, err := io.WriteString(c, "POST /mcp HTTP/1.1\r\nHost: 127.0.0.1\r\n"); err != nil {
			t.Fatal(err)
		}
	}
	began := time.Now()
	a := join(t, v, httpLegacy)
	if err := a.alive(t.Context()); err != nil {
		t.Error(err)
	}
	took(t, began, 2*time.Second, "a client beside fifty half requests")
}
