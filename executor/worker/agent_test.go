package worker_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"caisson/executor/wire"
)

// agents makes a folder of agents from scripts.
func agents(t *testing.T, scripts map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, script := range scripts {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/sh\n"+script), 0o755); err != nil { //nolint:gosec // a program
			t.Fatal(err)
		}
	}
	return dir
}

func ask(dir, state, ref string, arguments any) call {
	return call{
		path: wire.AgentPath, arguments: arguments, args: []string{"--agents", dir, "--resident-dir", state},
		parts: map[string]any{"agent_ref": ref, "tool_name": "reviewer", "tool_description": "d", "use_conversation_method": true},
	}
}

func TestAGT02_AGT07_AnAgentIsSetUpAndAsked(t *testing.T) {
	marks := t.TempDir()
	dir := agents(t, map[string]string{
		"dummy":           `test -e "$MARKS/ready" || exit 9; cat; printf " key=$MODEL_KEY"`,
		"dummy.configure": `echo x >> "$MARKS/ready"`,
	})
	state := filepath.Join(t.TempDir(), "s")
	for range 2 {
		c := ask(dir, state, "dummy", map[string]any{"question": "Why?", "execution_memory": "canary"})
		c.env = []string{"MARKS=" + marks, "MODEL_KEY=k1"}
		o := c.run(t)
		// AGT-4: the credentials are in the environment. AGT-5: only these two travel.
		o.wants(t, wire.StatusSuccess, `{\"question\":\"Why?\",\"include_previous_results\":false} key=k1`)
		if strings.Contains(string(o.Result.Result), "canary") {
			t.Error("live state of the caller reached the agent")
		}
	}
	if text, err := os.ReadFile(filepath.Join(marks, "ready")); err != nil || string(text) != "x\n" {
		t.Errorf("the agent was set up with %q, %v; want once", text, err)
	}
}

func TestAGT04_AGT05_CredentialsComeByTheEnvironmentAndLiveStateDoesNot(t *testing.T) {
	dir := agents(t, map[string]string{"dummy": `cat; echo "$MODEL_KEY"`})
	c := ask(dir, filepath.Join(t.TempDir(), "s"), "dummy", map[string]any{"question": "q", "include_previous_results": true, "context_filter": "canary"})
	c.env = []string{"MODEL_KEY=canary-key"}
	o := c.run(t)
	o.wants(t, wire.StatusSuccess, "canary-key")
	o.wants(t, wire.StatusSuccess, `\"include_previous_results\":true`)
	if strings.Contains(string(o.Result.Result), "context_filter") {
		t.Error("live state of the caller reached the agent")
	}
}

func TestAGT03_AnAgentThatIsNotRegisteredIsNamedWithThoseThatAre(t *testing.T) {
	dir := agents(t, map[string]string{"reviewer": "echo hi", "reviewer.configure": ""})
	if err := os.WriteFile(filepath.Join(dir, "notes"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	state := filepath.Join(t.TempDir(), "s")
	question := map[string]string{"question": "q"}
	for _, ref := range []string{"nobody", "../reviewer", "reviewer.configure", ""} {
		o := ask(dir, state, ref, question).run(t)
		o.wants(t, wire.StatusError, "; it has reviewer")
		if ref != "" && !strings.Contains(o.Error, ref) {
			t.Errorf("%s is not named: %s", ref, o.Error)
		}
	}
	ask(t.TempDir(), state, "x", question).run(t).wants(t, wire.StatusError, "it has no agents")
}

func TestAGT07_AnAgentNeedsAQuestionAndAnswers(t *testing.T) {
	dir := agents(t, map[string]string{"mute": "true", "sick": "echo ill >&2; exit 4", "well": "echo '{\"a\":1}'", "raw": "true", "raw.configure": "exit 7"})
	state := filepath.Join(t.TempDir(), "s")
	question := map[string]string{"question": "q"}
	ask(dir, state, "well", question).run(t).wants(t, wire.StatusSuccess, `{"a":1}`)
	ask(dir, state, "well", map[string]any{"question": 1}).run(t).wants(t, wire.StatusError, "question")
	ask(dir, state, "well", nil).run(t).wants(t, wire.StatusError, "question")
	ask(dir, state, "mute", question).run(t).wants(t, wire.StatusError, "no answer")
	ask(dir, state, "sick", question).run(t).wants(t, wire.StatusError, "exit status 4: ill")
	ask(dir, state, "raw", question).run(t).wants(t, wire.StatusError, "set-up of the agent raw ended with exit status 7")
}
