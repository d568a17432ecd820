package mcp_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"unicode/utf8"
)

// TestAttackT51_NoMessageCanBeReadInTwoWays refuses what two readers could take for two
// messages, before any tool runs.
func TestAttackT51_NoMessageCanBeReadInTwoWays(t *testing.T) {
	r := newRig(t)
	web := r.web()
	session := initialize(t, web)
	call := `"params":{"name":"session_create"}`
	for _, body := range []string{
		`{"jsonrpc":"2.0","id":1,"method":"ping","method":"tools/call",` + call + `}`,
		`{"jsonrpc":"2.0","id":1,"method":"ping","METHOD":"tools/call",` + call + `}`,
		`{"jsonrpc":"2.0","id":1,"Method":"tools/call",` + call + `}`,
		`{"jsonrpc":"2.0","id":1,"ID":2,"method":"tools/call",` + call + `}`,
		`{"jsonrpc":"2.0","id":1,"method":"tools/call",` + call + `,"Params":{"name":"session_list"}}`,
		`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"session_list","name":"session_create"}}`,
		`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"session_list","Name":"session_create"}}`,
		`[{"jsonrpc":"2.0","id":1,"method":"tools/call",` + call + `}]`,
		`{"jsonrpc":"2.0","id":null,"method":"tools/call",` + call + `}`,
		`{"jsonrpc":"2.0","id":{},"method":"tools/call",` + call + `}`,
		`{"jsonrpc":"2.0","id":true,"method":"tools/call",` + call + `}`,
		`{"jsonrpc":"1.0","id":1,"method":"tools/call",` + call + `}`,
		`{"jsonrpc":"2.0","id":1,"method":"",` + call + `}`,
		`{"jsonrpc":"2.0","id":1}`, `{"jsonrpc":"2.0","result":{}}`, `"x"`, `1`, `null`, `{`, ``,
	} {
		response, answer := post(t, web, "/mcp", body, "Mcp-Session-Id", session)
		if code, _ := rpcError(t, answer); response.StatusCode != http.StatusBadRequest || code != -32600 && code != -32700 {
			t.Errorf("%s: %s %s", body, response.Status, answer)
		}
	}
	if n := len(r.fake.Sessions()); n != 0 {
		t.Errorf("%d sessions were made", n)
	}
}

// TestAttackT51_HeadersOfEveryForm: there twice, in Base64 that says something else or
// is broken, in another case, or of a stream to resume.
func TestAttackT51_HeadersOfEveryForm(t *testing.T) {
	r := newRig(t)
	web := r.web()
	body := `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"session_create","_meta":{` + modernMeta + `}}}`
	for _, change := range []func(http.Header){
		func(h http.Header) { h.Add("Mcp-Method", "tools/list") },
		func(h http.Header) { h.Add("Mcp-Name", "session_list") },
		func(h http.Header) { h.Add("MCP-Protocol-Version", "2025-11-25") },
		func(h http.Header) { h.Set("Mcp-Method", "Tools/Call") },
		func(h http.Header) { h.Set("Mcp-Name", "SESSION_CREATE") },
		func(h http.Header) { h.Set("Mcp-Name", "=?base64?c2Vzc2lvbl9saXN0?=") },
		func(h http.Header) { h.Set("Mcp-Name", "=?base64?!?=") },
		func(h http.Header) { h.Set("Last-Event-ID", "1") },
	} {
		if status, answer := withHeaders(t, web, body, change); status != http.StatusBadRequest {
			t.Errorf("%d %s", status, answer)
		} else if code, _ := rpcError(t, answer); code != -32020 {
			t.Errorf("%s", answer)
		}
	}
	if n := len(r.fake.Sessions()); n != 0 {
		t.Errorf("%d sessions were made", n)
	}
	same := func(h http.Header) { h.Set("Mcp-Name", "=?base64?c2Vzc2lvbl9jcmVhdGU=?=") }
	if status, answer := withHeaders(t, web, body, same); status != http.StatusOK {
		t.Errorf("the right name in Base64: %d %s", status, answer)
	}
}

// TestAttackT51_BodiesThatAreNotUTF8 are no JSON, on every transport: what is not a
// character is never taken, run or repeated.
func TestAttackT51_BodiesThatAreNotUTF8(t *testing.T) {
	r := newRig(t)
	web := r.web()
	session := initialize(t, web)
	_, endpoint := connect(t, web)
	for _, body := range []string{
		"{\"jsonrpc\":\"2.0\",\"id\":\"\xff\",\"method\":\"ping\"}",
		"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\",\"params\":{\"name\":\"session_create\",\"arguments\":{\"image\":\"a\xc0\xafb\"}}}",
		"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\",\"params\":{\"name\":\"session_create\",\"_meta\":{\"progressToken\":\"\xed\xa0\x80\"}}}",
		"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"\xe8\xaa\"}",
	} {
		for _, path := range []string{"/mcp", endpoint} {
			response, answer := post(t, web, path, body, "Mcp-Session-Id", session)
			if code, _ := rpcError(t, answer); response.StatusCode != http.StatusBadRequest || code != -32700 || !json.Valid([]byte(answer)) || !utf8.ValidString(answer) {
				t.Errorf("%s: %q: %s %q", path, body, response.Status, answer)
			}
		}
	}
	stdio := r.stdioClient()
	stdio.send("{\"jsonrpc\":\"2.0\",\"id\":\"\xff\",\"method\":\"ping\"}")
	if answer, _ := stdio.await("null"); !strings.Contains(string(answer.Error), "-32700") {
		t.Errorf("stdio: %s", answer.Error)
	}
	if n := len(r.fake.Sessions()); n != 0 {
		t.Errorf("%d sessions were made", n)
	}
}
