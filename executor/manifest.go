package executor

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"caisson/internal/strictyaml"
	"caisson/sandbox"
)

// Manifest is what a manifest declares, checked.
type Manifest struct {
	File      string
	Tools     []Tool
	Toolkits  []Toolkit
	Agents    []Agent
	Executors []*Instance // named ones
	policies  []*Policy   // the default one first
}

// Call is what a declaration says of its calls.
type Call struct {
	Executor *Rule         // explicit; nil: the policy decides
	Timeout  time.Duration // 0: not said
	Webhook  string
}

// Tool is a tool of the operator's: a command, or a REPL.
type Tool struct {
	Name        string
	Description string
	InputSchema json.RawMessage // a JSON object, keys in the order of the file; nil for a REPL
	Command     []string        // nil for a REPL
	REPL        string          // python, or empty
	Call
	Position
}

// Toolkit is a third-party MCP server, whose tools become <Prefix>_<tool>.
type Toolkit struct {
	Name    string
	Prefix  string
	Command []string
	Include []string          // patterns on the server's own names; nil: all
	Pins    map[string]string // SHA-256 of definitions in hex, by the server's own names
	Call
	Position
}

// Includes says whether the filter lets a tool through, by the server's own name.
func (t Toolkit) Includes(name string) bool {
	return t.Include == nil || slices.ContainsFunc(t.Include, func(pattern string) bool { return match(pattern, name) })
}

// Agent is an agent as a tool.
type Agent struct {
	Name        string
	Ref         string // its registered name in the tool image
	Description string
	Call
	Position
}

// Policies returns the default policy and then the named ones, as declared.
func (m *Manifest) Policies() []*Policy { return append([]*Policy(nil), m.policies...) }

// Policy returns the policy of that name; "" is the default one. A name that
// nobody declared is KindRejected: it never means the default (D9).
func (m *Manifest) Policy(name string) (*Policy, error) {
	for _, p := range m.policies {
		if p.Name == name {
			return p, nil
		}
	}
	var known []string
	for _, p := range m.policies[1:] {
		known = append(known, p.Name)
	}
	return nil, sandbox.Rejected("policy", "the manifest has no policy %s; %s", shown(name), meant(name, known))
}

// Subject finds a tool, an agent, or a tool that a toolkit may list, by the name
// that clients see. What a toolkit really lists is not known here.
func (m *Manifest) Subject(name string) (Subject, bool) {
	for _, t := range m.Tools {
		if t.Name == name {
			return t.subject(name), true
		}
	}
	for _, a := range m.Agents {
		if a.Name == name {
			return a.subject(name), true
		}
	}
	if t, _, ok := m.ToolkitOf(name); ok {
		s := t.subject(name)
		s.Toolkit, s.Prefix = t.Name, t.Prefix
		return s, true
	}
	return Subject{}, false
}

// ToolkitOf finds the toolkit whose prefix a name begins with, which one alone can, and
// what the name is without it.
func (m *Manifest) ToolkitOf(name string) (kit Toolkit, own string, ok bool) {
	for _, t := range m.Toolkits {
		if rest, begins := strings.CutPrefix(name, t.Prefix+"_"); begins && rest != "" {
			return t, rest, true
		}
	}
	return Toolkit{}, "", false
}

func (c Call) subject(name string) Subject {
	return Subject{Name: name, Executor: c.Executor, Timeout: c.Timeout, Webhook: c.Webhook}
}

// Unknown says that nobody declares a tool of that name, and which was likely meant.
func (m *Manifest) Unknown(name string) string {
	return fmt.Sprintf("the manifest has no tool, toolkit or agent for %s; %s", shown(name), meant(name, m.subjects()))
}

// Names returns the names of the tools and agents, in the order of the file.
func (m *Manifest) Names() []string {
	var names []string
	for _, t := range m.Tools {
		names = append(names, t.Name)
	}
	for _, a := range m.Agents {
		names = append(names, a.Name)
	}
	return names
}

// subjects are the names that a rule may name exactly.
func (m *Manifest) subjects() []string {
	names := m.Names()
	for _, t := range m.Toolkits {
		names = append(names, t.Name, t.Prefix)
	}
	slices.Sort(names)
	return slices.DeleteFunc(slices.Compact(names), func(name string) bool { return name == "" }) // a name that was refused
}

// Use is one executor as something declares it.
type Use struct {
	What     string // `rule "shell_*"`, `executor offline`, …
	Instance *Instance
	Position
}

// Uses returns every executor that the manifest declares, once each, in the order
// of the file's sections. That of a policy for what no rule matches is among them
// where it is used, without a position of its own.
func (m *Manifest) Uses() []Use {
	var all []Use
	add := func(what string, i *Instance, at Position) {
		if !slices.ContainsFunc(all, func(u Use) bool { return u.Instance == i }) {
			all = append(all, Use{what, i, at})
		}
	}
	for _, i := range m.Executors {
		add("executor "+i.Name, i, i.Position)
	}
	explicit := func(what string, c Call) {
		if c.Executor != nil {
			add(what, c.Executor.Instance, c.Executor.Position)
		}
	}
	for _, t := range m.Tools {
		explicit("the executor of tool "+t.Name, t.Call)
	}
	for _, t := range m.Toolkits {
		explicit("the executor of toolkit "+t.Name, t.Call)
	}
	for _, a := range m.Agents {
		explicit("the executor of agent "+a.Name, a.Call)
	}
	for _, p := range m.policies {
		of := ""
		if p.Name != "" {
			of = " of policy " + p.Name
		}
		for _, rule := range p.rules {
			add("rule "+shown(rule.Key)+of, rule.Instance, rule.Position)
		}
		if m.leavesToDefault(p) {
			add("the docker executor for what no rule"+of+" matches", p.rest.Instance, Position{})
		}
	}
	return all
}

// leavesToDefault says whether there is a tool, or may be one of a toolkit, that no
// rule of the policy matches.
func (m *Manifest) leavesToDefault(p *Policy) bool {
	names := m.Names()
	for _, t := range m.Toolkits {
		names = append(names, t.Prefix+"_"+strings.Repeat("\x00", longestName)) // what only a rule for all of them matches
	}
	return slices.ContainsFunc(names, func(name string) bool {
		s, _ := m.Subject(name)
		return p.Resolve(s).Reason == NoRule
	})
}

// Refusals says of every executor that this server does not build why not, in the
// form of faults. They are none to a server: it starts, and the tools are unavailable.
func (m *Manifest) Refusals() Faults {
	f := strictyaml.Collector{File: m.File}
	for _, u := range m.Uses() {
		if reason := u.Instance.Refusal; reason != "" {
			f.Add(u.Position, "%s is refused, and its tools would be unavailable: %s", u.What, reason)
		}
	}
	return f.Sorted()
}
