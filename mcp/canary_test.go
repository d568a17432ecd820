package mcp_test

import (
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"testing"

	"caisson/mcp"
	"caisson/principal"
	"caisson/sandbox"
	"caisson/sandbox/sandboxtest"
)

// tokens lets in whoever has the one token.
type tokens struct{ token string }

func (d tokens) Authenticate(r *http.Request) (mcp.Principal, error) {
	if r.Header.Get("Authorization") != "Bearer "+d.token {
		return mcp.Principal{}, &principal.Refusal{Status: http.StatusUnauthorized, Challenge: `realm="caisson"`, Text: "a bearer token is required"}
	}
	return mcp.Principal{Name: "alice"}, nil
}

// canaries are secrets that a client sends, by what they are.
func canaries() map[string]string {
	all := map[string]string{}
	for _, what := range []string{"token", "wrongtoken", "query", "env", "content", "stdin", "output", "command", "image", "userinfo", "session", "exec", "tool", "argument", "label", "grep", "uri", "header"} {
		all[what] = "CANARY" + what + "CANARY"
	}
	return all
}

// canaryCalls sends them to every tool, in every place that takes one.
func canaryCalls(c map[string]string, session, exec string) map[string][]args {
	secret := args{"TOKEN": c["env"]}
	return map[string][]args{
		"session_create": {
			{"env": secret, "labels": args{"x": c["label"]}},
			{"image": "user:" + c["image"] + "@registry.example/img:1"},
			{"image": "https://u:" + c["userinfo"] + "@h.example/i"},
			{"workspace_key": c["session"] + "/..", "durability": "persistent"},
			{c["argument"]: c["content"]},
			{"env": c["env"]},
		},
		"exec": {
			{"session_id": session, "command": "cat; echo " + c["output"], "stdin": c["stdin"], "env": secret},
			{"session_id": session, "argv": []string{"sh", "-c", c["command"]}, "stdin": c["stdin"]},
			{"session_id": c["session"], "command": c["command"]},
			{"session_id": session, "command": c["command"], "cwd": "../" + c["command"]},
			{"session_id": session, "command": c["command"], "env": args{"A=" + c["env"]: c["env"]}},
			{"session_id": session, "command": "x", "timeout_seconds": c["stdin"]},
		},
		"exec_output": {{"exec_id": exec, "grep": c["grep"]}, {"exec_id": exec, "grep": "(" + c["grep"]}, {"exec_id": c["exec"]}},
		"exec_input":  {{"exec_id": exec, "data": c["stdin"]}, {"exec_id": c["exec"], "data": c["stdin"]}},
		"exec_list":   {{"session_id": session}, {"session_id": c["session"]}},
		"kill":        {{"exec_id": exec, "signal": c["exec"]}, {"exec_id": c["exec"]}},
		"run": {
			{"command": "cat; echo " + c["output"], "stdin": c["stdin"], "env": secret, "files": []args{{"path": "f", "content": c["content"]}}},
			{"command": c["command"], "image": "u:" + c["image"] + "@r.example/i"},
		},
		"upload": {
			{"session_id": session, "path": "f", "content": c["content"]},
			{"session_id": session, "path": "g", "content_base64": base64.StdEncoding.EncodeToString([]byte(c["content"]))},
			{"session_id": session, "path": "h", "content_base64": c["content"]},
			{"session_id": session, "path": "../" + c["content"], "content": c["content"]},
		},
		"download":         {{"session_id": session, "path": "f"}, {"session_id": c["session"], "path": "f"}},
		"edit_file":        {{"session_id": session, "path": "f", "old_string": c["content"], "new_string": c["content"] + "2"}, {"session_id": session, "path": "f", "old_string": c["stdin"], "new_string": ""}},
		"list_files":       {{"session_id": session}, {"session_id": c["session"]}},
		"session_list":     {{}, {"session_id": c["session"]}},
		"session_extend":   {{"session_id": session, "ttl_seconds": 60}, {"session_id": c["session"]}},
		"session_destroy":  {{"session_id": c["session"]}},
		"workspace_list":   {{}},
		"workspace_delete": {{"workspace_key": c["session"]}, {"workspace_key": c["session"] + "/.."}},
		"tool" + c["tool"]: {{}},
	}
}

// T59: what a client sends and what it gets is in no log at any level, in no audit
// record, no metric and no answer about the server's health, whatever goes wrong.
func TestAttackT59_MT03_SecretsAppearNowhere(t *testing.T) {
	c := canaries()
	r, path := audited(t, unlimited, func(o *mcp.Options) {
		o.Authenticator, o.OpenMetrics = tokens{c["token"]}, true
		o.Ready = func(context.Context) error { return errors.New("dial tcp 10.9.8.7:2376") }
	})
	web := r.web()
	ends(t, path)
	call := callWith(t, web, c["token"])
	session := call("session_create", args{}).session
	exec := call("exec", args{"session_id": session, "command": "cat", "stdin_open": true, "wait_seconds": 0}).exec
	if session == "" || exec == "" {
		t.Fatal("no session or exec to work with")
	}
	calls := canaryCalls(c, session, exec)
	ops := []string{sandboxtest.OpCreate, sandboxtest.OpList, sandboxtest.OpReadDir, sandboxtest.OpRead, sandboxtest.OpStart, sandboxtest.OpWrite, sandboxtest.OpWorkspaces}
	for _, kind := range append([]sandbox.Kind{255}, sandbox.Kinds()...) { // first without a fault
		if kind == sandbox.KindSessionLost || kind == sandbox.KindSessionNotFound {
			continue // they take the session away; a canary in its place shows the same
		}
		for _, op := range ops {
			switch {
			case kind == sandbox.KindInternal:
				r.fake.Fail(op, panicking{os.ErrClosed}) // with a canary of its own
			case kind != 255:
				r.fake.Fail(op, sandbox.Errorf("op", kind, "the engine says no"))
			}
		}
		for _, tool := range slices.Sorted(maps.Keys(calls)) {
			for _, a := range calls[tool] {
				call(tool, a)
			}
		}
	}
	foreignRequests(t, web, c)
	shown := map[string]string{}
	if _, shown["readyz"] = send(t, web, http.MethodGet, "/readyz", ""); shown["readyz"] != "not ready: engine\n" {
		t.Error(shown["readyz"])
	}
	_, shown["healthz"] = send(t, web, http.MethodGet, "/healthz?token="+c["query"], "")
	shown["log"], shown["metrics"] = r.log.String(), metricsOf(t, r)
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	shown["audit"] = string(text)
	for where, text := range shown {
		for line := range strings.Lines(text) {
			if strings.Contains(strings.ToLower(line), "canary") || strings.Contains(line, session) || strings.Contains(line, exec) {
				t.Errorf("%s: %.400s", where, line)
			}
		}
	}
	if n := len(ends(t, path)); n < 500 || !strings.Contains(shown["audit"], `"principal":"alice"`) || !strings.Contains(shown["log"], "DEBUG") {
		t.Errorf("%d ends of calls: the test has shown nothing", n)
	}
	if response, _ := send(t, web, http.MethodGet, "/metrics", ""); response.StatusCode != http.StatusNotFound {
		t.Errorf("/metrics on a shared endpoint: %s", response.Status)
	}
}

// called is what a canary's call has come to.
type called struct{ session, exec string }

// callWith calls tools over HTTP with a token, whatever they answer. What a result says
// about itself to programs has no secret either.
func callWith(t *testing.T, web *httptest.Server, token string) func(tool string, a args) called {
	t.Helper()
	head := []string{"Authorization", "Bearer " + token, "MCP-Protocol-Version", modern, "Mcp-Method", "tools/call"}
	return func(tool string, a args) called {
		t.Helper()
		body := mustJSON(t, args{"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": args{"name": tool, "arguments": a, "_meta": args{
			"io.modelcontextprotocol/protocolVersion": modern, "io.modelcontextprotocol/clientCapabilities": args{},
		}}})
		response, text := post(t, web, "/mcp", body, append(head, "Mcp-Name", tool)...)
		if len(response.Header.Get("X-Request-Id")) != 24 {
			t.Errorf("%s: no request id", tool)
		}
		var answer struct {
			Result struct {
				Meta    map[string]any `json:"_meta"`
				Content struct {
					Session struct {
						ID string `json:"session_id"`
					} `json:"session"`
					ID   string `json:"session_id"`
					Exec string `json:"exec_id"`
				} `json:"structuredContent"`
			} `json:"result"`
		}
		if err := json.Unmarshal([]byte(strings.TrimPrefix(text, "event: message\ndata: ")), &answer); err != nil {
			t.Fatalf("%s: %s: %v", tool, text, err)
		}
		if ref, failed := answer.Result.Meta["ref"]; failed && ref != response.Header.Get("X-Request-Id") {
			t.Errorf("%s: ref %v, header %s", tool, ref, response.Header.Get("X-Request-Id"))
		}
		delete(answer.Result.Meta, "field") // an unknown argument is named to whoever sent it
		if meta := mustJSON(t, answer.Result.Meta); strings.Contains(meta, "CANARY") {
			t.Errorf("%s: %s", tool, meta)
		}
		return called{cmp.Or(answer.Result.Content.Session.ID, answer.Result.Content.ID), answer.Result.Content.Exec}
	}
}

// foreignRequests are requests that never become a call, with secrets where people and
// attackers put them.
func foreignRequests(t *testing.T, web *httptest.Server, c map[string]string) {
	t.Helper()
	list := `{"jsonrpc":"2.0","id":"` + c["header"] + `","method":"` + c["argument"] + `"}`
	for _, headers := range [][]string{
		{},
		{"Authorization", "Bearer " + c["wrongtoken"]},
		{"Authorization", "Basic " + c["wrongtoken"]},
		{"Authorization", "Bearer " + c["token"], "Mcp-Session-Id", c["header"]},
		{"Authorization", "Bearer " + c["token"], "Origin", "https://" + c["header"] + ".example"},
		{"Cookie", c["header"], "User-Agent", c["header"], "X-Request-Id", c["header"]},
		{"Authorization", "Bearer " + c["token"], "MCP-Protocol-Version", c["header"]},
		{"Content-Type", c["header"]},
	} {
		for _, method := range []string{http.MethodPost, http.MethodGet, http.MethodDelete} {
			for _, p := range []string{"/mcp?access_token=" + c["query"], "/message?sessionId=" + c["session"], "/" + c["query"]} {
				_, _ = send(t, web, method, p, list, headers...)
				_, _ = send(t, web, method, p, "{"+c["content"], headers...)
			}
		}
	}
}
