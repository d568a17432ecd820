package cli

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"caisson/executor"
)

// manifestFile writes a manifest and returns its path.
func manifestFile(t *testing.T, text string) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "m.yml")
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

const twoTools = `tools:
  - {name: fetch, description: Fetches., command: [fetch]}
  - {name: page, description: Pages., command: [page]}
`

func TestManifestCheckPassesTheExampleWithoutAnyEngine(t *testing.T) {
	out, p := run(t, nil, "manifest", "check", "../manifest.yml")
	if p.status != exitOK || p.stderr.String() != "" {
		t.Fatalf("status %d: %s", p.status, p.stderr)
	}
	for _, want := range []string{"manifest.yml is right", "python_repl, count_words", "offline", "the default one (3 rules)"} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q in\n%s", want, out)
		}
	}
}

func TestManifestCheckNamesEveryFaultWithItsLine(t *testing.T) {
	name := manifestFile(t, "tols: []\n"+twoTools+"execution_policy:\n  rules:\n    fetsh: docker\n    page: {name: docker, options: {network_mode: host, volumes: [/:/h]}}\n    \"*\": k8s\n")
	out, p := run(t, nil, "manifest", "check", name)
	var lines []string
	for line := range strings.Lines(p.stderr.String()) {
		lines = append(lines, strings.TrimPrefix(strings.TrimSpace(line), name))
	}
	want := []string{
		`:1:1: a manifest has no key "tols"; did you mean tools?`,
		`:7:5: there is no tool, toolkit or agent "fetsh"; did you mean fetch?`,
		`:8:50: network_mode "host" is refused: a tool never shares the network of the engine's host or of another container`,
		`:8:56: volumes is refused: a tool's container mounts nothing of the engine's host`,
		`:9:5: rule "*" is refused, and its tools would be unavailable: the executor k8s is not available in this build`,
	}
	if p.status != exitSetting || out != "" || strings.Join(lines, "\n") != strings.Join(want, "\n") {
		t.Errorf("status %d, stdout %q, stderr\n%s", p.status, out, strings.Join(lines, "\n"))
	}
}

func TestPOL10_D18_ManifestCheckRefusesExecutorsThatAreNotThere(t *testing.T) {
	name := manifestFile(t, twoTools+`execution_policy:
  rules:
    fetch: k8s
    page: docker-sandbox
    "a*": {name: docker, options: {mem_limit: 1g}}
    "b*": {name: docker, options: {env: {KEY: "${NOT_SET}"}}}
    "*": local
`)
	_, p := run(t, nil, "manifest", "check", name)
	text := p.stderr.String()
	for _, want := range []string{
		`:6:5: rule "fetch" is refused`, "k8s is not available in this build", `:7:5: rule "page"`, "reserved", `:8:5: rule "a*"`, "SANDBOX_MCP_ALLOW_WEAKER_TOOLS",
		`:9:5: rule "b*"`, "needs NOT_SET", `:10:5: rule "*"`, "SANDBOX_MCP_ALLOW_LOCAL",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
	if p.status != exitSetting || strings.Count(text, "\n") != 5 {
		t.Errorf("status %d:\n%s", p.status, text)
	}
}

func TestD29_ManifestCheckReadsTheFileThatIsNamedAndNoSettings(t *testing.T) {
	const secret = "c2VjcmV0"
	name := manifestFile(t, twoTools+`execution_policy:
  rules:
    fetch: {name: docker, options: {env: {A: "${TOKEN}"}}}
    page: {name: docker, options: {env: {A: "${SANDBOX_DOCKER_TLS_KEY_PATH}"}}}
`)
	_, p := run(t, []string{"TOKEN=" + secret, "SANDBOX_DOCKER_TLS_KEY_PATH=/x/" + secret}, "manifest", "check", name)
	if text := p.stderr.String(); p.status != exitSetting || !strings.Contains(text, ":7:42: env:") || strings.Count(text, "\n") != 1 || strings.Contains(text, secret) {
		t.Errorf("status %d: %s", p.status, text)
	}
	// One that lies in the working directory, as manifest.yml does beside this package, is not looked for.
	if _, p := run(t, nil, "manifest", "check"); p.status != exitSetting || !strings.Contains(p.stderr.String(), "accepts 1 arg") {
		t.Errorf("without a file: status %d: %s", p.status, p.stderr)
	}
	if _, p := run(t, nil, "manifest", "check", name+".not"); p.status != exitFailed || !strings.Contains(p.stderr.String(), "no such file") {
		t.Errorf("a file that is not there: status %d: %s", p.status, p.stderr)
	}
}

func TestManifestCheckReportsTheSettingsThatItReads(t *testing.T) {
	_, p := run(t, []string{"SANDBOX_DOCKER_MAX_NETWORK=open", "SANDBOX_DOCKER_HOST=ssh://x"}, "manifest", "check", "../manifest.yml")
	if text := p.stderr.String(); p.status != exitSetting || !strings.Contains(text, "SANDBOX_DOCKER_MAX_NETWORK") || strings.Contains(text, "SANDBOX_DOCKER_HOST") {
		t.Errorf("status %d: %s", p.status, text)
	}
	_, p = run(t, []string{"SANDBOX_DOCKER_MAX_NETWORK=none"}, "manifest", "check", "../manifest.yml")
	if text := p.stderr.String(); p.status != exitSetting || !strings.Contains(text, "network_mode egress is looser than none") {
		t.Errorf("status %d: %s", p.status, text)
	}
}

func TestManifestNamesOfBuiltinToolsAreTaken(t *testing.T) {
	name := manifestFile(t, "tools: [{name: exec_output, description: x, command: [x]}]\n")
	if _, p := run(t, nil, "manifest", "check", name); p.status != exitSetting || !strings.Contains(p.stderr.String(), "exec_output is a tool of the server's own") {
		t.Errorf("status %d: %s", p.status, p.stderr)
	}
}

func TestManifestExplainSaysWhichRuleAndWhy(t *testing.T) {
	const secret = "c2VjcmV0"
	name := manifestFile(t, twoTools+`toolkits:
  - {name: Files, tool_prefix: fs, command: [serve], include: [read_*], remote_timeout_seconds: 7}
executors:
  offline: {name: docker, options: {network_mode: none}}
execution_policy:
  rules:
    "*": k8s
    Files: offline
    "fs_*": docker
    page: {name: docker, remote_timeout_seconds: 2.5, options: {env: {TOKEN: "${TOKEN}"}, labels: {a: b}}}
execution_policies:
  strict: {rules: {"p*": offline}}
`)
	environ := []string{"TOKEN=" + secret, "SANDBOX_DOCKER_RUNTIME=runsc"}
	spaces := regexp.MustCompile(` +`)
	for args, wants := range map[string][]string{
		"fs_read_x": {
			"toolkit Files", `rule "Files" in line 11`, "why the toolkit's name", `beats "fs_*" in line 12: a wildcard that matches the tool's name`, `beats "*" in line 10: the catch-all`,
			"executor offline, a named one: docker", "timeout 7 s", "network_mode none manifest", "mem_limit 512m default", "runtime runsc SANDBOX_DOCKER_RUNTIME",
		},
		"fs_write":              {"note the toolkit's include leaves this tool out"},
		"fetch":                 {`rule "*" in line 10`, "why the catch-all", "executor k8s", `unavailable rule "*" cannot be used: the executor k8s is not available in this build`},
		"page":                  {"timeout 2.5 s", "env TOKEN manifest", "labels a=b manifest", "why the tool's exact name"},
		"page --policy=strict":  {"policy strict", `rule "p*" in line 15`, "network_mode none manifest"},
		"fetch --policy=strict": {"why no rule matches: the docker executor", "executor docker"},
	} {
		out, p := run(t, environ, append([]string{"manifest", "explain", name}, strings.Fields(args)...)...)
		out = spaces.ReplaceAllString(out, " ")
		for _, want := range wants {
			if p.status != exitOK || !strings.Contains(out, want+"\n") || strings.Contains(out, secret) {
				t.Errorf("%s: status %d, no %q in\n%s%s", args, p.status, want, out, p.stderr)
			}
		}
	}
	for args, want := range map[string]string{"fetsh": "did you mean fetch?", "fs_": "no tool, toolkit or agent", "fetch --policy=strct": "did you mean strict?"} {
		out, p := run(t, environ, append([]string{"manifest", "explain", name}, strings.Fields(args)...)...)
		if p.status != exitSetting || out != "" || !strings.Contains(p.stderr.String(), want) {
			t.Errorf("%s: status %d: %s", args, p.status, p.stderr)
		}
	}
	out, p := run(t, environ, "manifest", "explain", "--json", name, "page")
	var object struct {
		Rule    string                 `json:"rule"`
		Line    int                    `json:"line"`
		Options []executor.OptionValue `json:"options"`
	}
	if err := json.Unmarshal([]byte(out), &object); err != nil || p.status != exitOK || object.Rule != "page" || object.Line != 13 || len(object.Options) != len(executor.OptionTable()) || strings.Contains(out, secret) {
		t.Errorf("%v: %s", err, out)
	}
}

func TestTX22_ManifestCheckKnowsTheLongestTimeoutOfTheServer(t *testing.T) {
	environ := []string{"SANDBOX_DOCKER_EXEC_MAX_TIMEOUT_SECONDS=60", "SANDBOX_DOCKER_EXEC_DEFAULT_TIMEOUT_SECONDS=10"}
	long := manifestFile(t, strings.Replace(twoTools, "command: [fetch]", "command: [fetch], remote_timeout_seconds: 61", 1))
	for _, args := range [][]string{{"check", long}, {"explain", long, "fetch"}} {
		_, p := run(t, environ, append([]string{"manifest"}, args...)...)
		if text := p.stderr.String(); p.status == exitOK || !strings.Contains(text, ":2:") || !strings.Contains(text, "SANDBOX_DOCKER_EXEC_MAX_TIMEOUT_SECONDS allows 60 at most") {
			t.Errorf("%s: status %d: %s", args, p.status, text)
		}
	}
	out, p := run(t, environ, "manifest", "explain", manifestFile(t, twoTools), "fetch")
	if p.status != exitOK || !regexp.MustCompile(`timeout +60 s`).MatchString(out) {
		t.Errorf("status %d: %s%s", p.status, out, p.stderr)
	}
}
