package executor_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"caisson/executor"
)

// ladder is every kind of rule that catches fs_read of toolkit Files, weakest
// first: the order of declaration must not matter between classes.
func ladder() []struct {
	key    string
	reason executor.Reason
} {
	return []struct {
		key    string
		reason executor.Reason
	}{
		{"*", executor.CatchAll},
		{"Fil*", executor.ToolkitPattern},
		{"f?_*", executor.ToolPattern},
		{"fs", executor.ToolkitPrefix},
		{"Files", executor.ToolkitName},
		{"fs_read", executor.ExactTool},
	}
}

const files = "toolkits: [{name: Files, tool_prefix: fs, command: [x]}]\n"

func rules(keys ...string) string {
	var b strings.Builder
	b.WriteString("execution_policy:\n  rules:\n")
	for _, key := range keys {
		fmt.Fprintf(&b, "    %q: docker\n", key)
	}
	return b.String()
}

func TestPOL01_POL02_POL03_POL04_POL05_POL06_TheStrongestClassWinsWhateverTheOrder(t *testing.T) {
	steps := ladder()
	for n := len(steps); n >= 0; n-- { // take the strongest away, one after the other
		var keys []string
		for _, s := range steps[:n] {
			keys = append(keys, s.key)
		}
		text := files + rules(keys...)
		if n == 0 {
			text = files
		}
		r := resolve(t, parse(t, text, server()), "fs_read")
		if n == 0 {
			if r.Reason != executor.NoRule || r.Rule.Instance.Executor != executor.Docker || r.Refusal() != "" {
				t.Errorf("without rules: %+v", r)
			}
			continue
		}
		strongest := steps[n-1]
		if r.Rule.Key != strongest.key || r.Reason != strongest.reason || len(r.Beaten) != n-1 {
			t.Errorf("%q: rule %q because of %s, %d beaten", keys, r.Rule.Key, r.Reason, len(r.Beaten))
		}
		for i, m := range r.Beaten {
			if m.Reason != steps[n-2-i].reason {
				t.Errorf("%q: place %d is %s", keys, i, m.Reason)
			}
		}
	}
}

func TestPOL03_POL04_InsideAClassTheFirstOneWins(t *testing.T) {
	for _, c := range []struct {
		keys []string
		want string
	}{
		{[]string{"fs_*", "*_read"}, "fs_*"},
		{[]string{"*_read", "fs_*"}, "*_read"},
		{[]string{"Fi*", "f?"}, "Fi*"},
		{[]string{"f?", "Fi*"}, "f?"},
		{[]string{"F*", "*_read"}, "*_read"}, // a tool's wildcard beats a toolkit's that stands before it
	} {
		if r := resolve(t, parse(t, files+rules(c.keys...), server()), "fs_read"); r.Rule.Key != c.want {
			t.Errorf("%q: %q", c.keys, r.Rule.Key)
		}
	}
}

func TestPOL02_ARuleOfAToolkitCoversItsToolsAlone(t *testing.T) {
	m := parse(t, files+tools("fsx", "other")+rules("fs", "Files"), server())
	for _, tool := range []string{"fsx", "other"} {
		if r := resolve(t, m, tool); r.Reason != executor.NoRule {
			t.Errorf("%s: %s", tool, r.Reason)
		}
	}
	for _, tool := range []string{"fs_a", "fs_b_c"} {
		if r := resolve(t, m, tool); r.Reason != executor.ToolkitName {
			t.Errorf("%s: %s", tool, r.Reason)
		}
	}
}

func TestPOL08_FormsOfASpec(t *testing.T) {
	named := "executors: {offline: {name: docker, options: {network_mode: none}}}\n"
	for spec, network := range map[string]string{
		"docker": "egress", "{name: docker}": "egress", "{name: docker, options: {}}": "egress",
		"{name: docker, options: {network_mode: internal}}": "internal",
		"offline": "none", "{name: offline, remote_timeout_seconds: 2}": "none",
	} {
		r := resolve(t, parse(t, named+rule(spec), server()), "t")
		if got := string(r.Rule.Instance.Options.Network); got != network || r.Refusal() != "" {
			t.Errorf("%s: network %s, refusal %q", spec, got, r.Refusal())
		}
	}
	for spec, want := range map[string]string{
		"{}": "names no executor", "{options: {mode: warm}}": "needs the key name", "7": "not a whole number", "[docker]": "not a list",
		"": "not nothing", "{name: [docker]}": "an executor's name is a string", "{name: docker, option: {}}": "did you mean options?",
		"{name: offline, options: {mode: warm}}": "its options stand under executors",
		"{name: docker, options: [mode]}":        "options is a mapping",
	} {
		if got := faultsOf(t, named+rule(spec)).Error(); !strings.Contains(got, want) {
			t.Errorf("%s: %s, want %s", spec, got, want)
		}
	}
}

func TestPOL09_ENV11_ARulesTimeoutAndWebhookReplaceTheTools(t *testing.T) {
	for _, c := range []struct{ own, rule, timeout, webhook string }{
		{"", "docker", "5m0s", ""},
		{"remote_timeout_seconds: 7, webhook_callback_url: 'https://own.example/'", "docker", "7s", "https://own.example/"},
		{"remote_timeout_seconds: 7, webhook_callback_url: 'https://own.example/'", "{name: docker, remote_timeout_seconds: 1, webhook_callback_url: 'https://rule.example/'}", "1s", "https://rule.example/"},
		{"", "{name: docker, remote_timeout_seconds: 0.5}", "500ms", ""},
	} {
		text := fmt.Sprintf("toolkits: [{name: K, tool_prefix: k, command: [x], %s}]\nexecution_policy: {rules: {K: %s}}\n", c.own, c.rule)
		for _, tool := range []string{"k_a", "k_b"} { // a toolkit's own apply to all that it makes
			r := resolve(t, parse(t, text, server()), tool)
			if r.Timeout.String() != c.timeout || r.Webhook != c.webhook {
				t.Errorf("%+v: %s %s", c, r.Timeout, r.Webhook)
			}
		}
	}
	for _, value := range []string{"0", "-1", "86401", "x", ".nan", "1e300"} {
		if got := faultsOf(t, rule("{name: docker, remote_timeout_seconds: "+value+"}")).Error(); !strings.Contains(got, "remote_timeout_seconds") && value != ".nan" {
			t.Errorf("%s: %s", value, got)
		}
	}
	for _, value := range []string{"ftp://x/", "x", "'https://user:hunter2@x/'", "'https://'", "'${URL}'"} {
		if got := faultsOf(t, rule("{name: docker, webhook_callback_url: "+value+"}")).Error(); strings.Contains(got, "hunter2") {
			t.Error(got)
		}
	}
}

func TestPOL10_D18_D09_POL17_ExecutorsThatAreNotThereRefuseTheirToolsByName(t *testing.T) {
	for name, want := range map[string]string{
		"k8s": "not available in this build", "qworker": "not available in this build", "docker-sandbox": "reserved",
		"local": "SANDBOX_MCP_ALLOW_LOCAL", "doker": "known are local, docker, k8s, qworker, docker-sandbox and offline; did you mean docker?",
		"Docker": `there is no executor "Docker"`,
	} {
		m := parse(t, "executors: {offline: docker}\n"+tools("t", "u")+"execution_policy: {rules: {t: "+name+", u: docker}}", server())
		r := resolve(t, m, "t")
		if !strings.Contains(r.Refusal(), want) || !strings.Contains(r.Refusal(), `rule "t"`) {
			t.Errorf("%s: %q", name, r.Refusal())
		}
		if u := resolve(t, m, "u"); u.Refusal() != "" {
			t.Errorf("another rule's tool is refused too: %s", u.Refusal())
		}
	}
	s := server()
	s.AllowLocal = true
	if r := resolve(t, parse(t, rule("local"), s), "t"); r.Refusal() != "" || r.Rule.Instance.Executor != executor.Local {
		t.Errorf("local, allowed: %q", r.Refusal())
	}
}

// A refused rule is not stepped over: the catch-all would take its tool.
func TestD09_ARefusedRuleDoesNotLetAWeakerOneIn(t *testing.T) {
	r := resolve(t, parse(t, tools("t")+`execution_policy: {rules: {t: k8s, "*": docker}}`, server()), "t")
	if r.Rule.Key != "t" || r.Refusal() == "" || len(r.Beaten) != 1 {
		t.Errorf("%+v", r)
	}
}

func TestPOL13_AToolsOwnExecutorBeatsEveryRule(t *testing.T) {
	m := parse(t, `
executors: {offline: {name: docker, options: {network_mode: none}}}
tools:
  - {name: a, description: x, command: [x], executor: offline}
  - {name: b, description: x, command: [x], executor: {name: docker, remote_timeout_seconds: 3}}
  - {name: c, description: x, command: [x], executor: k8s}
execution_policy: {rules: {a: docker, b: docker, c: docker, "*": offline}}
execution_policies: {other: {rules: {a: k8s}}}
`, server())
	for _, policy := range []string{"", "other"} {
		p, err := m.Policy(policy)
		if err != nil {
			t.Fatal(err)
		}
		a, _ := m.Subject("a")
		if r := p.Resolve(a); r.Reason != executor.Explicit || r.Rule.Instance != m.Executors[0] || len(r.Beaten) == 0 {
			t.Errorf("policy %q: %+v", policy, r)
		}
	}
	if r := resolve(t, m, "b"); r.Timeout != 3*time.Second {
		t.Errorf("b: %s", r.Timeout)
	}
	if r := resolve(t, m, "c"); !strings.Contains(r.Refusal(), "the tool's own executor cannot be used") {
		t.Errorf("c: %q", r.Refusal())
	}
}

// POL-11's half that a manifest decides: who shares an instance.
func TestNamedExecutorsAreSharedAndEqualSpecsAreNot(t *testing.T) {
	m := parse(t, "executors: {one: docker}\n"+tools("a", "b", "c", "d", "e1", "e2")+
		`execution_policy: {rules: {a: one, b: {name: one, remote_timeout_seconds: 1}, c: docker, d: docker, "e*": docker}}`, server())
	at := func(tool string) *executor.Instance { return resolve(t, m, tool).Rule.Instance }
	if at("a") != at("b") || at("a") != m.Executors[0] {
		t.Error("a named executor is not shared")
	}
	if at("c") == at("d") {
		t.Error("two rules share one instance")
	}
	if at("e1") != at("e2") {
		t.Error("one rule has two instances")
	}
}

func TestAPrincipalsPolicyIsChosenByName(t *testing.T) {
	m := parse(t, tools("t")+"execution_policies:\n  strict: {rules: {t: {name: docker, options: {network_mode: none}}}}\n", server())
	p, err := m.Policy("strict")
	if err != nil {
		t.Fatal(err)
	}
	s, _ := m.Subject("t")
	if r := p.Resolve(s); r.Rule.Instance.Options.Network != "none" {
		t.Errorf("%+v", r.Rule)
	}
	if _, err := m.Policy("strct"); err == nil || !strings.Contains(err.Error(), "did you mean strict?") {
		t.Errorf("a policy that is not there: %v", err)
	}
}

func TestPOL16_APolicyIsAMappingOfRules(t *testing.T) {
	for text, want := range map[string]string{
		"execution_policy: []": "not a list", "execution_policy: docker": "not a string", "execution_policy:": "not nothing", "execution_policy: {}": "needs the key rules",
		"execution_policy: {rules: []}": "rules is a mapping", "execution_policy: {rule: {}}": "did you mean rules?",
		"execution_policies: []": "not a list", "execution_policies: {'': {rules: {}}}": "a policy's name",
	} {
		if got := faultsOf(t, text).Error(); !strings.Contains(got, want) {
			t.Errorf("%s: %s", text, got)
		}
	}
	parse(t, "execution_policy: {rules: {}}", server())
}

func TestARuleForAToolThatIsNotThereIsAFault(t *testing.T) {
	for key, want := range map[string]string{
		"fs_": `there is no tool, toolkit or agent "fs_"`, "fs_Read": `there is no tool, toolkit or agent "fs_Read"`,
		"python_rpl": `there is no tool, toolkit or agent "python_rpl"; did you mean python_repl?`,
		"fils":       "did you mean Files?", "exec": "exec is a tool of the server's own",
	} {
		if got := faultsOf(t, files+tools("python_repl")+rules(key)).Error(); !strings.Contains(got, want) {
			t.Errorf("%s: %s", key, got)
		}
	}
	parse(t, files+rules("fs_whatever", "nothing_*"), server())
}

// No two prefixes can mean the same name: the manifest with such is refused.
func TestThePrefixSaysWhoseToolItIs(t *testing.T) {
	const short, long = "{name: A, tool_prefix: a, command: [x]}", "{name: AB, tool_prefix: ab, command: [x]}"
	for _, kits := range []string{short + ", " + long, long + ", " + short} {
		m := parse(t, "toolkits: ["+kits+"]", server())
		for name, want := range map[string]string{"ab_c": "AB c", "a_c": "A c", "a_b_c": "A b_c"} {
			kit, own, ok := m.ToolkitOf(name)
			if got := kit.Name + " " + own; !ok || got != want {
				t.Errorf("%s: %s", name, got)
			}
		}
		if _, ok := m.Subject("b_c"); ok {
			t.Error("a tool of nobody is found")
		}
		overlapping := "toolkits: [" + strings.ReplaceAll(kits, "tool_prefix: ab", "tool_prefix: a_b") + "]"
		if got := faultsOf(t, overlapping).Error(); !strings.Contains(got, "overlap: a tool b_x of the one would have the name of a tool x of the other") {
			t.Error(got)
		}
	}
}
