package executor_test

import (
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"caisson/executor"
)

func TestTheExampleManifestIsRight(t *testing.T) {
	text, err := os.ReadFile("testdata/manifest.yml")
	if err != nil {
		t.Fatal(err)
	}
	m := parse(t, string(text), server())
	if got := strings.Join(m.Names(), " "); got != "python_repl count_words reviewer" {
		t.Errorf("tools %s", got)
	}
	if len(m.Toolkits) != 1 || m.Toolkits[0].Prefix != "fs" || len(m.Executors) != 1 || len(m.Policies()) != 1 {
		t.Errorf("%+v", m)
	}
	if r := resolve(t, m, "fs_read_file"); r.Rule.Key != "Filesystem" || r.Rule.Instance.Options.Mode != executor.Ephemeral {
		t.Errorf("fs_read_file: %+v", r.Rule)
	}
}

func TestEveryKeyIsRead(t *testing.T) {
	m := parse(t, `
sandbox_module: tai42_sandbox_docker
tools:
  - name: a_1
    description: |
      Two
      lines.
    input_schema: {type: object, properties: {z: {type: string, default: "1"}, a: {type: integer, maximum: 3}}, required: [z]}
    command: [sh, -c, "echo ${HOME}", ""]
    executor: offline
    remote_timeout_seconds: 1.5
    webhook_callback_url: https://hooks.example/x
  - {name: r, description: R, repl: python}
toolkits:
  - name: Kit
    tool_prefix: kit
    command: [serve]
    include: [read_*]
    pins: {read_file: "sha256:`+strings.Repeat("ab", 32)+`"}
    remote_timeout_seconds: 7
agents:
  - {name: helper, agent_ref: org.helper, description: Helps.}
executors:
  offline: {name: docker, options: {network_mode: none}}
  plain: docker
execution_policies:
  strict: {rules: {"*": offline}}
`, server())
	a := m.Tools[0]
	if a.Description != "Two\nlines." || !slices.Equal(a.Command, []string{"sh", "-c", "echo ${HOME}", ""}) || a.Timeout != 1500*time.Millisecond || a.Webhook != "https://hooks.example/x" {
		t.Errorf("%+v", a)
	}
	if want := `{"type":"object","properties":{"z":{"type":"string","default":"1"},"a":{"type":"integer","maximum":3}},"required":["z"]}`; string(a.InputSchema) != want {
		t.Errorf("schema %s", a.InputSchema)
	}
	if a.Executor == nil || a.Executor.Instance != m.Executors[0] {
		t.Error("the tool's executor is not the named one")
	}
	kit := m.Toolkits[0]
	if !kit.Includes("read_file") || kit.Includes("write_file") || kit.Pins["read_file"] != strings.Repeat("ab", 32) {
		t.Errorf("%+v", kit)
	}
	if m.Agents[0].Ref != "org.helper" || m.Tools[1].REPL != "python" {
		t.Errorf("%+v %+v", m.Agents, m.Tools[1])
	}
	if !json.Valid(a.InputSchema) {
		t.Error("the schema is no JSON")
	}
}

// Each case is a manifest and what its only fault says, with line and column.
func TestAWrongManifestSaysWhereAndWhatWasMeant(t *testing.T) {
	for text, want := range map[string]string{
		"tols: []":               `m.yml:1:1: a manifest has no key "tols"; did you mean tools?`,
		"sandbox_module: podman": `m.yml:1:17: sandbox_module is one of docker and tai42_sandbox_docker, not "podman"`,
		"tools: {}":              "m.yml:1:8: tools is a list, not a mapping",
		"tools:\n- name: a\n  desciption: x\n  description: x\n  command: [x]": `m.yml:3:3: a tool has no key "desciption"; did you mean description?`,
		tools("Upper"):                 `m.yml:2:12: a name is 1 to 35 of the characters a-z 0-9 _, not "Upper"`,
		tools(strings.Repeat("a", 36)): "a name is 1 to 35",
		tools("exec"):                  "m.yml:2:12: exec is a tool of the server's own",
		tools("a", "b", "a"):           "m.yml:4:12: the name a is taken in line 2",
		tools("a") + "agents: [{name: a, agent_ref: a, description: x}]": "m.yml:3:17: the name a is taken in line 2",
		"tools: []\ntools: []": `m.yml:2:1: "tools" is there already, in line 1`,
		"tools: [{name: a, name: b, description: x, command: [x]}]":                                                  `m.yml:1:19: "name" is there already`,
		"tools: [{name: a, description: x}]":                                                                         "a tool has either a command or a repl",
		"tools: [{name: a, description: x, command: [x], repl: python}]":                                             "either a command or a repl",
		"tools: [{name: a, description: x, repl: ruby}]":                                                             `repl is one of python, not "ruby"`,
		"tools: [{name: a, description: x, command: []}]":                                                            "a command begins with a program",
		"tools: [{name: a, description: x, command: [x, 8080]}]":                                                     "m.yml:1:48: an argument is a string; put it into quotes",
		"tools: [{name: a, command: [x]}]":                                                                           "a tool needs the key description",
		"tools: [{name: 1, description: x, command: [x]}]":                                                           "a name is a string; put it into quotes",
		"tools: [{name: a, description: x, command: [x], input_schema: {type: string}}]":                             "input_schema has type: object",
		"tools: [{name: a, description: x, command: [x], input_schema: {type: object, required: text}}]":             "input_schema is no JSON schema",
		"tools: [{name: a, description: x, command: [x], input_schema: {type: object, $ref: 'file:///etc/passwd'}}]": "lies outside the schema",
		"toolkits: [{name: K, tool_prefix: session, command: [x]}]":                                                  "such as session_list",
		"toolkits: [{name: K, tool_prefix: k, command: [x]}, {name: k, tool_prefix: l, command: [x]}]":               `"k" is the name or prefix of the toolkit in line 1 already`,
		"toolkits: [{name: K, tool_prefix: gh, command: [x]}, {name: L, tool_prefix: gh_actions, command: [x]}]":     `tool_prefix gh_actions and gh of the toolkit in line 1 overlap: a tool actions_x of the one would have the name of a tool x of the other; let neither begin`,
		"toolkits: [{name: K, tool_prefix: fs, command: [x]}, {name: fs_read, tool_prefix: zz, command: [x]}]":       "a tool read of the toolkit with the tool_prefix fs would have the name of the toolkit fs_read",
		"toolkits: [{name: fs_read, tool_prefix: zz, command: [x]}, {name: K, tool_prefix: fs, command: [x]}]":       "a tool read of the toolkit with the tool_prefix fs would have the name of the toolkit fs_read",
		"toolkits: [{name: K, tool_prefix: gh_actions, command: [x]}, {name: L, tool_prefix: gh, command: [x]}]":     "tool_prefix gh and gh_actions of the toolkit in line 1 overlap",
		"toolkits: [{name: K, tool_prefix: k, command: [x], include: []}]":                                           "leaves no tool",
		"toolkits: [{name: K, tool_prefix: k, command: [x], pins: {a: 'sha256:1'}}]":                                 "a pin is sha256:",
		"toolkits: [{name: K, command: [x]}]":                                                                        "a toolkit needs the key tool_prefix",
		"agents: [{name: a, description: x}]":                                                                        "an agent needs the key agent_ref",
		"executors: {docker: docker}":                                                                                `an executor cannot be named "docker"`,
		"<<: {a: b}":                                                                                                 "m.yml:1:1: merge key is not used in a manifest",
		"? a\n: b":                                                                                                   "m.yml:1:1: key is not used in a manifest",
		"a: &x 1\nb: *x":                                                                                             "is not used in a manifest",
		"tools: !!seq []":                                                                                            "tag is not used in a manifest",
		"{}\n---\n{}":                                                                                                "one YAML document, this has 2",
		"":                                                                                                           "one YAML document, this has 0",
		"[]":                                                                                                         "a manifest is a mapping, not a list",
		"tools: [":                                                                                                   "not YAML",
		"tools:\n\t- a":                                                                                              "m.yml:2:1: not YAML",
		"1: x":                                                                                                       `a key is a string; put "1" into quotes`,
	} {
		faults := faultsOf(t, text)
		if got := faults.Error(); !strings.Contains(got, want) {
			t.Errorf("%s\ngot  %s\nwant %s", text, got, want)
		}
	}
}

func TestAllFaultsAreThereAtOnceInTheOrderOfTheFile(t *testing.T) {
	faults := faultsOf(t, `
executors: {x: {nme: docker}}
tools:
  - {name: A, description: x, command: [x]}
  - {name: b, description: 1, command: [x], repll: python}
execution_policy:
  rules:
    b: {name: docker, options: {mode: cold, mem_limt: 1g}}
    c: docker
`)
	var lines []int
	for _, f := range faults {
		lines = append(lines, f.Line)
	}
	if !slices.Equal(lines, []int{2, 2, 4, 5, 5, 8, 8, 9}) {
		t.Errorf("lines %v of\n%v", lines, faults)
	}
}

func TestNumbersAreDecimal(t *testing.T) {
	for _, value := range []string{"010", "0x10", "1_000", "0o17", "0b1"} {
		if got := faultsOf(t, rule("{name: docker, options: {user: "+value+"}}")).Error(); !strings.Contains(got, "decimal") {
			t.Errorf("%s: %s", value, got)
		}
	}
	r := resolve(t, parse(t, rule("{name: docker, options: {user: 1000, pids_limit: 64}}"), server()), "t")
	if o := r.Rule.Instance.Options; o.User != "1000" || o.Pids != 64 {
		t.Errorf("%+v", o)
	}
	schema := "{type: object, properties: {n: {type: number, minimum: -5, maximum: 1.5, multipleOf: 0.001}}}"
	m := parse(t, "tools: [{name: a, description: x, command: [x], input_schema: "+schema+"}]", server())
	if want := `{"type":"object","properties":{"n":{"type":"number","minimum":-5,"maximum":1.5,"multipleOf":0.001}}}`; string(m.Tools[0].InputSchema) != want {
		t.Errorf("%s", m.Tools[0].InputSchema)
	}
}

func TestLineEndsOfOtherSystemsAreRead(t *testing.T) {
	m := parse(t, "\uFEFF"+strings.ReplaceAll(tools("a")+rules("a"), "\n", "\r\n"), server())
	if r := resolve(t, m, "a"); r.Reason != executor.ExactTool || r.Rule.Line != 5 {
		t.Errorf("%+v", r)
	}
}

func TestAManifestIsBounded(t *testing.T) {
	for text, want := range map[string]string{
		strings.Repeat("#", 256<<10+1):                                "at most 262144 bytes",
		"tools: " + strings.Repeat("[", 65) + strings.Repeat("]", 65): "m.yml:1:72: not YAML: nests deeper than 64 levels",
		"tools:\n" + strings.Repeat("- ", 65) + "a":                   "m.yml:2:129: not YAML: nests deeper than 64 levels",
		"tools: \xff": "UTF-8",
	} {
		if got := faultsOf(t, text).Error(); !strings.Contains(got, want) {
			t.Errorf("%q: %s", want, got)
		}
	}
	var deep strings.Builder
	for i := range 70 {
		deep.WriteString(strings.Repeat(" ", i) + "a:\n")
	}
	if got := faultsOf(t, deep.String()).Error(); !strings.Contains(got, "nests deeper than 64 levels") {
		t.Error(got)
	}
}

func TestFaultsPastManyAreCounted(t *testing.T) {
	var text strings.Builder
	for i := range 300 {
		text.WriteString("k" + strings.Repeat("x", i%7) + "_" + strings.Repeat("y", i) + ": 1\n")
	}
	faults := faultsOf(t, text.String())
	if len(faults) != 201 || faults[200].Text != "100 more" || faults[199].Line != 200 {
		t.Errorf("%d faults, the last is %v", len(faults), faults[len(faults)-1])
	}
}

// Whatever the text, reading it ends with a manifest or with faults.
func FuzzManifest(f *testing.F) {
	example, err := os.ReadFile("testdata/manifest.yml")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(string(example))
	f.Add(rule("{name: docker, options: {env: {A: '${API_KEY}'}}}"))
	f.Add("a: &x [*x]\n<<: *x")
	f.Add("? [a]\n: b\n")
	f.Fuzz(func(t *testing.T, text string) {
		m, err := executor.Parse("m.yml", []byte(text), server())
		if (m == nil) == (err == nil) {
			t.Errorf("manifest %v, error %v", m != nil, err)
		}
		if err != nil && strings.Contains(err.Error(), canary) {
			t.Errorf("a fault repeats the environment: %v", err)
		}
	})
}
