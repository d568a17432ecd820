package mcp_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"caisson/mcp"
	"caisson/principal"
)

// Nothing is offered for completion that another has, and nobody is told of
// another's files.
func TestAttackT47_CompletionsAndWatchesAreAPrincipalsOwn(t *testing.T) {
	s := newShared(t, "")
	a := s.as(tokenA, "http", legacy)
	mine := a.ok("session_create", nil).session()["session_id"].(string)
	complete := func(token string) string {
		session := s.initialized(token)
		_, body := post(t, s.site, "/mcp", `{"jsonrpc":"2.0","id":2,"method":"completion/complete","params":{"ref":{"type":"ref/resource","uri":"sandbox://{session_id}/{+path}"},"argument":{"name":"session_id","value":""}}}`,
			"Mcp-Session-Id", session, "Authorization", "Bearer "+token)
		return body
	}
	if body := complete(tokenA); !strings.Contains(body, mine) {
		t.Errorf("a is not offered its own: %s", body)
	}
	if body := complete(tokenB); strings.Contains(body, mine) || !strings.Contains(body, `"values":[]`) {
		t.Errorf("b is offered %s", body)
	}
	stream, endpoint := s.sse(t, tokenB)
	defer func() { _ = stream.Body.Close() }()
	post(t, s.site, endpoint, `{"jsonrpc":"2.0","id":5,"method":"resources/subscribe","params":{"uri":"sandbox://`+mine+`/f"}}`, "Authorization", "Bearer "+tokenB)
	a.ok("upload", args{"session_id": mine, "path": "f", "content": "x"})
	post(t, s.site, endpoint, `{"jsonrpc":"2.0","id":6,"method":"ping"}`, "Authorization", "Bearer "+tokenB)
	seen := readUntil(t, stream, `"id":6`)
	if strings.Contains(seen, "resources/updated") {
		t.Errorf("b is told of a's file: %s", seen)
	}
}

func readUntil(t *testing.T, r *http.Response, mark string) string {
	t.Helper()
	var seen strings.Builder
	buf := make([]byte, 4096)
	for !strings.Contains(seen.String(), mark) {
		n, err := r.Body.Read(buf)
		seen.Write(buf[:n])
		if err != nil {
			t.Fatalf("%v after %q", err, seen.String())
		}
	}
	return seen.String()
}

// To read a file by its address is to download it.
func TestResourcesNeedTheToolThatTheyStandFor(t *testing.T) {
	s := newShared(t, ", tools: [upload, session_create]")
	a := s.as(tokenA, "http", legacy)
	mine := a.ok("session_create", nil).session()["session_id"].(string)
	a.ok("upload", args{"session_id": mine, "path": "f", "content": "x"})
	if _, err := a.c.ReadResource(t.Context(), readRequest("sandbox://"+mine+"/f")); err == nil || !strings.Contains(err.Error(), "may not read files") {
		t.Errorf("%v", err)
	}
}

// A call of a principal that is taken out is ended, and what it started is stopped.
func TestACallUnderWayEndsWithItsPrincipal(t *testing.T) {
	s := newShared(t, "")
	session := s.initialized(tokenA)
	over := make(chan time.Time, 1)
	go func() {
		post(t, s.site, "/mcp", `{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"exec","arguments":{"command":"sleep 1000","wait_seconds":40}}}`, "Mcp-Session-Id", session, "Authorization", "Bearer "+tokenA)
		over <- time.Now()
	}()
	eventually(t, "the command runs", func() bool { return s.fake.Running() == 1 })
	s.set(t, entryOf("b", tokenB, ""))
	began := time.Now()
	if err := s.keeper.Reload(); err != nil {
		t.Fatal(err)
	}
	if took := (<-over).Sub(began); took > 10*time.Second {
		t.Errorf("the call ended after %v", took)
	}
	eventually(t, "the command is stopped", func() bool { return s.fake.Running() == 0 })
}

// ending lets a in until a moment.
type ending struct{ until atomic.Pointer[time.Time] }

func (e *ending) Authenticate(*http.Request) (mcp.Principal, error) {
	until := *e.until.Load()
	if time.Now().After(until) {
		return mcp.Principal{}, &principal.Refusal{Status: http.StatusUnauthorized, Text: "expired"}
	}
	return mcp.Principal{Name: "a", Until: until}, nil
}

// A stream does not outlive the token that it was opened with.
func TestAttackT46_AStreamEndsWithItsToken(t *testing.T) {
	e := &ending{}
	far := time.Now().Add(time.Hour)
	e.until.Store(&far)
	web := newRig(t, func(o *mcp.Options) { o.Authenticator = e }).web()
	session := initialize(t, web)
	near := time.Now().Add(500 * time.Millisecond)
	e.until.Store(&near)
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, web.URL+"/mcp", nil)
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Mcp-Session-Id", session)
	response, err := web.Client().Do(request)
	if err != nil || response.StatusCode != http.StatusOK {
		t.Fatalf("%v %v", response, err)
	}
	defer func() { _ = response.Body.Close() }()
	if _, err := discard(response); errors.Is(err, context.DeadlineExceeded) {
		t.Error("the stream goes on")
	}
	if time.Now().Before(near) {
		t.Error("the stream ended before its token")
	}
}

// One principal's streams are bounded, and another's are not touched by them.
func TestAttackT53_StreamsOfOnePrincipalAreBounded(t *testing.T) {
	s := newShared(t, "", unlimited)
	refused := 0
	for range 300 {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.site.URL+"/sse", nil)
		if err != nil {
			t.Fatal(err)
		}
		request.Header.Set("Authorization", "Bearer "+tokenA)
		response, err := s.site.Client().Do(request)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = response.Body.Close() }()
		if response.StatusCode == http.StatusTooManyRequests {
			refused++
		}
	}
	if refused != 300-256 {
		t.Errorf("%d streams were refused", refused)
	}
	stream, _ := s.sse(t, tokenB)
	_ = stream.Body.Close()
	s.as(tokenA, "http", modern).ok("session_list", nil)
}
