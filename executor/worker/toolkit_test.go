package worker_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"caisson/executor/wire"
)

// kit calls a tool of the test server in one of its modes.
func kit(t *testing.T, mode, tool string, arguments any, args ...string) call {
	t.Helper()
	script, err := filepath.Abs("testdata/server.py")
	if err != nil {
		t.Fatal(err)
	}
	command := append([]string{"python3", script}, strings.Fields(mode)...)
	return call{path: wire.ToolkitPath, method: tool, parts: map[string]any{"name": "Kit", "command": command}, arguments: arguments, args: args}
}

// listing asks for the server's tools.
func listing(t *testing.T, mode string, args ...string) call {
	c := kit(t, mode, "", nil, args...)
	c.path = wire.ToolkitListPath
	return c
}

func TestTX25_AToolkitsToolIsCalled(t *testing.T) {
	o := kit(t, "decent", "echo", map[string]any{"n": 1}).run(t)
	o.wants(t, wire.StatusSuccess, `"{\"n\": 1}"`)
	if string(o.Metadata["method_name"]) != `"echo"` || !strings.Contains(string(o.Metadata["toolkit_server"]), "test") {
		t.Errorf("metadata %s", o.Metadata)
	}
	kit(t, "decent", "structured", nil).run(t).wants(t, wire.StatusSuccess, `{"n":7}`)
	kit(t, "decent", "fail", nil).run(t).wants(t, wire.StatusError, "it cannot be done")
	c := kit(t, "decent", "env", map[string]any{"name": "KIT_KEY"})
	c.env = []string{"KIT_KEY=k1"}
	c.run(t).wants(t, wire.StatusSuccess, "k1")
	o = kit(t, "decent", "words", nil).run(t)
	o.wants(t, wire.StatusSuccess, "said")
	if !strings.Contains(o.stderr, "Kit: words on stderr\n") {
		t.Errorf("the log has %q", o.stderr)
	}
}

func TestENV08_AToolkitsContentBecomesAResult(t *testing.T) {
	o := kit(t, "decent", "picture", nil).run(t)
	o.wants(t, wire.StatusSuccess, `see\nfile:///c\n[content of the unknown type \"new\"]`)
	if len(o.Images) != 1 || o.Images[0].Name != "image-1.png" || string(o.Images[0].Data) != "\x89PNG" {
		t.Errorf("images %+v", o.Images)
	}
	if len(o.Files) != 1 || o.Files[0].Name != "b.txt" || string(o.Files[0].Data) != "inside" {
		t.Errorf("files %+v", o.Files)
	}
}

func TestTX25_AToolkitsToolsAreListedOverAllPages(t *testing.T) {
	o := listing(t, "decent").run(t)
	var tools []struct{ Name string }
	if err := json.Unmarshal(o.Result.Result, &tools); err != nil || len(tools) != 12 || tools[11].Name != "env" {
		t.Errorf("%v: %s %s", err, o.Error, o.Result.Result)
	}
	if string(o.Metadata["tools_left_out"]) != "1" {
		t.Errorf("metadata %s", o.Metadata)
	}
}

func TestTX25_ProgressOfAToolkitIsPassedOn(t *testing.T) {
	o := kit(t, "decent", "slow", nil).run(t)
	o.wants(t, wire.StatusSuccess, "done")
	if len(o.progress) != 3 || o.progress[2] != (wire.Progress{Done: 3, Total: 3, Text: "step"}) {
		t.Errorf("progress %+v", o.progress)
	}
}

func TestAttackT54_AHostileServerHarmsItsCallAlone(t *testing.T) {
	for _, c := range []struct {
		mode   string
		status wire.Status
		text   string
	}{
		{"die", wire.StatusError, "ended during the call (exit status 9)"},
		{"mute", wire.StatusError, "did not finish within 2.7s"},
		{"flood", wire.StatusError, "did not finish within 2.7s"},
		{"flood-stderr", wire.StatusSuccess, "hello"},
		{"junk", wire.StatusSuccess, "hello"},
		{"array", wire.StatusSuccess, "in a list"},
		{"deep", wire.StatusError, "an answer that is no JSON-RPC message that could be read (messages of it that could not be used: 2)"},
		{"nan", wire.StatusError, "an answer that is no JSON-RPC message"},
		{"noid", wire.StatusError, "an answer that is no JSON-RPC message"},
		{"mute-junk", wire.StatusError, "and was stopped (messages of it that could not be used: 3)"},
		{"item", wire.StatusSuccess, `good\n[item 2 of the content could not be read and is left out]\nbetter`},
		{"line 64", wire.StatusError, "more than 16 MiB"},
		{"ask-flood", wire.StatusSuccess, "hello"},
		{"twice", wire.StatusSuccess, "first"},
		{"progress", wire.StatusSuccess, "hello"},
		{"noresult", wire.StatusError, "a result that is none"},
		{"refuse", wire.StatusError, "no such tool (code -32602)"},
		{"mute-start", wire.StatusError, "did not finish"},
		{"die-start", wire.StatusError, "no key is set"},
		{"old", wire.StatusError, "1999-01-01"},
		{"stubborn", wire.StatusSuccess, "hello"},
	} {
		t.Run(c.mode, func(t *testing.T) {
			one := kit(t, c.mode, "echo", "hello")
			one.arguments = map[string]string{"say": "hello"}
			one.timeout = 15 * time.Second
			if strings.Contains(c.text, "did not finish") || strings.Contains(c.text, "was stopped") {
				one.timeout = 3 * time.Second
			}
			o := one.run(t)
			o.wants(t, c.status, c.text)
			if o.took > one.timeout+7*time.Second || len(o.stdout) > 4<<20 || len(o.stderr) > 4<<20 {
				t.Errorf("took %s, gave %d and %d bytes", o.took, len(o.stdout), len(o.stderr))
			}
			if c.mode == "item" && string(o.Metadata["content_left_out"]) != "[2]" {
				t.Errorf("left out %s", o.Metadata["content_left_out"])
			}
			if c.mode == "junk" && string(o.Metadata["toolkit_messages_ignored"]) != "9" {
				t.Errorf("ignored %s messages", o.Metadata["toolkit_messages_ignored"])
			}
		})
	}
}

func TestAttackT54_WhatAServerAsksIsRefused(t *testing.T) {
	o := kit(t, "ask", "echo", nil).run(t)
	var text string
	if err := json.Unmarshal(o.Result.Result, &text); err != nil || strings.Count(text, "-32601") != 3 || strings.Count(text, `"result": {}`) != 1 {
		t.Errorf("%v: answers %s %s", err, text, o.Error)
	}
}

func TestAttackT54_ListsAreBounded(t *testing.T) {
	for mode, most := range map[string]int{"many": 500, "fat": 7, "endless": 100} {
		o := listing(t, mode).run(t)
		var tools []json.RawMessage
		if err := json.Unmarshal(o.Result.Result, &tools); err != nil || len(tools) == 0 || len(tools) > most || len(o.Result.Result) > 9<<20 {
			t.Errorf("%s: %v, %d tools in %d bytes, %s", mode, err, len(tools), len(o.Result.Result), o.Error)
		}
	}
	listing(t, "nolist").run(t).wants(t, wire.StatusError, "list of tools that is none")
	listing(t, "shadow").run(t).wants(t, wire.StatusSuccess, `"exec"`) // as it gave them: the server decides
}

func TestAttackT54_NothingOfAServerIsLeft(t *testing.T) {
	o := kit(t, "stubborn", "fork", nil).run(t)
	var pid string
	if err := json.Unmarshal(o.Result.Result, &pid); err != nil {
		t.Fatalf("%v: %s", err, o.Error)
	}
	if _, err := strconv.Atoi(pid); err != nil || stateOf(pid) != "" && stateOf(pid) != "Z" {
		t.Errorf("process %q is left", pid)
	}
}

func TestTX05_ADeadlineIsToldToTheServer(t *testing.T) {
	mark := filepath.Join(t.TempDir(), "mark")
	warm := residence(t)
	kit(t, "decent", "get", nil, warm...).run(t).wants(t, wire.StatusSuccess, "None")
	c := kit(t, "decent", "slow", map[string]any{"steps": 1, "each": 60, "mark": mark}, warm...)
	c.timeout = 2 * time.Second
	c.run(t).wants(t, wire.StatusError, "did not finish")
	eventually(t, func() bool { text, _ := os.ReadFile(mark); return string(text) == "cancelled" })
}

// eventually polls until the condition holds.
func eventually(t *testing.T, holds func() bool) {
	t.Helper()
	for until := time.Now().Add(15 * time.Second); time.Now().Before(until); {
		if holds() {
			return
		}
		time.Sleep(20 * time.Millisecond)
	}
	t.Error("it does not happen")
}
