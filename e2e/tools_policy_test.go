package e2e_test

import (
	"strings"
	"testing"
)

// precedence has rules of all classes, the strongest not first, and a value of every
// form. Four containers serve it all.
var precedence = "tools:\n" + command("plain", "true") + command("own", "true", "executor: {name: docker, options: {labels: {from: own}}}") +
	command("ask_one", "true") + command("ask_two", "true") + command("ask_three", "true") +
	command("gone_k8s", "true") + command("gone_reserved", "true") + command("gone_local", "true") + command("gone_weak", "true") + command("gone_env", "true") +
	"toolkits:\n" + toolkit("Alpha", "al", "caisson-test-server", "decent") + toolkit("Beta", "be", "caisson-test-server", "decent") + toolkit("Gamma", "ga", "caisson-test-server", "decent") +
	`executors: {one: {name: docker}}
execution_policy:
  rules:
    "*": one
    "G*": one
    "ga_e*": {name: one}
    "*_get": {name: one, remote_timeout_seconds: 7}
    "a*_p?t": one
    "al_[pq]id": one
    Alpha: {name: one, webhook_callback_url: "https://hooks.example.invalid/x"}
    be: one
    al_echo: one
    be_fail: {name: one, remote_timeout_seconds: 60}
    "ask_t*": {name: docker, options: {mode: ephemeral}}
    "ask_two": one
    own: one
    gone_k8s: k8s
    gone_reserved: {name: docker-sandbox}
    gone_local: local
    gone_weak: {name: docker, options: {mem_limit: 4g}}
    gone_env: {name: docker, options: {env: {K: "${NOT_SET_ANYWHERE}"}}}
`

// Which rule decides, for every class and every form of a rule, is seen in the
// result of the call.
func TestPOL01_POL02_POL03_POL04_POL05_POL08_POL09_POL13_TX21_TheRuleIsSaidInTheResult(t *testing.T) {
	t.Parallel()
	v := serveTools(t, precedence)
	a := join(t, v, httpLegacy)
	for _, name := range []string{"al_echo", "be_echo", "ga_echo"} {
		listing(t, a, name)
	}
	for _, row := range []struct{ tool, rule, mode string }{
		{"al_echo", "al_echo", "warm"},             // the exact name, before its toolkit's
		{"be_fail", "be_fail", "warm"},             // likewise, of a tool that fails
		{"al_put", "Alpha", "warm"},                // the toolkit's name, before wildcards on tools
		{"al_get", "Alpha", "warm"},                //
		{"al_pid", "Alpha", "warm"},                //
		{"be_get", "be", "warm"},                   // the toolkit's prefix, before wildcards on tools
		{"ga_echo", "ga_e*", "warm"},               // a wildcard on the tool, before one on the toolkit that stands first
		{"ga_get", "*_get", "warm"},                //
		{"ga_pid", "G*", "warm"},                   // a wildcard on the toolkit
		{"plain", "*", "warm"},                     // whatever stands first, the catch-all is last
		{"ask_one", "*", "warm"},                   //
		{"ask_two", "ask_two", "warm"},             //
		{"ask_three", "ask_t*", "ephemeral"},       //
		{"own", "the tool's own executor", "warm"}, // and before all
	} {
		arguments := args{}
		if strings.HasSuffix(row.tool, "_put") {
			arguments["value"] = "v"
		}
		d := into[declared](t, a.do(row.tool, arguments))
		if d.Metadata.Rule != row.rule || d.Metadata.Mode != row.mode {
			t.Errorf("%s: rule %q, mode %q; want %q, %q (%s)", row.tool, d.Metadata.Rule, d.Metadata.Mode, row.rule, row.mode, d.Error)
		}
	}
	// One named executor, a container of its own for the tool with its own, and none
	// of the ephemeral one.
	boxes := the.engine.toolBoxes(t, v.instance)
	own := 0
	for _, b := range boxes {
		if b.Labels["from"] == "own" {
			own++
		}
	}
	if len(boxes) != 2 || own != 1 {
		t.Errorf("%d containers, %d of them of the tool with an executor of its own", len(boxes), own)
	}
}

// What cannot be built is refused with the rule and the reason, and runs nowhere else.
func TestD09_POL10_POL17_D18_ARefusedRuleIsSaidByTheServer(t *testing.T) {
	t.Parallel()
	v := serveTools(t, precedence)
	a := join(t, v, httpModern)
	for tool, reason := range map[string]string{
		"gone_k8s": "k8s is not available", "gone_reserved": "reserved", "gone_local": "SANDBOX_MCP_ALLOW_LOCAL",
		"gone_weak": "SANDBOX_MCP_ALLOW_WEAKER_TOOLS", "gone_env": "NOT_SET_ANYWHERE",
	} {
		r := a.fails("tool_unavailable", tool, args{})
		if !strings.Contains(r.text(), reason) || !strings.Contains(r.text(), tool) {
			t.Errorf("%s: %s", tool, r.text())
		}
		if !strings.Contains(v.stderr.String(), reason) {
			t.Errorf("%s: the log does not warn of it", tool)
		}
	}
}

// Without any rule a tool runs on the engine, hardened, and never on the host.
func TestPOL06_D9_WithoutARuleAToolRunsOnTheEngine(t *testing.T) {
	t.Parallel()
	v := serveTools(t, "tools:\n"+command("where", "hostname"), "SANDBOX_MCP_ALLOW_LOCAL=true")
	d := join(t, v, httpLegacy).tool("where", args{})
	boxes := the.engine.toolBoxes(t, v.instance)
	if d.Metadata.Rule != "none" || d.Metadata.Executor != "docker" || len(boxes) != 1 || !strings.HasPrefix(boxes[0].ID, d.text()) {
		t.Errorf("%+v", d)
	}
}
