package cli

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

// toolNames lists what a client is shown.
func (p *program) toolNames() []string {
	p.t.Helper()
	var list struct {
		Tools []struct{ Name string } `json:"tools"`
	}
	if err := json.Unmarshal(p.call("tools/list", map[string]any{}), &list); err != nil {
		p.t.Fatal(err)
	}
	var names []string
	for _, tool := range list.Tools {
		names = append(names, tool.Name)
	}
	return names
}

// A manifest in the folder that a server is started in is somebody's file: it is read
// only when it is named, by setting or by flag.
func TestD29_AManifestIsServedOnlyWhenItIsNamed(t *testing.T) {
	name := manifestFile(t, twoTools)
	t.Chdir(filepath.Dir(name))
	if err := os.Rename(name, "manifest.yml"); err != nil {
		t.Fatal(err)
	}
	for _, row := range []struct {
		environ, args []string
		want          bool
	}{
		{nil, nil, false},
		{[]string{"SANDBOX_MCP_MANIFEST=manifest.yml"}, nil, true},
		{[]string{"SANDBOX_MCP_MANIFEST=/nowhere"}, []string{"--manifest", "manifest.yml"}, true},
	} {
		p := start(t, append([]string{deadEngine}, row.environ...), append([]string{"serve"}, row.args...)...)
		p.initialize()
		if names := p.toolNames(); slices.Contains(names, "fetch") != row.want || slices.Contains(names, "page") != row.want {
			t.Errorf("%v %v: listed %v", row.environ, row.args, names)
		}
	}
}

// wrongManifests are manifests that are wrong, and what is said of them.
func wrongManifests(t *testing.T) map[string][]string {
	return map[string][]string{
		manifestFile(t, "tols: []\n"+twoTools+"execution_policy:\n  rules:\n    fetsh: docker\n"): {`m.yml:1:1: a manifest has no key "tols"`, `m.yml:7:5: there is no tool, toolkit or agent "fetsh"`},
		filepath.Join(t.TempDir(), "absent.yml"):                                                  {"SANDBOX_MCP_MANIFEST cannot be read", "no such file"},
		t.TempDir():                                                                               {"SANDBOX_MCP_MANIFEST cannot be read", "is a directory"},
	}
}

func TestAWrongManifestEndsAnHTTPServer(t *testing.T) {
	for name, said := range wrongManifests(t) {
		_, p := run(t, []string{deadEngine}, "serve", "--transport=http", "--manifest", name)
		if p.status != exitSetting {
			t.Errorf("%s: status %d", name, p.status)
		}
		for _, want := range said {
			if !strings.Contains(p.stderr.String(), want) {
				t.Errorf("no %q in: %s", want, p.stderr)
			}
		}
	}
}

func TestAWrongManifestIsEveryAnswerOfAStdioServer(t *testing.T) {
	for name, said := range wrongManifests(t) {
		p := start(t, []string{deadEngine}, "serve", "--manifest", name)
		p.initialize()
		text, failed := p.tool("session_list", nil)
		for _, want := range append(said, "start") {
			if !failed || !strings.Contains(text, want) {
				t.Errorf("no %q in: %s", want, text)
			}
		}
		_ = p.stdin.Close()
		if status := p.end(); status != exitOK {
			t.Errorf("status %d", status)
		}
	}
}

// A wrong setting and an unreadable manifest are told at once.
func TestAWrongSettingAndAManifestThatIsNotThereAreToldAtOnce(t *testing.T) {
	_, p := run(t, []string{deadEngine, "SANDBOX_DOCKER_PULL_POLICY=sometimes"}, "serve", "--transport=http", "--manifest=/nowhere/m.yml")
	if text := p.stderr.String(); p.status != exitSetting || !strings.Contains(text, "PULL_POLICY takes") || !strings.Contains(text, "SANDBOX_MCP_MANIFEST cannot be read") {
		t.Errorf("status %d: %s", p.status, text)
	}
}

const loose = `tools:
  - {name: fetch, description: Fetches., command: [fetch]}
  - {name: page, description: Pages., command: [page]}
execution_policy:
  rules:
    fetch: {name: docker, options: {mem_limit: 2g}}
    page: k8s
`

// Each loosening that is allowed is logged at start, and each refusal as well: they
// are no faults.
func TestD31_D09_LooseningsAndRefusalsAreLoggedAtStart(t *testing.T) {
	for allowed, want := range map[string]string{"true": "level=WARN", "false": `SANDBOX_MCP_ALLOW_WEAKER_TOOLS`} {
		p := start(t, []string{deadEngine, "SANDBOX_MCP_LOG_FORMAT=text", "SANDBOX_MCP_ALLOW_WEAKER_TOOLS=" + allowed}, "serve", "--manifest", manifestFile(t, loose))
		p.initialize()
		text := p.says("the executor k8s is not available in this build")
		if loosened := strings.Contains(text, "loosens the hardening"); loosened != (allowed == "true") || !strings.Contains(text, "mem_limit") || allowed == "false" && !strings.Contains(text, want) {
			t.Errorf("allowed %s: %s", allowed, text)
		}
		if names := p.toolNames(); !slices.Contains(names, "fetch") || !slices.Contains(names, "page") {
			t.Errorf("listed %v", names)
		}
		if text, failed := p.tool("page", nil); !failed || !strings.HasPrefix(text, "tool_unavailable: ") || !strings.Contains(text, `rule "page"`) || !strings.Contains(text, "k8s") {
			t.Errorf("page: %s", text)
		}
	}
}

// SIGHUP reads the manifest again: a wrong one is told with its lines and changes
// nothing, a right one is served and told to the client.
func TestPOL12_AHangupReadsTheManifestAgain(t *testing.T) {
	name := manifestFile(t, twoTools)
	p := start(t, []string{deadEngine}, "serve", "--manifest", name)
	p.initialize()
	before := p.toolNames()
	rewrite(t, name, "tols: []\n"+twoTools)
	p.signal(syscall.SIGHUP)
	p.says(`:1:1: a manifest has no key`)
	p.says(`"code":"invalid_argument","action":"reload"`)
	if names := p.toolNames(); !slices.Equal(names, before) {
		t.Errorf("listed %v", names)
	}
	rewrite(t, name, twoTools+"  - {name: third, description: Third., command: [third]}\n")
	p.signal(syscall.SIGHUP)
	p.says(`"read again","what":"the manifest"`)
	deadline := time.Now().Add(limit)
	// The client may ask just before it is told.
	for !slices.Contains(p.toolNames(), "third") || !slices.Contains(p.notices, "notifications/tools/list_changed") {
		if time.Now().After(deadline) {
			t.Fatalf("the new tool is not listed, or the client is not told of it: told %v", p.notices)
		}
		time.Sleep(10 * time.Millisecond)
	}
	_ = p.stdin.Close()
	if status := p.end(); status != exitOK {
		t.Errorf("status %d: %s", status, p.stderr)
	}
}

func rewrite(t *testing.T, name, text string) {
	t.Helper()
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// On this host, where the operator allows it, a whole call goes through the built
// program: arguments are judged here, the tool runs in a process of its own, and the
// result says where.
func TestTX02_D09_ACallOnThisHostGoesAllTheWay(t *testing.T) {
	name := manifestFile(t, `tools:
  - name: count_words
    description: Counts words.
    input_schema: {type: object, properties: {text: {type: string}}, required: [text]}
    command: [python3, -c, "import json,sys; print(len(json.load(sys.stdin)['text'].split()))"]
  - {name: fails, description: Fails., command: [sh, -c, "echo why >&2; exit 3"]}
execution_policy: {rules: {"*": local}}
`)
	environ := []string{deadEngine, "SANDBOX_MCP_LOG_LEVEL=debug", "PATH=" + os.Getenv("PATH")}
	p := start(t, append(environ, "SANDBOX_MCP_ALLOW_LOCAL=true"), "serve", "--manifest", name)
	p.initialize()
	const canary = "one two canary-of-the-arguments"
	if text, failed := p.tool("count_words", map[string]any{"text": canary}); failed || !strings.Contains(text, "\n3\n") || !strings.Contains(text, "local") {
		t.Errorf("count_words: %s", text)
	}
	if text, failed := p.tool("count_words", map[string]any{"text": 7}); !failed || !strings.HasPrefix(text, "invalid_argument: ") || !strings.Contains(text, "text") {
		t.Errorf("a wrong argument: %s", text)
	}
	if text, failed := p.tool("fails", nil); !failed || !strings.HasPrefix(text, "tool_failed: ") || !strings.Contains(text, "why") {
		t.Errorf("fails: %s", text)
	}
	if log := p.says("count_words"); strings.Contains(log, "canary-of-the-arguments") {
		t.Errorf("the log holds arguments: %s", log)
	}
	refused := start(t, environ, "serve", "--manifest", name)
	refused.initialize()
	if text, failed := refused.tool("count_words", map[string]any{"text": canary}); !failed || !strings.HasPrefix(text, "tool_unavailable: ") || !strings.Contains(text, "SANDBOX_MCP_ALLOW_LOCAL") {
		t.Errorf("not allowed: %s", text)
	}
}

// A principal's policy is one that the manifest has.
func TestD30_APrincipalsPolicyIsTheManifests(t *testing.T) {
	principals := filepath.Join(t.TempDir(), "principals.yml")
	rewrite(t, principals, "principals:\n  - {name: ann, token_sha256: "+strings.Repeat("ab", 32)+", policy: strict}\n")
	for manifest, status := range map[string]int{twoTools: exitSetting, twoTools + "execution_policies: {strict: {rules: {\"*\": docker}}}\n": exitOK} {
		environ := []string{deadEngine, "SANDBOX_MCP_PRINCIPALS_FILE=" + principals, "SANDBOX_MCP_ADDR=127.0.0.1:0"}
		p := start(t, environ, "serve", "--transport=http", "--manifest", manifestFile(t, manifest))
		if status == exitOK {
			p.says("listening on")
			p.signal(syscall.SIGTERM)
		}
		if got := p.end(); got != status || status != exitOK && !strings.Contains(p.stderr.String(), "strict") {
			t.Errorf("status %d: %s", got, p.stderr)
		}
	}
}
