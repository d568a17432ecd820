package mcp_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"caisson/mcp"
)

const mebibyte = 1 << 20

// begun sends the beginning of a POST of a principal whose body is said to have size
// bytes, and goes on sending what is there, until the test's end or the connection's.
func (s *shared) begun(token string, size int, there []byte) net.Conn {
	s.t.Helper()
	addr := s.site.Listener.Addr().String()
	conn, err := new(net.Dialer).DialContext(s.t.Context(), "tcp", addr)
	if err != nil {
		s.t.Fatal(err)
	}
	if _, err := fmt.Fprintf(conn, "POST /mcp HTTP/1.1\r\nHost: %s\r\nContent-Type: application/json\r\nAuthorization: Bearer %s\r\nContent-Length: %d\r\n\r\n", addr, token, size); err != nil {
		s.t.Fatal(err)
	}
	sent := make(chan struct{})
	go func() {
		defer close(sent)
		_, _ = conn.Write(there) // it may have been hung up on
	}()
	s.t.Cleanup(func() { _ = conn.Close(); <-sent })
	return conn
}

// upload is a call whose body has about size bytes.
func upload(size int) string {
	return `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"upload","arguments":{"path":"f","content":"` + strings.Repeat("x", size) + `"}}}`
}

// TestAttackT53_LargeBodiesOfOnePrincipalAreBounded has a principal send forty of the largest
// bodies at once: few of them are in memory, and another's is served meanwhile. One of
// its own that waits is served when there is room again.
func TestAttackT53_LargeBodiesOfOnePrincipalAreBounded(t *testing.T) {
	s := newShared(t, "", unlimited)
	before, there := heap(), bytes.Repeat([]byte("x"), 12*mebibyte)
	holders := []net.Conn{s.begun(tokenA, 32*mebibyte, there), s.begun(tokenA, 32*mebibyte, there)}
	eventually(t, "two bodies are taken", func() bool { taken, _ := s.server.BodyBytes(); return taken == 64*mebibyte })
	mine, session := s.initialized(tokenA), s.initialized(tokenB) // small ones are not held up
	answered := make(chan string, 1)
	go func() {
		response, body := post(t, s.site, "/mcp", upload(mebibyte), "Mcp-Session-Id", mine, "Authorization", "Bearer "+tokenA)
		answered <- response.Status + " " + body
	}()
	eventually(t, "a third waits", func() bool { _, waiting := s.server.BodyBytes(); return waiting })
	for _, c := range holders {
		_ = c.Close()
	}
	if got := <-answered; !strings.HasPrefix(got, "200") || strings.Contains(got, `"isError":true`) {
		t.Errorf("what waited: %.300s", got)
	}
	for range 40 {
		s.begun(tokenA, 32*mebibyte, there)
	}
	eventually(t, "two are taken, and the others wait", func() bool {
		taken, waiting := s.server.BodyBytes()
		return taken == 64*mebibyte && waiting
	})
	for range 5 {
		if response, body := post(t, s.site, "/mcp", upload(4*mebibyte), "Mcp-Session-Id", session, "Authorization", "Bearer "+tokenB); response.StatusCode != http.StatusOK || strings.Contains(body, `"isError":true`) {
			t.Fatalf("another's: %s %.300s", response.Status, body)
		}
	}
	if grown := int64(heap()) - int64(before); grown > 160*mebibyte {
		t.Errorf("the heap has grown by %d MiB", grown/mebibyte)
	}
}

// TestAttackT53_WhoFindsNoRoomIsToldSo, when the time for it is over; calls keep their room to
// their end, over both transports, and no longer.
func TestAttackT53_WhoFindsNoRoomIsToldSo(t *testing.T) {
	s := newShared(t, "", unlimited)
	s.server.BodyRoom(2 * mebibyte)
	long := args{"command": "sleep 1000", "stdin": strings.Repeat("x", mebibyte/3)}
	var calls sync.WaitGroup
	ctx, cancel := context.WithCancel(t.Context())
	overHTTP, overSSE := s.as(tokenA, "http", legacy), s.as(tokenA, "sse", legacy)
	for _, c := range []*conn{overHTTP, overSSE} {
		calls.Go(func() { _, _ = c.try(ctx, "exec", long, nil) })
	}
	defer cancel()
	eventually(t, "two calls go on", func() bool { return s.fake.Running() == 2 })
	s.server.BodiesWithin(300 * time.Millisecond)
	for _, path := range []string{"/mcp", "/message?sessionId=x"} {
		response, body := post(t, s.site, path, upload(mebibyte), "Authorization", "Bearer "+tokenA)
		if response.StatusCode != http.StatusServiceUnavailable || response.Header.Get("Retry-After") == "" || !strings.Contains(body, "too many large messages") {
			t.Errorf("%s: %s %s", path, response.Status, body)
		}
	}
	cancel()
	_ = overSSE.c.Close() // mcp-go's client sends no notice there
	calls.Wait()
	eventually(t, "nothing is taken", func() bool { taken, _ := s.server.BodyBytes(); return taken == 0 })
}

// TestAttackT53_AnswersThatNobodyReadsHaveABoundedRoom asks for large pieces of a file and
// does not read them: few are in memory, another principal's are not held up, and all is
// given back when the connections are gone.
func TestAttackT53_AnswersThatNobodyReadsHaveABoundedRoom(t *testing.T) {
	s := newShared(t, "", unlimited)
	a, b := s.as(tokenA, "http", legacy), s.as(tokenB, "http", legacy)
	sandboxID := regexp.MustCompile(`sbx_[a-z2-7]+`).FindString(a.ok("session_create", nil).text)
	a.ok("upload", args{"session_id": sandboxID, "path": "f", "content": strings.Repeat("x", 4*mebibyte)})
	b.ok("upload", args{"path": "f", "content": strings.Repeat("x", 4*mebibyte)})
	session := s.initialized(tokenA)
	addr := s.site.Listener.Addr().String()
	var deaf []net.Conn
	for i := range 30 {
		large := fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"download","arguments":{"session_id":%q,"path":"f","limit":8388608}}}`, i, sandboxID)
		conn, err := new(net.Dialer).DialContext(t.Context(), "tcp", addr)
		if err != nil {
			t.Fatal(err)
		}
		_ = conn.(*net.TCPConn).SetReadBuffer(4096)
		if _, err := fmt.Fprintf(conn, "POST /mcp HTTP/1.1\r\nHost: %s\r\nContent-Type: application/json\r\nMcp-Session-Id: %s\r\nAuthorization: Bearer %s\r\nContent-Length: %d\r\n\r\n%s", addr, session, tokenA, len(large), large); err != nil {
			t.Fatal(err)
		}
		deaf = append(deaf, conn)
	}
	eventually(t, "some are taken, and the others wait", func() bool {
		taken, waiting := s.server.BodyBytes()
		return waiting && taken >= 24*mebibyte
	})
	for range 3 {
		if taken, _ := s.server.BodyBytes(); taken > 64*mebibyte {
			t.Errorf("%d MiB are taken", taken/mebibyte)
		}
		if got := b.ok("download", args{"path": "f", "limit": 8388608}); len(got.text) < 4*mebibyte {
			t.Errorf("another's: %d bytes", len(got.text))
		}
	}
	for _, c := range deaf {
		_ = c.Close()
	}
	eventually(t, "nothing is taken", func() bool { taken, _ := s.server.BodyBytes(); return taken == 0 })
}

// TestAttackT55_ALargeMessageOverTheRateIsNotRead: it is refused before the rest of it has
// come, a tool's call too.
func TestAttackT55_ALargeMessageOverTheRateIsNotRead(t *testing.T) {
	s := newShared(t, ", rate_per_minute: 10")
	session := s.initialized(tokenA)
	large := upload(20 << 10)
	headers := []string{"Mcp-Session-Id", session, "Authorization", "Bearer " + tokenA}
	for i := range 9 {
		if response, body := post(t, s.site, "/mcp", large, headers...); response.StatusCode != http.StatusOK || strings.Contains(body, "limit_exceeded") {
			t.Fatalf("%d: %s %s", i, response.Status, body)
		}
	}
	head := "POST %s HTTP/1.1\r\nContent-Type: application/json\r\nAuthorization: Bearer " + tokenA
	for _, path := range []string{"/mcp", "/message?sessionId=x"} {
		status, _ := half(t, s.site.Listener.Addr().String(), fmt.Sprintf(head, path), "Content-Length: 8000000\r\n\r\n"+large)
		if status != http.StatusTooManyRequests {
			t.Errorf("%s: status %d", path, status)
		}
	}
	if taken, _ := s.server.BodyBytes(); taken != 0 {
		t.Errorf("%d bytes are taken", taken)
	}
	cancelled := `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":9}}`
	if response, body := post(t, s.site, "/mcp", cancelled, headers...); response.StatusCode != http.StatusAccepted {
		t.Errorf("a cancel: %s %s", response.Status, body)
	}
}

// TestAttackT53_MessagesOfManyValuesAreRefused: what would cost many times its length once it
// has been read, on any level and over each transport.
func TestAttackT53_MessagesOfManyValuesAreRefused(t *testing.T) {
	r := newRig(t)
	web := r.web()
	session := initialize(t, web)
	var members strings.Builder
	for i := range 100_001 {
		fmt.Fprintf(&members, `,"%x":0`, i)
	}
	for name, body := range map[string]string{
		"members":         `{"jsonrpc":"2.0","id":1,"method":"ping"` + members.String() + `}`,
		"of params":       `{"jsonrpc":"2.0","id":1,"method":"ping","params":{` + members.String()[1:] + `}}`,
		"of arguments":    `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"exec","arguments":{` + members.String()[1:] + `}}}`,
		"elements":        `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"exec","arguments":{"argv":[` + strings.Repeat("0,", 100_000) + `0]}}}`,
		"empty objects":   `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"exec","arguments":{"argv":[` + strings.Repeat("{},", 50_000) + `0]}}}`,
		"lists of no end": `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"exec","arguments":{"argv":[` + strings.Repeat("[[]],", 40_000) + `0]}}}`,
	} {
		response, answer := post(t, web, "/mcp", body, "Mcp-Session-Id", session)
		if code, text := rpcError(t, answer); response.StatusCode != http.StatusBadRequest || code != -32600 || !strings.Contains(text, "more than 100000 members and elements") {
			t.Errorf("%s: %s %.300s", name, response.Status, answer)
		}
		var out bytes.Buffer
		if err := r.server.ServeStdio(t.Context(), strings.NewReader(body+"\n"), &out); err != nil || !strings.Contains(out.String(), "more than 100000 members and elements") {
			t.Errorf("%s on stdio: %v %.300s", name, err, out.String())
		}
	}
	few := `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"session_list","arguments":{"a":["` + strings.Repeat(`{[,\"`, 200_000) + `"]}}}`
	if response, answer := post(t, web, "/mcp", few, "Mcp-Session-Id", session); response.StatusCode != http.StatusOK || !strings.Contains(answer, "invalid_argument") {
		t.Errorf("one long text: %s %.300s", response.Status, answer)
	}
	for text, want := range map[string]int{
		`{}`: 1, `{"a":1,"b":[1,2]}`: 4, `"a,b"`: 0, `["a\",b","c\\",1]`: 3, `["\\\",[{",2]`: 2, `"open, [`: 0, ``: 0,
	} {
		if got := mcp.ValuesIn(text); got != want {
			t.Errorf("%s has %d, not %d", text, got, want)
		}
	}
}

// TestAttackT53_LongNamesAreRefused: ids and what else the server keeps or repeats, and
// messages that have no reason to be long.
func TestAttackT53_LongNamesAreRefused(t *testing.T) {
	r := newRig(t)
	web := r.web()
	session := initialize(t, web)
	long := `"` + strings.Repeat("x", 1023) + `"`
	fits := `"` + strings.Repeat("x", 1022) + `"`
	call := `{"jsonrpc":"2.0","id":%s,"method":"tools/call","params":{"name":"session_list","_meta":{"progressToken":%s}}}`
	for _, row := range []struct {
		body  string
		code  int
		field string
	}{
		{fmt.Sprintf(call, long, "1"), -32600, "id is longer than 1 KiB"},
		{fmt.Sprintf(call, strings.Repeat("1", 2000), "1"), -32600, "id is longer than 1 KiB"},
		{fmt.Sprintf(call, "1", long), -32602, "params._meta.progressToken is longer than 1 KiB"},
		{`{"jsonrpc":"2.0","id":1,"method":` + long + `}`, -32600, "method must be a name of at most 1 KiB"},
		{`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":` + long + `}}`, -32602, "params.name is longer than 1 KiB"},
		{`{"jsonrpc":"2.0","id":1,"method":"resources/read","params":{"uri":"` + strings.Repeat("x", 2*mebibyte) + `"}}`, -32600, "may have 2 MiB"},
	} {
		response, answer := post(t, web, "/mcp", row.body, "Mcp-Session-Id", session)
		code, text := rpcError(t, answer)
		if response.StatusCode != http.StatusBadRequest || code != row.code || !strings.Contains(text, row.field) || len(answer) > 1000 {
			t.Errorf("%.80s: %s %.300s", row.body, response.Status, answer)
		}
		var out bytes.Buffer
		if err := r.server.ServeStdio(t.Context(), strings.NewReader(row.body+"\n"), &out); err != nil || !strings.Contains(out.String(), row.field) {
			t.Errorf("%.80s on stdio: %v %.300s", row.body, err, out.String())
		}
	}
	if response, answer := post(t, web, "/mcp", fmt.Sprintf(call, fits, fits), "Mcp-Session-Id", session); response.StatusCode != http.StatusOK || !strings.Contains(answer, `"id":`+fits) || strings.Contains(answer, `"error"`) {
		t.Errorf("%s %s", response.Status, answer)
	}
}

// TestAttackT53_WhatAClientSaysOfItselfIsNotKept: sessions cost the same, whatever their
// clients were called.
func TestAttackT53_WhatAClientSaysOfItselfIsNotKept(t *testing.T) {
	web := newRig(t).web()
	long := strings.Repeat("x", mebibyte)
	body := `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{"experimental":{"x":"` + long + `"}},"clientInfo":{"name":"` + long[:mebibyte/2] + `","version":"1"}}}`
	before := heap()
	for range 60 {
		if response, answer := post(t, web, "/mcp", body); response.Header.Get("Mcp-Session-Id") == "" {
			t.Fatalf("%s %s", response.Status, answer)
		}
	}
	web.Client().CloseIdleConnections()
	eventually(t, "what was sent is gone", func() bool { return int64(heap())-int64(before) < 20*mebibyte })
}

// TestAttackT53_EveryAnswerHasADeadline sends all kinds of requests over connections that
// buffer nothing, and takes in none of the answers: the server hangs up.
func TestAttackT53_EveryAnswerHasADeadline(t *testing.T) {
	r := newRig(t)
	r.server.Quickly(time.Minute, 100*time.Millisecond)
	listener := &pipes{made: make(chan net.Conn), closed: make(chan struct{})}
	site := &http.Server{Handler: r.server.Handler(), ReadHeaderTimeout: time.Minute}
	ended := make(chan struct{})
	go func() { defer close(ended); _ = site.Serve(listener) }()
	t.Cleanup(func() { _ = site.Close(); <-ended })
	session := initialize(t, r.web())
	message := func(more, body string) string {
		return fmt.Sprintf("POST /mcp HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n%sContent-Length: %d\r\n\r\n%s", more, len(body), body)
	}
	ping := `{"jsonrpc":"2.0","id":1,"method":"ping"}`
	of := "Mcp-Session-Id: " + session + "\r\n"
	for name, text := range map[string]string{
		"no client session": message("", ping),
		"no message":        message("", "{"),
		"initialize":        message("", initializeBody),
		"a request":         message(of, ping),
		"a notice":          message(of, `{"jsonrpc":"2.0","method":"notifications/none"}`),
		"another type":      "POST /mcp HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n",
		"another method":    "PUT /mcp HTTP/1.1\r\nHost: x\r\n\r\n",
		"a foreign page":    "GET /mcp HTTP/1.1\r\nHost: x\r\nOrigin: https://evil.example\r\n\r\n",
		"a stream":          "GET /mcp HTTP/1.1\r\nHost: x\r\n" + of + "\r\n",
		"an old stream":     "GET /sse HTTP/1.1\r\nHost: x\r\n\r\n",
		"no page":           "GET /nowhere HTTP/1.1\r\nHost: x\r\n\r\n",
		"health":            "GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n",
		"go on":             "POST /mcp HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nExpect: 100-continue\r\nContent-Length: 40\r\n\r\n",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ours, theirs := net.Pipe()
			defer func() { _ = ours.Close() }()
			listener.made <- theirs
			_ = ours.SetWriteDeadline(time.Now().Add(20 * time.Second))
			_, err := io.WriteString(ours, text)
			for err == nil {
				_, err = io.WriteString(ours, strings.Repeat("\r\n", 1000)) // taken in by nobody before the answer has gone
			}
			if !errors.Is(err, io.ErrClosedPipe) {
				t.Error(err)
			}
		})
	}
}

// pipes is a listener for connections that are made in memory.
type pipes struct {
	made   chan net.Conn
	closed chan struct{}
	once   sync.Once
}

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.made:
		return c, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

func (p *pipes) Close() error {
	p.once.Do(func() { close(p.closed) })
	return nil
}

func (p *pipes) Addr() net.Addr { return &net.UnixAddr{Name: "pipe", Net: "pipe"} }
