package cli

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"regexp"
	"strings"
	"syscall"
	"testing"
)

// declaring is a manifest with a tool of each kind that is listed without an engine.
const declaring = `tools:
  - {name: python_repl, description: Runs Python., repl: python}
  - name: count_words
    description: Counts words.
    input_schema: {type: object, properties: {text: {type: string, description: A text.}, deep: {type: object, properties: {b: {type: integer}, a: {type: integer}}}}, required: [text]}
    command: [count]
  - {name: another, description: Does another thing., command: [another]}
agents:
  - {name: reviewer, agent_ref: reviewer, description: Reviews a change.}
`

const (
	listLegacy = `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`
	listModern = `{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}`
)

// listedOver returns the bytes of the list of tools that one more connection gets.
func listedOver(t *testing.T, url, list string) string {
	t.Helper()
	headers := map[string]string{"MCP-Protocol-Version": "2026-07-28", "Mcp-Method": "tools/list"}
	if list == listLegacy {
		headers = map[string]string{"Mcp-Session-Id": beginOver(t, url)}
	}
	response := ask(t, http.MethodPost, url+"/mcp", list, headers)
	raw, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return toolsOf(t, raw)
}

// beginOver begins a client session and returns its id.
func beginOver(t *testing.T, url string) string {
	t.Helper()
	body := `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`
	return ask(t, http.MethodPost, url+"/mcp", body, nil).Header.Get("Mcp-Session-Id")
}

// ask makes one request, whose response ends with the test.
func ask(t *testing.T, method, url, body string, headers map[string]string) *http.Response {
	t.Helper()
	request, err := http.NewRequestWithContext(soon(t), method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Accept", "application/json, text/event-stream")
	for name, value := range headers {
		request.Header.Set(name, value)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	closing(t, response.Body)
	if response.StatusCode != http.StatusOK {
		text, _ := io.ReadAll(response.Body)
		t.Fatalf("%s: %s", response.Status, text)
	}
	return response
}

// toolsOf cuts the list out of an answer, byte for byte.
func toolsOf(t *testing.T, raw []byte) string {
	t.Helper()
	var answer struct {
		Tools  json.RawMessage `json:"tools"`
		Result struct {
			Tools json.RawMessage `json:"tools"`
		} `json:"result"`
	}
	if err := json.Unmarshal(raw, &answer); err != nil {
		t.Fatalf("%v: %s", err, raw)
	}
	return string(answer.Tools) + string(answer.Result.Tools)
}

// The list of tools has the same bytes in every run of the program, over every
// connection, transport and era, with a manifest and without one.
func TestBugMS01_TheListOfToolsIsAlwaysTheSame(t *testing.T) {
	for name, environ := range map[string][]string{"without a manifest": nil, "with one": {"SANDBOX_MCP_MANIFEST=" + manifestFile(t, declaring)}} {
		lists := map[string]string{}
		for _, run := range []string{"first", "second"} {
			p := start(t, append([]string{deadEngine}, environ...), "serve")
			p.initialize()
			lists["stdio, "+run] = toolsOf(t, p.call("tools/list", map[string]any{}))
			lists["stdio, again, "+run] = toolsOf(t, p.call("tools/list", map[string]any{}))
			_, url := serveHTTP(t, environ...)
			for _, connection := range []string{"one", "two"} {
				lists["http, legacy, "+connection+", "+run] = listedOver(t, url, listLegacy)
				lists["http, modern, "+connection+", "+run] = listedOver(t, url, listModern)
			}
		}
		want := lists["stdio, first"]
		if strings.Contains(want, `"reviewer"`) != (environ != nil) || len(want) < 10_000 {
			t.Fatalf("%s: %s", name, want)
		}
		for where, list := range lists {
			if list != want {
				t.Errorf("%s: %s differs:\n%s\n%s", name, where, list, want)
			}
		}
	}
}

// A manifest's tools are held to what the strictest of the known clients take, as the
// built-in ones are.
func TestBugMS01_DeclaredToolsSuitEveryClient(t *testing.T) {
	p := start(t, []string{deadEngine}, "serve", "--manifest", manifestFile(t, declaring))
	p.initialize()
	list := toolsOf(t, p.call("tools/list", map[string]any{}))
	var tools []struct {
		Name, Description string
		InputSchema       map[string]any
		OutputSchema      map[string]any
		Annotations       map[string]any
	}
	if err := json.Unmarshal([]byte(list), &tools); err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for _, tool := range tools {
		if !regexp.MustCompile(`^[a-z0-9_]{1,35}$`).MatchString(tool.Name) || seen[strings.ToLower(tool.Name)] {
			t.Errorf("name %q", tool.Name)
		}
		seen[strings.ToLower(tool.Name)] = true
		if n := len(tool.Description); n == 0 || n >= 2048 {
			t.Errorf("%s: description of %d bytes", tool.Name, n)
		}
		if _, ok := tool.InputSchema["properties"].(map[string]any); tool.InputSchema["type"] != "object" || !ok {
			t.Errorf("%s: arguments %v", tool.Name, tool.InputSchema)
		}
		if tool.OutputSchema != nil && tool.OutputSchema["type"] != "object" {
			t.Errorf("%s: result %v", tool.Name, tool.OutputSchema)
		}
		for _, word := range []string{"anyOf", "oneOf", "allOf", "not", "$ref", "if"} {
			if tool.InputSchema[word] != nil || tool.OutputSchema[word] != nil {
				t.Errorf("%s has %s at the top", tool.Name, word)
			}
		}
		for _, hint := range []string{"readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint"} {
			if _, ok := tool.Annotations[hint].(bool); !ok {
				t.Errorf("%s: %s is %v", tool.Name, hint, tool.Annotations[hint])
			}
		}
	}
	for _, name := range []string{"python_repl", "count_words", "another", "reviewer"} {
		if !seen[name] {
			t.Errorf("%s is not listed", name)
		}
	}
	if len(list) > 430_000 || len(tools) > 118 {
		t.Errorf("%d tools in %d bytes", len(tools), len(list))
	}
}

// A hangup that changes the manifest is told to who keeps a stream open and to who
// listens in the stateless protocol.
func TestPOL12_AHangupIsToldOverHTTP(t *testing.T) {
	name := manifestFile(t, twoTools)
	p, url := serveHTTP(t, "SANDBOX_MCP_MANIFEST="+name)
	session := beginOver(t, url)
	listen := `{"jsonrpc":"2.0","id":1,"method":"subscriptions/listen","params":{"notifications":{"toolsListChanged":true},"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}`
	streams := map[string]*http.Response{
		"GET":                  ask(t, http.MethodGet, url+"/mcp", "", map[string]string{"Mcp-Session-Id": session}),
		"subscriptions/listen": ask(t, http.MethodPost, url+"/mcp", listen, map[string]string{"MCP-Protocol-Version": "2026-07-28", "Mcp-Method": "subscriptions/listen"}),
		"SSE":                  ask(t, http.MethodGet, url+"/sse", "", nil),
	}
	lines := map[string]*bufio.Scanner{}
	for how, stream := range streams {
		lines[how] = bufio.NewScanner(stream.Body)
	}
	// A listener and an SSE client are told first that they are heard.
	until(t, lines["subscriptions/listen"], "data: ")
	endpoint := strings.TrimPrefix(until(t, lines["SSE"], "data: "), "data: ")
	greet(t, url+endpoint)
	until(t, lines["SSE"], `"serverInfo"`)
	rewrite(t, name, twoTools+"  - {name: third, description: Third., command: [third]}\n")
	p.signal(syscall.SIGHUP)
	for how, stream := range lines {
		until(t, stream, `"notifications/tools/list_changed"`)
		t.Log(how)
	}
	if list := listedOver(t, url, listLegacy); !strings.Contains(list, `"third"`) {
		t.Errorf("listed %s", list)
	}
}

// until reads a stream to the line that holds the text.
func until(t *testing.T, stream *bufio.Scanner, text string) string {
	t.Helper()
	for stream.Scan() {
		if bytes.Contains(stream.Bytes(), []byte(text)) {
			return stream.Text()
		}
	}
	t.Fatalf("the stream ends without %s: %v", text, stream.Err())
	return ""
}

// greet begins the conversation of an SSE client.
func greet(t *testing.T, endpoint string) {
	t.Helper()
	for _, body := range []string{
		`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`,
		`{"jsonrpc":"2.0","method":"notifications/initialized"}`,
	} {
		response, err := http.Post(endpoint, "application/json", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		_ = response.Body.Close()
	}
}
