package cli

import (
	"io"
	"net"
	"net/http"
	"regexp"
	"strings"
	"syscall"
	"testing"
)

var listening = regexp.MustCompile(`listening on (http://\S+)`)

// serveHTTP starts an http server on a free port and returns where it is.
func serveHTTP(t *testing.T, environ ...string) (*program, string) {
	t.Helper()
	p := start(t, append([]string{deadEngine}, environ...), "serve", "--transport", "http", "--addr", "127.0.0.1:0")
	m := listening.FindStringSubmatch(p.says("(/mcp"))
	if m == nil {
		t.Fatalf("no address in %s", p.stderr)
	}
	return p, m[1]
}

func get(t *testing.T, url string) (int, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(soon(t), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(body)
}

func TestHTTPSaysWhereItListensAndHowItIs(t *testing.T) {
	p, url := serveHTTP(t)
	if status, body := get(t, url+"/healthz"); status != http.StatusOK {
		t.Errorf("healthz: %d %s", status, body)
	}
	if status, body := get(t, url+"/readyz"); status != http.StatusServiceUnavailable {
		t.Errorf("readyz with a dead engine: %d %s", status, body)
	}
	p.signal(syscall.SIGTERM)
	if status := p.end(); status != exitOK {
		t.Errorf("status %d: %s", status, p.stderr)
	}
	if out, _ := io.ReadAll(p.stdout); len(out) != 0 {
		t.Errorf("standard output: %q", out)
	}
}

func TestHTTPAnswersOverBothTransports(t *testing.T) {
	_, url := serveHTTP(t)
	body := `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`
	req, err := http.NewRequestWithContext(soon(t), http.MethodPost, url+"/mcp", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json, text/event-stream")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if text, _ := io.ReadAll(resp.Body); resp.StatusCode != http.StatusOK || !strings.Contains(string(text), `"caisson"`) {
		t.Errorf("initialize: %d %s", resp.StatusCode, text)
	}
	sse, err := http.NewRequestWithContext(soon(t), http.MethodGet, url+"/sse", nil)
	if err != nil {
		t.Fatal(err)
	}
	stream, err := http.DefaultClient.Do(sse)
	if err != nil {
		t.Fatal(err)
	}
	defer stream.Body.Close()
	if ct := stream.Header.Get("Content-Type"); stream.StatusCode != http.StatusOK || !strings.HasPrefix(ct, "text/event-stream") {
		t.Errorf("sse: %d %s", stream.StatusCode, ct)
	}
}

func TestAnOpenStreamDoesNotHoldUpTheEnd(t *testing.T) {
	p, url := serveHTTP(t)
	req, err := http.NewRequestWithContext(soon(t), http.MethodGet, url+"/sse", nil)
	if err != nil {
		t.Fatal(err)
	}
	stream, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer stream.Body.Close()
	p.signal(syscall.SIGTERM)
	if status := p.end(); status != exitOK {
		t.Errorf("status %d: %s", status, p.stderr)
	}
}

func TestAPortInUseIsAFailureOfTheRun(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	_, p := run(t, []string{deadEngine, "SANDBOX_MCP_ADDR=" + listener.Addr().String()}, "serve", "--transport=http")
	if p.status != exitFailed || !strings.Contains(p.stderr.String(), "SANDBOX_MCP_ADDR") {
		t.Errorf("status %d: %s", p.status, p.stderr)
	}
}
