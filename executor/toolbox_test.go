package executor_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"caisson/executor"
	"caisson/sandbox"
)

const variety = `
tools:
  - {name: count, description: Counts., command: [python3, -c, x], input_schema: {type: object}}
  - {name: py, description: Python., repl: python}
toolkits: [{name: Files, tool_prefix: fs, command: [serve, /workspace], include: [read_*]}]
agents: [{name: reviewer, agent_ref: org.reviewer, description: Reviews.}]
`

// lists is a toolkit whose server lists tools of these names.
func lists(names ...string) func(run) executor.Result {
	return func(c run) executor.Result {
		if c.ToolPath != executor.ToolkitListPath {
			return good(c.Session)
		}
		var all []map[string]any
		for _, name := range names {
			all = append(all, map[string]any{"name": name, "description": "does " + name, "inputSchema": map[string]any{"type": "object"}})
		}
		return good(all)
	}
}

func TestENV03_AGT01_ADeclaredToolTravelsByWhatItIs(t *testing.T) {
	r := startRig(t)
	r.play("Files", lists("read_", "write_"))
	r.open(variety)
	r.Listed(t.Context())
	for name, want := range map[string]string{
		"count":    `caisson.worker:Command {"command":["python3","-c","x"],"name":"count"}`,
		"py":       `caisson.worker:PythonREPL {"instance":"","name":"py"}`,
		"fs_read_": `caisson.worker:Toolkit read_ {"command":["serve","/workspace"],"name":"Files"}`,
		"reviewer": `caisson.worker:Agent {"agent_ref":"org.reviewer","tool_description":"Reviews.","tool_name":"reviewer","use_conversation_method":true}`,
	} {
		arguments := map[string]string{"py": `{"code":"1"}`, "reviewer": `{"question":"?"}`}[name]
		if arguments == "" {
			arguments = `{"a":1}`
		}
		r.call(name, arguments)
		var e executor.Envelope
		for _, call := range r.ran() {
			if call.ToolPath != executor.ToolkitListPath {
				e = call.Envelope
			}
		}
		init, err := json.Marshal(e.InitArgs)
		if got := strings.Join(strings.Fields(e.ToolPath+" "+e.Method+" "), " ") + " " + string(init); err != nil || got != want || string(e.Arguments) != arguments {
			t.Errorf("%s: %s %s, want %s", name, got, e.Arguments, want)
		}
	}
}

func TestTX02_ACommandWithoutASchemaTakesNoArguments(t *testing.T) {
	r := newRig(t, "tools: [{name: t, description: x, command: [x]}]\n")
	if e := r.refusal(caller("alice"), "t", `{"n":1}`); e.Kind != sandbox.KindInvalid || e.Field != "n" {
		t.Error(e)
	}
	r.call("t", "{}")
	if got := string(r.definition("t").InputSchema); got != `{"additionalProperties":false,"properties":{},"type":"object"}` {
		t.Error(got)
	}
}

func TestAGT06_TX26_WhatNobodyDeclaredFailsBeforeTheEngineIsAsked(t *testing.T) {
	r := startRig(t)
	r.play("Files", lists("read_", "write_"))
	r.open(variety)
	r.Listed(t.Context())
	for _, name := range []string{"auditor", "org.reviewer", "fs_write_", "fs_", "Files", ""} {
		if e := r.refusal(caller("alice"), name, `{"question":"?"}`); e.Kind != sandbox.KindInvalid || e.Field != "name" {
			t.Errorf("%s: %v", name, e)
		}
	}
	if e := r.refusal(caller("alice"), "reviewr", `{}`); !strings.Contains(e.Text, "did you mean reviewer?") {
		t.Error(e)
	}
}

func TestTX07_POL11_ToolsOfOneRuleShareOneContainer(t *testing.T) {
	r := newRig(t, tools("a", "b", "c", "d")+`execution_policy: {rules: {d: {name: docker}, "*": {name: docker}}}`)
	release := r.fake.Hold("create")
	names := []string{"a", "b", "c", "a", "b", "c"}
	got := make(chan string, len(names))
	for _, name := range names {
		go func() { got <- r.value(name) }()
	}
	time.AfterFunc(50*time.Millisecond, release)
	first := <-got
	for range names[1:] {
		if other := <-got; other != first {
			t.Errorf("in %s and %s", first, other)
		}
	}
	if len(r.fake.Sessions()) != 1 {
		t.Errorf("%d containers", len(r.fake.Sessions()))
	}
	if r.value("d") == first || len(r.fake.Sessions()) != 2 {
		t.Error("another rule, though its spec is equal, has the same container")
	}
}

func TestPOL11_WhatIsNotDeclaredIsToldWithAllThatIs(t *testing.T) {
	m := parse(t, variety, server())
	if text := m.Unknown("zzz"); !strings.Contains(text, "Files") || !strings.Contains(text, "fs") || !strings.Contains(text, "reviewer") {
		t.Error(text)
	}
}
