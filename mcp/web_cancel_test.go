package mcp_test

import (
	"net/http"
	"strings"
	"testing"
)

// All requests of protocol 2026-07-28 share one empty session inside mcp-go:
// whoever guesses an id could cancel a stranger's call. The notice is taken and
// dropped, whatever it is dressed up as; closing the stream still cancels.
func TestNoticesOfTheStatelessProtocolCancelNobody(t *testing.T) {
	r := newRig(t)
	c := r.dial("http", modern)
	session := c.ok("session_create", nil).session()["session_id"].(string)
	done := make(chan *result, 1)
	go func() {
		got, err := c.try(t.Context(), "exec", args{"session_id": session, "command": "await go; echo done", "wait_seconds": 30}, nil)
		if err != nil {
			t.Error(err)
		}
		done <- got
	}()
	eventually(t, "the call waits", func() bool { return r.fake.Running() == 1 })
	web := r.web()
	live := initialize(t, web)
	meta := `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}`
	for id := range 12 {
		params := `"requestId":` + mustJSON(t, id)
		for _, attempt := range []struct {
			body    string
			headers []string
		}{
			{`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{` + params + `,` + meta + `}}`, []string{"MCP-Protocol-Version", "2026-07-28", "Mcp-Method", "notifications/cancelled"}},
			{`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{` + params + `,` + meta + `}}`, []string{"MCP-Protocol-Version", "2026-07-28", "Mcp-Method", "notifications/cancelled", "Mcp-Session-Id", live}},
			{`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{` + params + `}}`, []string{"MCP-Protocol-Version", "2026-07-28"}},
			{`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{` + params + `,` + meta + `}}`, nil},
			{`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{` + params + `}}`, []string{"Mcp-Session-Id", ""}},
			{`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{` + params + `}}`, []string{"Mcp-Session-Id", live}},
			{`{"jsonrpc":"2.0","method":"x","method":"notifications/cancelled","params":{` + params + `,` + meta + `}}`, []string{"MCP-Protocol-Version", "2026-07-28"}},
			{`{"jsonrpc":"2.0","METHOD":"notifications/cancelled","params":{` + params + `,` + meta + `}}`, []string{"MCP-Protocol-Version", "2026-07-28"}},
			{`[{"jsonrpc":"2.0","method":"notifications/cancelled","params":{` + params + `,` + meta + `}}]`, []string{"MCP-Protocol-Version", "2026-07-28"}},
			{`{"jsonrpc":"2.0","id":null,"method":"notifications/cancelled","params":{` + params + `,` + meta + `}}`, []string{"MCP-Protocol-Version", " 2026-07-28 "}},
		} {
			post(t, web, "/mcp", attempt.body, attempt.headers...)
		}
	}
	c.ok("upload", args{"session_id": session, "path": "go", "content": ""})
	if got := <-done; got == nil || got.str("stdout") != "done\n" {
		t.Errorf("the call was cancelled: %v", got)
	}
}

// A legacy client's notice cancels its own call, by number and by string.
func TestBugMT01_CancelNoticeOverHTTP(t *testing.T) {
	r := newRig(t)
	web := r.web()
	mine, other := initialize(t, web), initialize(t, web)
	for _, id := range []string{`77`, `"seventy"`} {
		done := make(chan string, 1)
		go func() {
			_, body := post(t, web, "/mcp", `{"jsonrpc":"2.0","id":`+id+`,"method":"tools/call","params":{"name":"exec","arguments":{"command":"sleep 1000","wait_seconds":40}}}`, "Mcp-Session-Id", mine)
			done <- body
		}()
		eventually(t, "the command runs", func() bool { return r.fake.Running() == 1 })
		notice := `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":` + id + `}}`
		post(t, web, "/mcp", notice, "Mcp-Session-Id", other)
		post(t, web, "/mcp", `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":123456}}`, "Mcp-Session-Id", mine)
		if r.fake.Running() != 1 {
			t.Error("a foreign notice or an unknown id stopped the command")
		}
		if response, _ := post(t, web, "/mcp", notice, "Mcp-Session-Id", mine); response.StatusCode != http.StatusAccepted {
			t.Errorf("the notice: %s", response.Status)
		}
		<-done
		eventually(t, "the command is stopped", func() bool { return r.fake.Running() == 0 })
		if _, body := post(t, web, "/mcp", `{"jsonrpc":"2.0","id":9,"method":"tools/call","params":{"name":"exec","arguments":{"command":"echo hi"}}}`, "Mcp-Session-Id", mine); !strings.Contains(body, `hi`) {
			t.Errorf("the client session is not usable: %s", body)
		}
	}
}
