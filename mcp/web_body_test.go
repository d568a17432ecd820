package mcp_test

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"
)

// TestBugMT07_BodiesThatDoNotArriveAreAnswered sends the beginning of a body and
// no more, wherever a body can be sent: the answer comes once the time for it
// is over, and the connection is closed.
func TestBugMT07_BodiesThatDoNotArriveAreAnswered(t *testing.T) {
	r := newRig(t)
	r.server.BodiesWithin(200 * time.Millisecond)
	web := r.web()
	session := initialize(t, web)
	for _, row := range []struct {
		head   string
		status int
	}{
		{"POST /mcp", http.StatusRequestTimeout},
		{"POST /mcp HTTP/1.1\r\nMcp-Session-Id: " + session, http.StatusRequestTimeout},
		{"POST /message?sessionId=x", http.StatusRequestTimeout},
		{"POST /mcp HTTP/1.1\r\nOrigin: https://evil.example", http.StatusForbidden},
		{"POST /mcp HTTP/1.1\r\nContent-Encoding: x\r\nContent-Type: text/plain", http.StatusUnsupportedMediaType},
		{"POST /nowhere", http.StatusNotFound},
		{"POST /healthz", http.StatusMethodNotAllowed},
		{"GET /healthz", http.StatusRequestTimeout},
		{"GET /sse", http.StatusRequestTimeout},
		{"GET /mcp HTTP/1.1\r\nMcp-Session-Id: " + session, http.StatusRequestTimeout},
		{"DELETE /mcp HTTP/1.1\r\nMcp-Session-Id: " + session, http.StatusRequestTimeout},
	} {
		for _, length := range []string{"Content-Length: 1000\r\n\r\n{", "Transfer-Encoding: chunked\r\n\r\n1\r\n{\r\n"} {
			status, closed := half(t, web.Listener.Addr().String(), row.head, length)
			if status != row.status || !closed {
				t.Errorf("%q, %q: status %d, want %d; closed %v", row.head, length, status, row.status, closed)
			}
		}
	}
	// What has arrived in time may be worked on for longer.
	if response, body := post(t, web, "/mcp", initializeBody); response.StatusCode != http.StatusOK {
		t.Errorf("%s %s", response.Status, body)
	}
}

// half sends a request whose body stops, and tells what came back within 10 s.
func half(t *testing.T, addr, head, body string) (status int, closed bool) {
	t.Helper()
	conn, err := new(net.Dialer).DialContext(t.Context(), "tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	if err := conn.SetDeadline(time.Now().Add(10 * time.Second)); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(head, "HTTP/1.1") {
		head += " HTTP/1.1"
	}
	if !strings.Contains(head, "Content-Type") {
		head += "\r\nContent-Type: application/json"
	}
	if _, err := fmt.Fprintf(conn, "%s\r\nHost: %s\r\n%s", head, addr, body); err != nil {
		t.Fatal(err)
	}
	reader := bufio.NewReader(conn)
	response, err := http.ReadResponse(reader, nil)
	if err != nil {
		t.Errorf("%q: no answer: %v", head, err)
		return 0, false
	}
	_, _ = io.Copy(io.Discard, response.Body)
	_ = response.Body.Close()
	_, err = reader.ReadByte()
	return response.StatusCode, errors.Is(err, io.EOF)
}
