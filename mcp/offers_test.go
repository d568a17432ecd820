package mcp_test

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"

	mcpgo "github.com/mark3labs/mcp-go/mcp"

	"caisson/mcp"
)

// Prompts are listed with what they take, filled with it, and refused by name.
func TestPromptsAreFilledOrRefusedByName(t *testing.T) {
	for _, how := range []string{"http", "sse"} {
		for _, version := range []string{legacy, modern} {
			c := newRig(t).dial(how, version).c
			list, err := c.ListPrompts(t.Context(), mcpgo.ListPromptsRequest{})
			if err != nil || len(list.Prompts) != 3 {
				t.Fatalf("%v %v", list, err)
			}
			get := func(name string, arguments map[string]string) (string, error) {
				got, err := c.GetPrompt(t.Context(), mcpgo.GetPromptRequest{Params: mcpgo.GetPromptParams{Name: name, Arguments: arguments}})
				if err != nil {
					return "", err
				}
				return got.Messages[0].Content.(mcpgo.TextContent).Text, nil
			}
			text, err := get("run_code", map[string]string{"code": "print('```')", "language": "python", "image": "img"})
			if err != nil || !strings.Contains(text, "````\nprint('```')\n````") || !strings.Contains(text, "python code") || !strings.Contains(text, `image: "img"`) {
				t.Errorf("%v: %s", err, text)
			}
			for _, a := range []map[string]string{nil, {"code": " "}, {"code": "x", "lang": "go"}, {"code": strings.Repeat("x", 1<<20)}} {
				if text, err := get("run_code", a); err == nil || strings.Contains(err.Error(), "rpc-code") || !strings.Contains(err.Error(), "invalid_argument: ") {
					t.Errorf("%.60v: %v %s", a, err, text)
				}
			}
			for _, p := range list.Prompts {
				all := map[string]string{}
				for _, a := range p.Arguments {
					all[a.Name] = "value-of-" + a.Name
				}
				text, err := get(p.Name, all)
				for _, a := range p.Arguments {
					if err != nil || !strings.Contains(text, all[a.Name]) || a.Description == "" {
						t.Errorf("%s does not use %s: %v", p.Name, a.Name, err)
					}
				}
			}
		}
	}
}

// Completions offer the caller's own sessions and the images that it may use.
func TestCompletionsOfferWhatTheCallerMayUse(t *testing.T) {
	r := newRig(t, func(o *mcp.Options) { o.Images = []string{"img", "img-two", "debian:*", "other"} })
	c := r.dial("http", legacy)
	id := c.ok("session_create", nil).session()["session_id"].(string)
	for _, row := range []struct {
		ref             any
		argument, typed string
		want            []string
	}{
		{mcpgo.ResourceReference{Type: "ref/resource", URI: "sandbox://{session_id}/{+path}"}, "session_id", "sbx_", []string{id}},
		{mcpgo.ResourceReference{Type: "ref/resource", URI: "sandbox://{session_id}/{+path}"}, "session_id", "x", nil},
		{mcpgo.ResourceReference{Type: "ref/resource", URI: "other://{session_id}"}, "session_id", "", nil},
		{mcpgo.PromptReference{Type: "ref/prompt", Name: "look_around"}, "session_id", id[:10], []string{id}},
		{mcpgo.PromptReference{Type: "ref/prompt", Name: "run_code"}, "image", "img", []string{"img", "img-two"}},
		{mcpgo.PromptReference{Type: "ref/prompt", Name: "run_code"}, "language", "py", []string{"python"}},
		{mcpgo.PromptReference{Type: "ref/prompt", Name: "run_code"}, "session_id", "", nil},
		{mcpgo.PromptReference{Type: "ref/prompt", Name: "nope"}, "image", "", nil},
	} {
		request := mcpgo.CompleteRequest{Params: mcpgo.CompleteParams{Ref: row.ref, Argument: mcpgo.CompleteArgument{Name: row.argument, Value: row.typed}}}
		got, err := c.c.Complete(t.Context(), request)
		if err != nil || !slices.Equal(got.Completion.Values, row.want) || got.Completion.Total != len(row.want) {
			t.Errorf("%v %s %q: %v %v", row.ref, row.argument, row.typed, got, err)
		}
	}
}

// Lists of the stateless protocol say for how long they hold and for whom.
func TestListsSayHowLongTheyHold(t *testing.T) {
	web := newRig(t).web()
	for method, want := range map[string]string{
		"tools/list": `"cacheScope":"private","ttlMs":60000`, "prompts/list": `"cacheScope":"public","ttlMs":3600000`,
		"resources/list": `"cacheScope":"public","ttlMs":3600000`, "resources/templates/list": `"cacheScope":"public","ttlMs":3600000`,
		"server/discover": `"cacheScope":"public","ttlMs":300000`,
	} {
		response, body := post(t, web, "/mcp", `{"jsonrpc":"2.0","id":1,"method":"`+method+`","params":{"_meta":{`+modernMeta+`}}}`, "MCP-Protocol-Version", "2026-07-28", "Mcp-Method", method)
		var answer struct{ Result map[string]any }
		if err := json.Unmarshal([]byte(body), &answer); err != nil || response.StatusCode != http.StatusOK {
			t.Fatalf("%s: %s %s", method, response.Status, body)
		}
		got := mustJSON(t, map[string]any{"cacheScope": answer.Result["cacheScope"], "ttlMs": answer.Result["ttlMs"]})
		if got != "{"+want+"}" {
			t.Errorf("%s: %s", method, got)
		}
	}
}

// A list of tools holds for no time while toolkits are still being listed.
func TestAListThatWillChangeIsNotKept(t *testing.T) {
	f := withTools("one")
	web := newRig(t, f.into).web()
	ttl := func() any {
		_, body := post(t, web, "/mcp", `{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"_meta":{`+modernMeta+`}}}`, "MCP-Protocol-Version", "2026-07-28", "Mcp-Method", "tools/list")
		var answer struct{ Result map[string]any }
		if err := json.Unmarshal([]byte(body), &answer); err != nil {
			t.Fatalf("%s", body)
		}
		return answer.Result["ttlMs"]
	}
	if got := ttl(); got != 60000.0 {
		t.Errorf("listed: %v", got)
	}
	f.listed = make(chan struct{}) // the client has waited for its first list: it is not held up again
	if got := ttl(); got != 0.0 {
		t.Errorf("being listed: %v", got)
	}
	close(f.listed)
	if got := ttl(); got != 60000.0 {
		t.Errorf("listed again: %v", got)
	}
}

// The log level is taken, and a wrong one refused.
func TestLogLevelIsTaken(t *testing.T) {
	web := newRig(t).web()
	session := initialize(t, web)
	set := func(level string) string {
		_, body := post(t, web, "/mcp", `{"jsonrpc":"2.0","id":1,"method":"logging/setLevel","params":{"level":"`+level+`"}}`, "Mcp-Session-Id", session)
		return body
	}
	if body := set("debug"); !strings.Contains(body, `"result":{}`) {
		t.Error(body)
	}
	if body := set("loud"); !strings.Contains(body, "-32602") {
		t.Error(body)
	}
}
