package mcp_test

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"
	"time"

	"caisson/mcp"
)

// withHeaders posts a message of the stateless protocol whose headers are changed.
func withHeaders(t *testing.T, web *httptest.Server, body string, change func(http.Header)) (status int, answer string) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, web.URL+"/mcp", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	headers := modernHeaders("tools/call", "session_create")
	for i := 0; i+1 < len(headers); i += 2 {
		request.Header.Set(headers[i], headers[i+1])
	}
	request.Header.Set("Content-Type", "application/json")
	change(request.Header)
	response, err := web.Client().Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	var text bytes.Buffer
	_, _ = text.ReadFrom(response.Body)
	return response.StatusCode, text.String()
}

// TestBugMT05_AttackT53_FiveThousandClientsThatSayNothing: they are bounded before their
// time is over, push out nobody who is at work and no other principal, and are forgotten.
func TestBugMT05_AttackT53_FiveThousandClientsThatSayNothing(t *testing.T) {
	r := newRig(t, func(o *mcp.Options) { o.Authenticator = byName{} })
	r.server.IdleAfter(20 * time.Second)
	web := r.web()
	begin := func(who string) string {
		response, body := post(t, web, "/mcp", initializeBody, "Authorization", who)
		if response.StatusCode != http.StatusOK {
			t.Fatalf("%s %s", response.Status, body)
		}
		return response.Header.Get("Mcp-Session-Id")
	}
	alive := func(who, session string) bool {
		response, _ := post(t, web, "/mcp", `{"jsonrpc":"2.0","id":1,"method":"ping"}`, "Authorization", who, "Mcp-Session-Id", session)
		return response.StatusCode == http.StatusOK
	}
	used, other := begin("mallory"), begin("ann")
	if !alive("mallory", used) {
		t.Fatal("it does not live")
	}
	before := heap()
	for range 5000 {
		begin("mallory")
	}
	if n := r.server.ClientSessions(); n != 1001 {
		t.Errorf("%d client sessions", n)
	}
	if grown := int64(heap()) - int64(before); grown > 32<<20 {
		t.Errorf("the heap has grown by %d MiB", grown>>20)
	}
	if !alive("mallory", used) || !alive("ann", other) {
		t.Error("a session that is used, or another principal's, was pushed out")
	}
	eventually(t, "all are forgotten", func() bool { return r.server.ClientSessions() == 0 })
	if grown := int64(heap()) - int64(before); grown > 8<<20 {
		t.Errorf("%d MiB have stayed", grown>>20)
	}
}

func heap() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// TestAttackT53_AClientThatReadsNothingHoldsUpNobody: large answers wait for it, over
// HTTP and SSE; others are served meanwhile, and in the end it is hung up on.
func TestAttackT53_AClientThatReadsNothingHoldsUpNobody(t *testing.T) {
	r := newRig(t)
	r.server.Quickly(time.Minute, 3*time.Second)
	c := r.dial("http", legacy)
	id := c.ok("session_create", nil).session()["session_id"].(string)
	c.ok("upload", args{"session_id": id, "path": "f", "content": strings.Repeat("y", 1<<20)})
	web := r.web()
	session := initialize(t, web)
	body := `{"jsonrpc":"2.0","id":%d,"method":"resources/read","params":{"uri":"sandbox://` + id + `/f"}}`
	addr := web.Listener.Addr().String()
	var deaf []net.Conn
	for i := range 8 {
		text := fmt.Sprintf(body, i)
		deaf = append(deaf, unread(t, addr, strings.Repeat(fmt.Sprintf(requestForm, "/mcp", addr, session, len(text), text), 16)))
	}
	sse := unread(t, addr, "GET /sse HTTP/1.1\r\nHost: "+addr+"\r\n\r\n")
	head := make([]byte, 4096)
	n, err := sse.Read(head)
	for err == nil && !strings.Contains(string(head[:n]), "sessionId=") {
		var more int
		more, err = sse.Read(head[n:])
		n += more
	}
	_, rest, _ := strings.Cut(string(head[:n]), "/message")
	where, _, _ := strings.Cut(rest, "\n")
	for i := range 64 {
		post(t, web, "/message"+strings.TrimSpace(where), fmt.Sprintf(body, i))
	}
	began := time.Now()
	for range 50 {
		c.ok("session_list", nil)
	}
	if took := time.Since(began); took > 10*time.Second {
		t.Errorf("50 calls of another client took %v", took)
	}
	eventually(t, "the SSE client is hung up on", func() bool { return r.server.SSEClients() == 0 })
	eventually(t, "no call is left", func() bool { return r.server.CallsUnderWay() == 0 })
	for _, d := range deaf {
		_ = d.Close()
	}
}

const requestForm = "POST %s HTTP/1.1\r\nHost: %s\r\nContent-Type: application/json\r\nMcp-Session-Id: %s\r\nContent-Length: %d\r\n\r\n%s"

// unread opens a connection that takes in next to nothing, and sends on it.
func unread(t *testing.T, addr, text string) net.Conn {
	t.Helper()
	conn, err := new(net.Dialer).DialContext(t.Context(), "tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	_ = conn.(*net.TCPConn).SetReadBuffer(4096)
	if _, err := io.WriteString(conn, text); err != nil {
		t.Fatal(err)
	}
	return conn
}
