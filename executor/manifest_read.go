package executor

import (
	"regexp"
	"slices"
	"strings"
)

const (
	// longestName bounds a tool's name: some clients cut longer ones.
	longestName = 35
	// longestPrefix leaves room for a toolkit's own names.
	longestPrefix = 20
	// longestDescription keeps the list of tools readable for a model.
	longestDescription = 2048
)

var (
	nameForm    = regexp.MustCompile(`^[a-z0-9_]+$`)
	toolkitForm = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_-]{0,63}$`)
	refForm     = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$`)
	pinForm     = regexp.MustCompile(`^sha256:[0-9a-f]{64}$`)
)

// modules are the names of the docker provider (D7).
func modules() []string { return []string{"docker", "tai42_sandbox_docker"} }

// Parse reads a manifest for one server. Name stands for the file in faults. The
// error is Faults with everything that is wrong; rules that this server does not
// build are no faults, and refuse their tools.
func Parse(name string, text []byte, s Server) (*Manifest, error) {
	r := &manifestReader{reader: reader{faults: &faults{file: name}, server: s}, taken: map[string]Position{}}
	m := &Manifest{File: name}
	if root, ok := readYAML(r.faults, text); ok {
		r.read(root, m)
	}
	if len(r.all) > 0 {
		r.all = append(r.all, m.Refusals()...) // said along with the rest, so that one look mends all
		return nil, r.sorted()
	}
	return m, nil
}

// manifestReader reads the parts of a manifest, and knows the names that are taken.
type manifestReader struct {
	reader
	taken map[string]Position // tools and agents
}

func (r *manifestReader) read(root node, m *Manifest) {
	if !r.mapping(root, "a manifest", manifestKeys()...) {
		return
	}
	if n, ok := root.get("sandbox_module"); ok {
		r.oneOf(n, "sandbox_module", modules()...)
	}
	// Before all that may name one.
	if n, ok := root.get("executors"); ok {
		r.executors = r.namedExecutors(n)
		m.Executors = r.executors
	}
	if n, ok := root.get("tools"); ok {
		for _, item := range r.list(n, "tools") {
			r.tool(item, m)
		}
	}
	if n, ok := root.get("toolkits"); ok {
		for _, item := range r.list(n, "toolkits") {
			r.toolkit(item, m)
		}
	}
	if n, ok := root.get("agents"); ok {
		for _, item := range r.list(n, "agents") {
			r.agent(item, m)
		}
	}
	n, _ := root.get("execution_policy")
	m.policies = append(m.policies, r.policy(n, "", m))
	if n, ok := root.get("execution_policies"); ok {
		r.namedPolicies(n, m)
	}
}

func (r *manifestReader) namedPolicies(n node, m *Manifest) {
	if n.kind != kindMap {
		r.add(n.at, "execution_policies is a mapping of names to policies, not %s", n.kind)
		return
	}
	for _, p := range n.pairs {
		if !policyNameForm.MatchString(p.key) {
			r.add(p.at, "a policy's name is letters, digits, _, . and -, at most 64, not %s", shown(p.key))
			continue
		}
		m.policies = append(m.policies, r.policy(p.value, p.key, m))
	}
}

// The keys of each mapping, as the documentation lists them.

func manifestKeys() []string {
	return []string{"sandbox_module", "tools", "toolkits", "agents", "executors", "execution_policy", "execution_policies"}
}

func toolKeys() []string {
	return append([]string{"name", "description", "input_schema", "command", "repl"}, callKeys()...)
}

func toolkitKeys() []string {
	return append([]string{"name", "tool_prefix", "command", "include", "pins"}, callKeys()...)
}

func agentKeys() []string {
	return append([]string{"name", "agent_ref", "description"}, callKeys()...)
}

// callKeys are those that every declaration may have.
func callKeys() []string {
	return []string{"executor", "remote_timeout_seconds", "webhook_callback_url"}
}

func (r *manifestReader) call(n node) Call {
	var c Call
	if value, ok := n.get("executor"); ok {
		c.Executor = r.spec(value, "executor")
	}
	if value, ok := n.get("remote_timeout_seconds"); ok {
		c.Timeout, _ = r.callTime(value)
	}
	if value, ok := n.get("webhook_callback_url"); ok {
		c.Webhook = r.webhook(value)
	}
	return c
}

func (r *manifestReader) tool(n node, m *Manifest) {
	if !r.mapping(n, "a tool", toolKeys()...) {
		return
	}
	t := Tool{Name: r.name(n, "a tool"), Description: r.description(n, "a tool"), Call: r.call(n), Position: n.at}
	command, isCommand := n.get("command")
	repl, isREPL := n.get("repl")
	schema, hasSchema := n.get("input_schema")
	switch {
	case isCommand == isREPL:
		r.add(n.at, "a tool has either a command or a repl")
	case isREPL:
		t.REPL, _ = r.oneOf(repl, "repl", "python")
		if hasSchema {
			r.add(schema.at, "a repl has an input schema of its own")
		}
	default:
		t.Command = r.command(command)
		if hasSchema {
			t.InputSchema = r.schema(schema)
		} else {
			t.InputSchema = []byte(`{"type":"object","properties":{}}`)
		}
	}
	m.Tools = append(m.Tools, t)
}

func (r *manifestReader) agent(n node, m *Manifest) {
	if !r.mapping(n, "an agent", agentKeys()...) {
		return
	}
	a := Agent{Name: r.name(n, "an agent"), Description: r.description(n, "an agent"), Call: r.call(n), Position: n.at}
	if value, ok := r.required(n, "an agent", "agent_ref"); ok {
		a.Ref, ok = r.text(value, "agent_ref")
		if ok && !refForm.MatchString(a.Ref) {
			r.add(value.at, "agent_ref is letters, digits, _, . and -, at most 64, not %s", shown(a.Ref))
		}
	}
	m.Agents = append(m.Agents, a)
}

// name reads the name of a tool or agent, and takes it.
func (r *manifestReader) name(n node, what string) string {
	value, ok := r.required(n, what, "name")
	if !ok {
		return ""
	}
	name, ok := r.text(value, "a name")
	if !ok {
		return ""
	}
	first, twice := r.taken[name]
	switch {
	case !nameForm.MatchString(name) || len(name) > longestName:
		r.add(value.at, "a name is 1 to %d of the characters a-z 0-9 _, not %s", longestName, shown(name))
	case slices.Contains(r.server.Builtin, name):
		r.add(value.at, "%s is a tool of the server's own; take another name", name)
	case twice:
		r.add(value.at, "the name %s is taken in line %d", name, first.Line)
	default:
		r.taken[name] = value.at
	}
	return name
}

// description reads what a model is told of a tool. It may have several lines.
func (r *manifestReader) description(n node, what string) string {
	value, ok := r.required(n, what, "description")
	switch {
	case !ok:
		return ""
	case value.kind != kindString || strings.TrimSpace(value.text) == "":
		r.add(value.at, "a description is a text")
	case len(value.text) > longestDescription:
		r.add(value.at, "a description has at most %d bytes, this one has %d", longestDescription, len(value.text))
	case !printable(strings.NewReplacer("\n", "", "\t", "").Replace(value.text)):
		r.add(value.at, "a description has no control characters")
	}
	return strings.TrimSpace(value.text)
}

// command reads an argv. Arguments may be empty and of several lines, the program
// may not.
func (r *manifestReader) command(n node) []string {
	var argv []string
	items := r.list(n, "command")
	for i, item := range items {
		if item.kind != kindString || strings.ContainsRune(item.text, 0) {
			r.add(item.at, "an argument is a string; put it into quotes")
			continue
		}
		if i == 0 && item.text == "" {
			r.add(item.at, "a command begins with a program")
		}
		argv = append(argv, item.text)
	}
	if n.kind == kindList && len(items) == 0 {
		r.add(n.at, "a command begins with a program")
	}
	return argv
}
