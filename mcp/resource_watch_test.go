package mcp_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"caisson/mcp"
)

// updated reads the address of an update.
func updated(t *testing.T, m message) string {
	t.Helper()
	var p struct{ URI string }
	if err := json.Unmarshal(m.Params, &p); err != nil || m.Method != "notifications/resources/updated" {
		t.Errorf("%s %s %s", m.Method, m.Params, m.Result)
	}
	return p.URI
}

// TestWatchedFilesAreToldOf after a call that may have changed them, on every
// transport, until the client has enough.
func TestWatchedFilesAreToldOf(t *testing.T) {
	r := newRig(t)
	c := r.dial("http", legacy)
	id := c.ok("session_create", nil).session()["session_id"].(string)
	other := c.ok("session_create", nil).session()["session_id"].(string)
	uri := "sandbox://" + id + "/f"
	subscribe := func(n int, verb string) string {
		return fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"resources/%s","params":{"uri":%q}}`, n, verb, uri)
	}
	web := r.web()
	session := initialize(t, web)
	stream := open(t, web, http.MethodGet, "/mcp", "", "Mcp-Session-Id", session)
	post(t, web, "/mcp", subscribe(1, "subscribe"), "Mcp-Session-Id", session)
	sse, where := connect(t, web)
	post(t, web, where, subscribe(1, "subscribe"))
	sse.next()
	w := r.stdioClient()
	w.send(subscribe(1, "subscribe"))
	w.await("1")
	listen := open(t, web, http.MethodPost, "/mcp",
		`{"jsonrpc":"2.0","id":9007199254740993,"method":"subscriptions/listen","params":{"notifications":{"resourceSubscriptions":["`+uri+`"]},"_meta":{`+modernMeta+`}}}`,
		"MCP-Protocol-Version", "2026-07-28", "Mcp-Method", "subscriptions/listen")
	if m := listen.next(); m.Method != "notifications/subscriptions/acknowledged" || !strings.Contains(string(m.Params), `"io.modelcontextprotocol/subscriptionId":9007199254740993`) {
		t.Errorf("%s %s", m.Method, m.Params)
	}

	c.ok("upload", args{"session_id": other, "path": "f", "content": "x"})
	c.ok("download", args{"session_id": other, "path": "f"})
	c.ok("upload", args{"session_id": id, "path": "f", "content": "x"})
	for name, k := range map[string]*talk{"get": stream, "sse": sse, "listen": listen} {
		m := k.next()
		if got := updated(t, m); got != uri {
			t.Errorf("%s: %s", name, got)
		}
		if tagged := strings.Contains(string(m.Params), `subscriptionId":9007199254740993`); tagged != (name == "listen") {
			t.Errorf("%s: %s", name, m.Params)
		}
		if len(k.messages) != 0 {
			t.Errorf("%s: more than one", name)
		}
	}
	if m := <-w.lines; updated(t, m) != uri {
		t.Errorf("stdio: %v", m)
	}
	post(t, web, "/mcp", subscribe(2, "unsubscribe"), "Mcp-Session-Id", session)
	c.ok("exec", args{"session_id": id, "command": "true"})
	if m := listen.next(); updated(t, m) != uri || len(stream.messages) != 0 {
		t.Errorf("after the end of one subscription: %v, %d", m, len(stream.messages))
	}
}

// TestBugMT05_WhatAClientWatchesIsBounded and another's files are never told of.
func TestBugMT05_WhatAClientWatchesIsBounded(t *testing.T) {
	r := newRig(t, func(o *mcp.Options) { o.Authenticator = byName{} })
	web := r.web()
	begin := func(who string) string {
		response, _ := post(t, web, "/mcp", initializeBody, "Authorization", who)
		return response.Header.Get("Mcp-Session-Id")
	}
	ann, bob := begin("ann"), begin("bob")
	call := func(who, session, body string) string {
		_, text := post(t, web, "/mcp", body, "Authorization", who, "Mcp-Session-Id", session)
		return text
	}
	made := call("ann", ann, `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"session_create"}}`)
	_, rest, _ := strings.Cut(made, `"session_id":"`)
	id, _, _ := strings.Cut(rest, `"`)
	stream := open(t, web, http.MethodGet, "/mcp", "", "Mcp-Session-Id", bob, "Authorization", "bob")
	mine := call("bob", bob, `{"jsonrpc":"2.0","id":1,"method":"resources/subscribe","params":{"uri":"sandbox://`+id+`/f"}}`)
	none := call("bob", bob, `{"jsonrpc":"2.0","id":1,"method":"resources/subscribe","params":{"uri":"sandbox://sbx_nobody/f"}}`)
	if mine != none || !strings.Contains(mine, `"result":{}`) {
		t.Errorf("%s\n%s", mine, none)
	}
	call("ann", ann, `{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"upload","arguments":{"session_id":"`+id+`","path":"f","content":"x"}}}`)
	refused := 0
	for i := range 110 {
		if strings.Contains(call("bob", bob, fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"resources/subscribe","params":{"uri":"sandbox://x/%d"}}`, i)), "error") {
			refused++
		}
	}
	if refused != 12 {
		t.Errorf("%d of 112 were refused, 100 may be watched", refused)
	}
	if n := len(stream.messages); n != 0 {
		t.Errorf("another principal was told of the file, %d times", n)
	}
}
