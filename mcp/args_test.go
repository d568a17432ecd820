package mcp_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	mcpgo "github.com/mark3labs/mcp-go/mcp"

	"caisson/mcp"
)

// raw calls a tool with arguments as they stand on the wire.
func (c *conn) raw(tool, arguments string) *result {
	c.t.Helper()
	request := mcpgo.CallToolRequest{Params: mcpgo.CallToolParams{Name: tool}}
	if arguments != "" {
		request.Params.RawArguments = json.RawMessage(arguments)
	}
	got, err := c.c.CallTool(c.t.Context(), request)
	if err != nil {
		c.t.Fatalf("%s(%s): %v", tool, arguments, err)
	}
	return c.check(tool, got)
}

func TestBugMS02_NumbersSentAsTextOrFractions(t *testing.T) {
	for _, version := range []string{legacy, modern} {
		c := newRig(t).dial("inprocess", version)
		for _, five := range []string{`5`, `"5"`, `5.0`, `"5.0"`, `5.000`} {
			got := c.raw("exec", `{"argv":["true"],"timeout_seconds":`+five+`}`)
			at, err := time.Parse(time.RFC3339, got.str("timeout_at"))
			if left := time.Until(at); err != nil || left > 5*time.Second || left < 2*time.Second {
				t.Errorf("timeout_seconds %s: timeout_at is in %v (%v): %s", five, left, err, got.text)
			}
		}
		for _, wrong := range []string{`5.5`, `1e3`, `"abc"`, `true`, `""`, `[5]`, `{}`, `0`, `-5`, `" 5"`, `"0x5"`, `99999999999999999999`} {
			got := c.raw("exec", `{"argv":["true"],"timeout_seconds":`+wrong+`}`)
			if got.code != "invalid_argument" || got.field() != "timeout_seconds" || !strings.Contains(got.text, "timeout_seconds takes a whole number from 1 up") {
				t.Errorf("timeout_seconds %s: %q %q", wrong, got.code, got.text)
			}
		}
		if got := c.raw("exec", `{"argv":["true"],"timeout_seconds":null}`); got.code != "" || got.str("timeout_at") == "" {
			t.Errorf("a null argument is an absent one: %s", got.text)
		}
	}
}

func TestBugMS03_UnknownArgumentsAreNamed(t *testing.T) {
	c := newRig(t).dial("inprocess", legacy)
	for _, test := range []struct{ arguments, field, meant string }{
		{`{"command":"sleep 5","timout":2}`, "timout", "timeout_seconds"},
		{`{"command":"true","sessionId":"x"}`, "sessionId", "session_id"},
		{`{"Command":"true"}`, "Command", "command"},
		{`{"cmd":"true"}`, "cmd", "command"},
		{`{"command":"true","` + strings.Repeat("y", 500) + `":1}`, strings.Repeat("y", 64) + "…", ""},
	} {
		got := c.raw("exec", test.arguments)
		if got.code != "invalid_argument" || got.field() != test.field || !strings.Contains(got.text, "did you mean "+test.meant) {
			t.Errorf("%s: %q field %q: %s", test.arguments, got.code, got.field(), got.text)
		}
		if len(got.text) > 300 {
			t.Errorf("a long name comes back whole: %s", got.text)
		}
	}
	if got := c.raw("upload", `{"files":[{"path":"a","content":"b","modus":"0755"}]}`); got.field() != "files[0].modus" || !strings.Contains(got.text, "files[0].mode?") {
		t.Errorf("nested: %q %s", got.field(), got.text)
	}
	if got := c.raw("workspace_list", `{"x":1}`); !strings.Contains(got.text, "takes none") {
		t.Errorf("a tool without arguments: %s", got.text)
	}
	if got := c.raw("exec", `{"command":"true","_meta":{"a":1}}`); got.code != "" {
		t.Errorf("_meta among the arguments: %s", got.text)
	}
}

func TestBugMS04_ArgumentsOfEveryForm(t *testing.T) {
	c := newRig(t).dial("inprocess", legacy)
	for name := range c.server.MCP().ListTools() {
		var first string
		for i, empty := range []string{"", "null", "{}"} {
			got := c.raw(name, empty)
			outcome := got.code + got.field()
			if i == 0 {
				first = outcome
			}
			if outcome != first {
				t.Errorf("%s: absent gives %q, %q gives %q", name, first, empty, outcome)
			}
		}
		for _, wrong := range []string{`[]`, `"x"`, `7`, `true`, `[{"a":1}]`} {
			if got := c.raw(name, wrong); got.code != "invalid_argument" || got.field() != "arguments" {
				t.Errorf("%s(%s): %q: %s", name, wrong, got.code, got.text)
			}
		}
	}
	before := len(c.fake.Sessions())
	for _, test := range []struct{ tool, arguments, field, takes string }{
		{"exec", `{"argv":"ls -l"}`, "argv", "a list, each item a string"},
		{"exec", `{"argv":["ls",5]}`, "argv[1]", "a string"},
		{"exec", `{"argv":["true"],"env":["A=1"]}`, "env", "an object with string values"},
		{"exec", `{"argv":["true"],"env":{"A":5}}`, `env."A"`, "a string"},
		{"exec", `{"command":"true","shell":"zsh"}`, "shell", "one of auto, sh, bash"},
		{"exec", `{"command":"true","stdin_open":"yes"}`, "stdin_open", "true or false"},
		{"exec", `{"command":["true"]}`, "command", "a string"},
		{"exec", `{"argv":["true"],"wait_seconds":601}`, "wait_seconds", "a whole number from 0 to 600"},
		{"upload", `{"files":{"path":"a"}}`, "files", "a list"},
		{"upload", `{"files":["a"]}`, "files[0]", "an object with path, content"},
		{"upload", `{"files":[{"content":"b"}]}`, "files[0].path", "is required"},
		{"kill", `{}`, "exec_id", "is required"},
		{"kill", `{"exec_id":""}`, "exec_id", "is empty"},
		{"session_create", `{"cpu":"NaN"}`, "cpu", "a number"},
		{"session_create", `{"cpu":"0x1p-2"}`, "cpu", "a number"},
		{"list_files", `{"path":"a\u0000b"}`, "path", "NUL"},
		{"exec", `{"argv":["a\u0000b"]}`, "argv[0]", "NUL"},
	} {
		got := c.raw(test.tool, test.arguments)
		if got.code != "invalid_argument" || got.field() != test.field || !strings.Contains(got.text, test.takes) {
			t.Errorf("%s(%s): %q field %q: %s", test.tool, test.arguments, got.code, got.field(), got.text)
		}
	}
	if made := len(c.fake.Sessions()) - before; made != 0 {
		t.Errorf("%d sessions were made by wrong calls", made)
	}
}

// A name given twice has two readers who may each see another value.
func TestArgumentsGivenTwiceOrBrokenAreRefused(t *testing.T) {
	c := newRig(t).dial("inprocess", legacy)
	for _, test := range []struct{ arguments, text string }{
		{`{"command":"true","command":"false"}`, `"command" is given twice`},
		{`{"argv":["true"],"env":{"A":"1","A":"2"}}`, `"A" is given twice`},
		{`{"command":"echo \ud800"}`, "not valid Unicode"},
		{`{"command":"echo \udc00x"}`, "not valid Unicode"},
		{`{"command":"echo \uD83Dx"}`, "not valid Unicode"},
	} {
		if got := c.raw("exec", test.arguments); got.code != "invalid_argument" || !strings.Contains(got.text, test.text) {
			t.Errorf("%s: %q: %s", test.arguments, got.code, got.text)
		}
	}
	for _, fine := range []string{`{"command":"echo \ud83d\ude00"}`, `{"command":"echo \\ud800"}`, `{"command":"echo \\\\\ud83d\ude00"}`} {
		if got := c.raw("exec", fine); got.code != "" {
			t.Errorf("%s: %s", fine, got.text)
		}
	}
}

func TestSecretValuesAreNotRepeatedInErrors(t *testing.T) {
	r := newRig(t)
	c := r.dial("inprocess", legacy)
	const canary = "s3cr3t-canary"
	for _, arguments := range []string{
		`{"command":"true","env":{"A B":"` + canary + `"}}`,
		`{"command":"true","env":"` + canary + `"}`,
		`{"command":5,"stdin":"` + canary + `","x":1}`,
		`{"argv":"` + canary + `"}`,
		`{"command":"env K","env":{"K":"` + canary + `\u0000"}}`,
	} {
		if got := c.raw("exec", arguments); got.code != "invalid_argument" || strings.Contains(got.text, canary) {
			t.Errorf("%s: %s", arguments, got.text)
		}
	}
	if got := c.ok("exec", args{"command": "env K", "env": args{"K": canary}}); got.str("stdout") != canary+"\n" {
		t.Errorf("%v", got.fields)
	}
	if strings.Contains(r.log.String(), canary) {
		t.Error("the log carries a value")
	}
}

func FuzzArgumentsNeverCrash(f *testing.F) {
	for _, seed := range []string{`{}`, `{"command":"x"}`, `[[[[`, `{"argv":["a"],"env":{"a":"\ud83d\ude00"}}`, `{"files":[{"path":"p"}]}`, `1e999`, "{\"a\":\"\xff\"}"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, arguments string) {
		_ = mcp.DecodeExec([]byte(arguments))
	})
}
