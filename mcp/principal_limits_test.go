package mcp_test

import (
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	mcpgo "github.com/mark3labs/mcp-go/mcp"

	"caisson/mcp"
)

// unlimited lets a test call as often as it likes.
func unlimited(o *mcp.Options) { o.RatePerMinute = 1_000_000 }

func readRequest(uri string) mcpgo.ReadResourceRequest {
	return mcpgo.ReadResourceRequest{Params: mcpgo.ReadResourceParams{URI: uri}}
}

// discard reads what is left of a response.
func discard(r *http.Response) (int64, error) { return io.Copy(io.Discard, r.Body) }

// The rate is a principal's own: its tool calls are answered so that a model
// sees it, all else by HTTP, and a cancel always gets through.
func TestAttackT55_TheRateIsAPrincipalsOwn(t *testing.T) {
	s := newShared(t, ", rate_per_minute: 10")
	session := s.initialized(tokenA) // the first of ten
	headers := []string{"Mcp-Session-Id", session, "Authorization", "Bearer " + tokenA}
	call := `{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"session_list","arguments":{}}}`
	for i := range 9 {
		if response, body := post(t, s.site, "/mcp", call, headers...); response.StatusCode != http.StatusOK || strings.Contains(body, "limit_exceeded") {
			t.Fatalf("%d: %s %s", i, response.Status, body)
		}
	}
	response, body := post(t, s.site, "/mcp", call, headers...)
	if response.StatusCode != http.StatusOK || !strings.Contains(body, "limit_exceeded") || !strings.Contains(body, `"retry_after_ms"`) || !strings.Contains(body, `"retriable":true`) {
		t.Errorf("a tool call: %s %s", response.Status, body)
	}
	for _, what := range []struct{ method, path, body string }{
		{http.MethodPost, "/mcp", `{"jsonrpc":"2.0","id":3,"method":"tools/list"}`},
		{http.MethodPost, "/mcp", `{`},
		{http.MethodPost, "/mcp", initializeBody},
		{http.MethodGet, "/mcp", ""},
		{http.MethodGet, "/sse", ""},
		{http.MethodPost, "/message?sessionId=x", `{"jsonrpc":"2.0","id":3,"method":"tools/list"}`},
	} {
		response, body := send(t, s.site, what.method, what.path, what.body, headers...)
		after, err := strconv.Atoi(response.Header.Get("Retry-After"))
		if response.StatusCode != http.StatusTooManyRequests || err != nil || after < 1 || after > 6 {
			t.Errorf("%v: %s %q %s", what, response.Status, response.Header.Get("Retry-After"), body)
		}
		rpcError(t, body)
	}
	if response, body := post(t, s.site, "/mcp", `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":9}}`, headers...); response.StatusCode != http.StatusAccepted {
		t.Errorf("a cancel: %s %s", response.Status, body)
	}
	// Neither a header nor another session of its own helps; another principal is not touched.
	if response, _ := post(t, s.site, "/mcp", call, append(headers, "Mcp-Method", "notifications/cancelled")...); response.StatusCode == http.StatusAccepted {
		t.Error("the header was believed")
	}
	s.as(tokenB, "http", legacy).ok("session_list", nil)
}

// What may come at once is a tenth of a minute's, or ten where that is less.
func TestAttackT55_ABurstIsATenthOfTheRateOrTen(t *testing.T) {
	for perMinute, burst := range map[int]int{6: 6, 20: 10, 60: 10, 300: 30} {
		s := newShared(t, fmt.Sprintf(", rate_per_minute: %d", perMinute))
		session := s.initialized(tokenA) // the first
		began, taken := time.Now(), 1
		for ; taken < 1000; taken++ {
			response, _ := post(t, s.site, "/mcp", `{"jsonrpc":"2.0","id":3,"method":"tools/list"}`, "Mcp-Session-Id", session, "Authorization", "Bearer "+tokenA)
			if response.StatusCode == http.StatusTooManyRequests {
				break
			}
		}
		more := int(time.Since(began).Minutes()*float64(perMinute)) + 1 // that came back meanwhile
		if taken < burst || taken > burst+more {
			t.Errorf("%d a minute: %d at once, want %d and at most %d more", perMinute, taken, burst, more)
		}
	}
}

// A tool that a principal may not use looks as if it were not there.
func TestToolsThatAPrincipalMayNotUseAreNotThere(t *testing.T) {
	s := newShared(t, `, tools: ["exec*", session_create], max_network: none, max_sessions: 1`)
	for _, way := range ways {
		a, b := s.as(tokenA, way.how, way.version), s.as(tokenB, way.how, way.version)
		names := func(c *conn) string {
			list, err := c.c.ListTools(t.Context(), mcpgo.ListToolsRequest{})
			if err != nil {
				t.Fatal(err)
			}
			var all []string
			for _, tool := range list.Tools {
				all = append(all, tool.Name)
			}
			return strings.Join(all, " ")
		}
		if got := names(a); got != "exec exec_input exec_list exec_output session_create" {
			t.Errorf("%v: a sees %s", way, got)
		}
		if got := names(b); !strings.Contains(got, "kill") || !strings.Contains(got, "upload") {
			t.Errorf("%v: b sees %s", way, got)
		}
		_, hidden := a.try(t.Context(), "session_list", nil, nil)
		_, none := a.try(t.Context(), "session_lisp", nil, nil)
		if hidden == nil || none == nil || strings.ReplaceAll(hidden.Error(), "session_list", "session_lisp") != none.Error() {
			t.Errorf("%v: %v and %v", way, hidden, none)
		}
		if got := a.want("spec_rejected", "session_create", args{"network": "internal"}); got.field() != "network" {
			t.Errorf("%v: %v", way, got.text)
		}
	}
	a := s.as(tokenA, "http", legacy)
	a.ok("exec", args{"command": "true"})
	a.want("limit_exceeded", "session_create", nil)
}
