package e2e_test

import (
	"strconv"
	"strings"
	"testing"
	"time"
)

// official are the official servers, each once for calls that share a container
// and once for calls that have one each.
var official = "toolkits:\n" +
	toolkit("Files", "fs", "mcp-server-filesystem", "/workspace") + toolkit("FilesOnce", "fse", "mcp-server-filesystem", "/workspace") +
	toolkit("Memory", "mem", "mcp-server-memory") + toolkit("MemoryOnce", "meme", "mcp-server-memory") +
	toolkit("Everything", "all", "mcp-server-everything") + toolkit("EverythingOnce", "alle", "mcp-server-everything") +
	`execution_policy:
  rules:
    "*Once": {name: docker, options: {mode: ephemeral, nano_cpus: 1000000000, env: {MEMORY_FILE_PATH: /tmp/memory.jsonl}}, remote_timeout_seconds: 120}
    "*": {name: docker, options: {nano_cpus: 1000000000, env: {MEMORY_FILE_PATH: /tmp/memory.jsonl}}, remote_timeout_seconds: 120}
`

// The official servers, listed and called by the official client of most others:
// warm ones keep their state, of ephemeral ones nothing is left.
func TestTX03_TX07_TX10_TX11_TX25_OfficialServersThroughTheTypeScriptSDK(t *testing.T) {
	s := onStage(t)
	file := manifest(t, official)
	weaker := "SANDBOX_MCP_ALLOW_WEAKER_TOOLS=true" // a whole CPU: node takes its time
	v := start(t, launch{plain: true, http: true, env: toolsEnv(file, weaker)})
	for _, mode := range []string{"warm", "once"} {
		if out, complaints, err := node(t, nil, "tools.mjs", "http", v.url, mode); err != nil {
			t.Errorf("http, %s: %v\n%s\n%s\n%s", mode, err, out, tail(complaints), tail(v.stderr.String()))
		}
	}
	eventually(t, 10*time.Second, "only the warm container is left", func() bool { return len(the.engine.toolBoxes(t, v.instance)) == 1 })
	instance := s.run + "sdk-tools"
	env := append(append([]string{"SANDBOX_DOCKER_INSTANCE=" + instance}, s.env...), toolsEnv(file, weaker)...)
	if out, complaints, err := node(t, env, "tools.mjs", "stdio", s.plain, "warm"); err != nil {
		t.Errorf("stdio: %v\n%s\n%s", err, out, tail(complaints))
	}
	eventually(t, 10*time.Second, "no container is left when the client has gone", func() bool { return len(the.engine.of(t, instance)) == 0 })
}

// What the servers declare comes in a form that the strictest of the known clients
// take.
func TestTX25_TheInspectorFindsNoFaultInToolsOfToolkits(t *testing.T) {
	t.Parallel()
	v := start(t, launch{plain: true, http: true, env: toolsEnv(manifest(t, official), "SANDBOX_MCP_ALLOW_WEAKER_TOOLS=true")})
	a := join(t, v, httpLegacy)
	for _, name := range []string{"fs_read_text_file", "mem_read_graph", "all_get_tiny_image"} {
		listing(t, a, name)
	}
	for _, era := range []string{"legacy", "modern"} {
		out, complaints, err := node(t, nil, inspectorMain(t), "--cli", v.url+"/mcp", "--protocol-era", era, "--method", "tools/list", "--strict", "--format", "json", "-q")
		// The result of a declared tool may be any JSON: that one place, and no other, is untyped.
		warned, untyped := strings.Count(complaints, "Warning: tool"), strings.Count(complaints, "Path: outputSchema.properties.result\n")
		if err != nil || !strings.Contains(complaints, "0 errors, "+strconv.Itoa(warned)+" warnings") || warned != untyped {
			t.Errorf("%s: %v\n%s\n%s", era, err, clip(out), tail(complaints))
		}
		if n := strings.Count(out, `"inputSchema"`); n < len(everyTool)+30 {
			t.Errorf("%s: %d tools", era, n)
		}
	}
}
