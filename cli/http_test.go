package cli

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"
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
	closing(t, listener)
	_, p := run(t, []string{deadEngine, "SANDBOX_MCP_ADDR=" + listener.Addr().String()}, "serve", "--transport=http")
	if p.status != exitFailed || !strings.Contains(p.stderr.String(), "SANDBOX_MCP_ADDR") {
		t.Errorf("status %d: %s", p.status, p.stderr)
	}
}

// stuck opens a connection whose request never arrives whole.
func stuck(t *testing.T, url string) {
	t.Helper()
	conn, err := net.Dial("tcp", strings.TrimPrefix(url, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	head := "POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 1000\r\nExpect: 100-continue\r\n\r\n"
	if _, err := io.WriteString(conn, head); err != nil {
		t.Fatal(err)
	}
	// The server asks for the body once it has begun with the request.
	if line, err := bufio.NewReader(conn).ReadString('\n'); err != nil || !strings.Contains(line, "100") {
		t.Fatalf("the server says %q: %v", line, err)
	}
}

// draining waits until the server takes no more connections.
func draining(t *testing.T, url string) {
	t.Helper()
	var dialer net.Dialer
	for ctx := soon(t); ; {
		conn, err := dialer.DialContext(ctx, "tcp", strings.TrimPrefix(url, "http://"))
		if ctx.Err() != nil {
			t.Fatal("the server still takes connections")
		}
		if err != nil {
			return
		}
		_ = conn.Close()
	}
}

func TestAttackT74_TheFirstSignalDrainsWithinItsLimit(t *testing.T) {
	t.Parallel()
	p, url := serveHTTP(t)
	stuck(t, url)
	began := time.Now()
	p.signal(syscall.SIGTERM)
	draining(t, url)
	if status := p.end(); status != exitOK || time.Since(began) > drainLimit+quick {
		t.Errorf("status %d after %v: %s", status, time.Since(began), p.stderr)
	}
}

func TestAttackT74_TheSecondSignalEndsAtOnce(t *testing.T) {
	t.Parallel()
	p, url := serveHTTP(t)
	stuck(t, url)
	p.signal(syscall.SIGTERM)
	draining(t, url)
	began := time.Now()
	p.signal(syscall.SIGTERM)
	p.end()
	if state, ok := p.cmd.ProcessState.Sys().(syscall.WaitStatus); !ok || state.Signal() != syscall.SIGTERM || time.Since(began) > quick {
		t.Errorf("%v after %v", p.cmd.ProcessState, time.Since(began))
	}
}
