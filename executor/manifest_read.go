package executor

import (
	"regexp"
	"slices"
	"strings"

	"caisson/internal/strictyaml"
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
	r := &manifestReader{reader: reader{Reader: strictyaml.Reader{Collector: &strictyaml.Collector{File: name, What: "a manifest"}}, server: s}, taken: map[string]Position{}}
	m := &Manifest{File: name}
	if root, ok := strictyaml.Read(r.Collector, text); ok {
		r.read(root, m)
	}
	if len(r.All) > 0 {
		r.All = append(r.All, m.Refusals()...) // said along with the rest, so that one look mends all
		return nil, r.Sorted()
	}
	return m, nil
}

// manifestReader reads the parts of a manifest, and knows the names that are taken.
type manifestReader struct {
	reader
	taken map[string]Position // tools and agents
}

func (r *manifestReader) read(root node, m *Manifest) {
	if !r.Mapping(root, "a manifest", manifestKeys()...) {
		return
	}
	if n, ok := root.Get("sandbox_module"); ok {
		r.OneOf(n, "sandbox_module", modules()...)
	}
	// Before all that may name one.
	if n, ok := root.Get("executors"); ok {
		r.executors = r.namedExecutors(n)
		m.Executors = r.executors
	}
	if n, ok := root.Get("tools"); ok {
		for _, item := range r.List(n, "tools") {
			r.tool(item, m)
		}
	}
	if n, ok := root.Get("toolkits"); ok {
		for _, item := range r.List(n, "toolkits") {
			r.toolkit(item, m)
		}
	}
	if n, ok := root.Get("agents"); ok {
		for _, item := range r.List(n, "agents") {
			r.agent(item, m)
		}
	}
	n, _ := root.Get("execution_policy")
	m.policies = append(m.policies, r.policy(n, "", m))
	if n, ok := root.Get("execution_policies"); ok {
		r.namedPolicies(n, m)
	}
}

func (r *manifestReader) namedPolicies(n node, m *Manifest) {
	if n.Kind != strictyaml.KindMap {
		r.Add(n.At, "execution_policies is a mapping of names to policies, not %s", n.Kind)
		return
	}
	for _, p := range n.Pairs {
		if !policyNameForm.MatchString(p.Key) {
			r.Add(p.At, "a policy's name is letters, digits, _, . and -, at most 64, not %s", shown(p.Key))
			continue
		}
		m.policies = append(m.policies, r.policy(p.Value, p.Key, m))
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
	if value, ok := n.Get("executor"); ok {
		c.Executor = r.spec(value, "executor")
	}
	if value, ok := n.Get("remote_timeout_seconds"); ok {
		c.Timeout, _ = r.callTime(value)
	}
	if value, ok := n.Get("webhook_callback_url"); ok {
		c.Webhook = r.webhook(value)
	}
	return c
}

func (r *manifestReader) tool(n node, m *Manifest) {
	if !r.Mapping(n, "a tool", toolKeys()...) {
		return
	}
	t := Tool{Name: r.name(n, "a tool"), Description: r.description(n, "a tool"), Call: r.call(n), Position: n.At}
	command, isCommand := n.Get("command")
	repl, isREPL := n.Get("repl")
	schema, hasSchema := n.Get("input_schema")
	switch {
	case isCommand == isREPL:
		r.Add(n.At, "a tool has either a command or a repl")
	case isREPL:
		t.REPL, _ = r.OneOf(repl, "repl", "python")
		if hasSchema {
			r.Add(schema.At, "a repl has an input schema of its own")
		}
	default:
		t.Command = r.command(command)
		if hasSchema {
			t.InputSchema = r.schema(schema)
		} else {
			t.InputSchema = []byte(noArguments)
		}
	}
	m.Tools = append(m.Tools, t)
}

func (r *manifestReader) agent(n node, m *Manifest) {
	if !r.Mapping(n, "an agent", agentKeys()...) {
		return
	}
	a := Agent{Name: r.name(n, "an agent"), Description: r.description(n, "an agent"), Call: r.call(n), Position: n.At}
	if value, ok := r.Required(n, "an agent", "agent_ref"); ok {
		a.Ref, ok = r.Text(value, "agent_ref")
		if ok && !refForm.MatchString(a.Ref) {
			r.Add(value.At, "agent_ref is letters, digits, _, . and -, at most 64, not %s", shown(a.Ref))
		}
	}
	m.Agents = append(m.Agents, a)
}

// name reads the name of a tool or agent, and takes it.
func (r *manifestReader) name(n node, what string) string {
	value, ok := r.Required(n, what, "name")
	if !ok {
		return ""
	}
	name, ok := r.Text(value, "a name")
	if !ok {
		return ""
	}
	first, twice := r.taken[name]
	switch {
	case !nameForm.MatchString(name) || len(name) > longestName:
		r.Add(value.At, "a name is 1 to %d of the characters a-z 0-9 _, not %s", longestName, shown(name))
	case slices.Contains(r.server.Builtin, name):
		r.Add(value.At, "%s is a tool of the server's own; take another name", name)
	case twice:
		r.Add(value.At, "the name %s is taken in line %d", name, first.Line)
	default:
		r.taken[name] = value.At
	}
	return name
}

// description reads what a model is told of a tool. It may have several lines.
func (r *manifestReader) description(n node, what string) string {
	value, ok := r.Required(n, what, "description")
	switch {
	case !ok:
		return ""
	case value.Kind != strictyaml.KindString || strings.TrimSpace(value.Text) == "":
		r.Add(value.At, "a description is a text")
	case len(value.Text) > longestDescription:
		r.Add(value.At, "a description has at most %d bytes, this one has %d", longestDescription, len(value.Text))
	case !printable(strings.NewReplacer("\n", "", "\t", "").Replace(value.Text)):
		r.Add(value.At, "a description has no control characters")
	}
	return strings.TrimSpace(value.Text)
}

// command reads an argv. Arguments may be empty and of several lines, the program
// may not.
func (r *manifestReader) command(n node) []string {
	var argv []string
	items := r.List(n, "command")
	for i, item := range items {
		if item.Kind != strictyaml.KindString || strings.ContainsRune(item.Text, 0) {
			r.Add(item.At, "an argument is a string; put it into quotes")
			continue
		}
		if i == 0 && item.Text == "" {
			r.Add(item.At, "a command begins with a program")
		}
		argv = append(argv, item.Text)
	}
	if n.Kind == strictyaml.KindList && len(items) == 0 {
		r.Add(n.At, "a command begins with a program")
	}
	return argv
}
