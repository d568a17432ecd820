package mcp_test

import (
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

// TestAttackT53_AStrangersSlowBodyIsNotWaitedFor sends the beginning of a body and no more,
// with what is refused before the body counts: the answer comes at once, and the
// connection is closed. A client that has sent all of it keeps its connection.
func TestAttackT53_AStrangersSlowBodyIsNotWaitedFor(t *testing.T) {
	s := newShared(t, "")
	addr := s.site.Listener.Addr().String()
	wrong := "\r\nAuthorization: Bearer a-wrong-token-0123456789"
	for _, row := range []struct {
		head   string
		status int
	}{
		{"POST /mcp HTTP/1.1", http.StatusUnauthorized},
		{"POST /mcp HTTP/1.1" + wrong, http.StatusUnauthorized},
		{"POST /mcp HTTP/1.1\r\nExpect: 100-continue" + wrong, http.StatusUnauthorized},
		{"POST /message?sessionId=x HTTP/1.1" + wrong, http.StatusUnauthorized},
		{"POST /mcp HTTP/1.1\r\nOrigin: https://evil.example", http.StatusForbidden},
		{"POST /nowhere HTTP/1.1", http.StatusNotFound},
		{"GET /mcp HTTP/1.1" + wrong, http.StatusRequestTimeout},
	} {
		for _, length := range []string{"Content-Length: 1000\r\n\r\n{", "Transfer-Encoding: chunked\r\n\r\n1\r\n{\r\n"} {
			began := time.Now()
			status, closed := half(t, addr, row.head, length)
			if took := time.Since(began); status != row.status || !closed || took > 8*time.Second {
				t.Errorf("%q, %q: status %d, want %d; closed %v; after %v", row.head, length, status, row.status, closed, took)
			}
		}
	}
	whole := strings.Repeat("x", 8<<10)
	response, _ := post(t, s.site, "/mcp", whole, "Authorization", "Bearer another-wrong-0123456789")
	if response.StatusCode != http.StatusUnauthorized || response.Close {
		t.Errorf("a whole body: %s, closed %v", response.Status, response.Close)
	}
}

// TestAttackT51_WhatIsThereTwiceOrInAnotherFormIsRefused sends headers and parameters of
// which a proxy could have judged the other, and bodies that another reader would see
// something else in.
func TestAttackT51_WhatIsThereTwiceOrInAnotherFormIsRefused(t *testing.T) {
	r := newRig(t)
	web := r.web()
	session := initialize(t, web)
	call := `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"session_create"}}`
	try := func(path string, want int, change func(http.Header)) {
		t.Helper()
		request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, web.URL+path, strings.NewReader(call))
		if err != nil {
			t.Fatal(err)
		}
		request.Header.Set("Content-Type", "application/json")
		request.Header.Set("Mcp-Session-Id", session)
		change(request.Header)
		response, err := web.Client().Do(request)
		if err != nil {
			t.Fatal(err)
		}
		_ = response.Body.Close()
		if response.StatusCode != want {
			t.Errorf("%s with %v: %s, want %d", path, request.Header, response.Status, want)
		}
	}
	try("/mcp", 400, func(h http.Header) { h.Add("Mcp-Session-Id", session) })
	try("/mcp", 400, func(h http.Header) { h.Add("Mcp-Session-Id", "another") })
	try("/mcp", 415, func(h http.Header) { h.Add("Content-Type", "text/plain") })
	try("/mcp", 415, func(h http.Header) { h.Set("Content-Type", "application/json; charset=utf-16") })
	try("/mcp", 415, func(h http.Header) { h.Set("Content-Encoding", "gzip") })
	try("/message?sessionId=a&sessionId=b", 400, func(http.Header) {})
	if n := len(r.fake.Sessions()); n != 0 {
		t.Errorf("%d sessions were made", n)
	}
	try("/mcp", 200, func(h http.Header) {
		h.Set("Content-Type", `application/json; charset="UTF-8"`)
		h.Set("Content-Encoding", "identity")
	})
}

// TestRefusalsOfMessagesSpeakOurWords sends parameters of the wrong form and ids that
// cannot be read: the answer is 400 or an error, in the protocol's words.
func TestRefusalsOfMessagesSpeakOurWords(t *testing.T) {
	web := newRig(t).web()
	session := initialize(t, web)
	for _, row := range []struct {
		body         string
		status, code int
		text         string
	}{
		{`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":["a"]}`, 400, -32602, "params must be an object"},
		{`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":"a"}`, 400, -32602, "params must be an object"},
		{`{"jsonrpc":"2.0","id":1e999,"method":"ping"}`, 400, -32600, "id must be"},
		{`null`, 400, -32600, "must be an object"},
		{`[]`, 400, -32600, "not a list of them"},
		{`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":5}}`, 200, -32602, ""},
		{`{"jsonrpc":"2.0","id":1,"method":"resources/read","params":{"uri":{}}}`, 200, -32602, ""},
		{`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"session_list","_meta":7}}`, 200, -32602, ""},
		{`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"session_list","_meta":{"progressToken":[]}}}`, 200, 0, ""},
	} {
		response, body := post(t, web, "/mcp", row.body, "Mcp-Session-Id", session)
		code, text := 0, ""
		if strings.Contains(body, `"error"`) {
			code, text = rpcError(t, body)
		}
		if response.StatusCode != row.status || code != row.code || !strings.Contains(text, row.text) || strings.Contains(body, "unmarshal") || strings.Contains(body, "Go ") {
			t.Errorf("%s: %s %s", row.body, response.Status, body)
		}
	}
}

// TestAttackT50_AnOriginOfAnotherSchemeIsForeign asks over TLS of our own, where a page
// that came in plain text is none of ours.
func TestAttackT50_AnOriginOfAnotherSchemeIsForeign(t *testing.T) {
	handler := newRig(t).server.Handler()
	for _, row := range []struct {
		origin string
		tls    bool
		code   int
	}{
		{"http://localhost", true, http.StatusForbidden},
		{"https://localhost", true, http.StatusOK},
		{"http://localhost", false, http.StatusOK},
		{"https://localhost", false, http.StatusOK}, // a proxy may speak TLS for us
	} {
		request := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/mcp", strings.NewReader(initializeBody))
		request = request.WithContext(context.WithValue(request.Context(), http.LocalAddrContextKey, &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 80}))
		request.Header.Set("Content-Type", "application/json")
		request.Header.Set("Origin", row.origin)
		request.Host = "localhost"
		if row.tls {
			request.TLS = &tls.ConnectionState{}
		}
		answer := httptest.NewRecorder()
		if handler.ServeHTTP(answer, request); answer.Code != row.code {
			t.Errorf("%+v: %d", row, answer.Code)
		}
	}
}
