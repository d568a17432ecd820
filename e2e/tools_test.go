package e2e_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/docker/docker/api/types/container"
)

// toolkitsImage is the tool image with the official toolkits' servers, a hostile
// one, and a dummy agent. scripts/images-toolkits makes it.
const toolkitsImage = "caisson-test-toolkits:latest"

// manifest writes a manifest for a test.
func manifest(t testing.TB, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "manifest.yml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// toolsEnv are the settings of a server that serves a manifest.
func toolsEnv(file string, more ...string) []string {
	return append([]string{
		"SANDBOX_MCP_MANIFEST=" + file, "SANDBOX_DOCKER_TOOL_IMAGE=" + toolkitsImage, "SANDBOX_DOCKER_NETWORK_MODE=none",
		"SANDBOX_DOCKER_PULL_POLICY=never", "SANDBOX_DOCKER_MAX_SESSIONS_PER_OWNER=64",
	}, more...)
}

// serveTools starts a server of a manifest over HTTP.
func serveTools(t *testing.T, text string, more ...string) *server {
	t.Helper()
	return start(t, launch{http: true, env: toolsEnv(manifest(t, text), more...)})
}

// command is a tool of a manifest that runs a shell script; its arguments are on
// the script's standard input. They may be anything.
func command(name, script string, more ...string) string {
	quoted, _ := json.Marshal(script)
	line := fmt.Sprintf("  - {name: %s, description: A tool of a test., command: [sh, -c, %s], input_schema: {type: object, properties: {text: {type: string, description: Any text.}}}", name, quoted)
	for _, m := range more {
		line += ", " + m
	}
	return line + "}\n"
}

// toolkit is a toolkit of a manifest.
func toolkit(name, prefix string, argv ...string) string {
	quoted, _ := json.Marshal(argv)
	return fmt.Sprintf("  - {name: %s, tool_prefix: %s, command: %s}\n", name, prefix, quoted)
}

// declared is the structured result of a manifest's tool.
type declared struct {
	Status   string
	Result   json.RawMessage
	Error    string
	Metadata struct {
		Executor, Mode, Rule, Container, Failure string
		DurationMS                               float64 `json:"duration_ms"`
		ExecID                                   string  `json:"exec_id"`
		Death                                    string  `json:"repl_death"`
	}
}

// text is the result where it is a string, without the space around it.
func (d declared) text() string {
	var s string
	if json.Unmarshal(d.Result, &s) != nil {
		return string(d.Result)
	}
	return strings.TrimSpace(s)
}

// tool calls a manifest's tool that must succeed.
func (a *actor) tool(name string, arguments any) declared {
	a.t.Helper()
	return into[declared](a.t, a.ok(name, arguments))
}

// toolFails calls one that must fail with tool_failed.
func (a *actor) toolFails(name string, arguments any) declared {
	a.t.Helper()
	return into[declared](a.t, a.fails("tool_failed", name, arguments))
}

// toolBoxes are the tool containers of an instance.
func (e *engine) toolBoxes(t testing.TB, instance string) []container.Summary {
	t.Helper()
	return slices.DeleteFunc(e.of(t, instance), func(c container.Summary) bool { return c.Labels["caisson.tools"] != "1" })
}

// listedNames are the names of all tools that a client of this kind is shown.
func listedNames(t *testing.T, a *actor) []string {
	t.Helper()
	var names []string
	for _, tool := range tools(t, a) {
		names = append(names, tool.Name)
	}
	return names
}

// declaredAs is a tool as a list shows it.
type declaredAs struct {
	Name, Description string
	InputSchema       json.RawMessage
	Annotations       map[string]any
}

// tools lists all tools of a server.
func tools(t *testing.T, a *actor) []declaredAs {
	t.Helper()
	var raw json.RawMessage
	switch c := a.conn.(type) {
	case *wire:
		var err error
		if raw, err = c.request(t.Context(), "tools/list", nil); err != nil {
			t.Fatal(err)
		}
	case goClient:
		list, err := c.ListTools(t.Context(), listRequest())
		if err != nil {
			t.Fatal(err)
		}
		if raw, err = json.Marshal(list); err != nil {
			t.Fatal(err)
		}
	}
	var list struct{ Tools []declaredAs }
	if err := json.Unmarshal(raw, &list); err != nil {
		t.Fatal(err)
	}
	return list.Tools
}

// listing waits until a tool is listed.
func listing(t *testing.T, a *actor, name string) {
	t.Helper()
	eventually(t, time.Minute, name+" is listed", func() bool { return slices.Contains(listedNames(t, a), name) })
}
