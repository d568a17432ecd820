package executor

import (
	"net/url"
	"regexp"
	"slices"
	"strings"

	"caisson/internal/strictyaml"
)

var policyNameForm = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$`)

// builtinExecutors are the names that a named executor may not take.
func builtinExecutors() []string { return []string{Local, Docker, K8s, Qworker, DockerSandbox} }

// namedExecutors reads `executors:`, in the order of the file.
func (r *reader) namedExecutors(n node) []*Instance {
	if n.Kind != strictyaml.KindMap {
		r.Add(n.At, "executors is a mapping of names to executors, not %s", n.Kind)
		return nil
	}
	var all []*Instance
	for _, p := range n.Pairs {
		switch {
		case slices.Contains(builtinExecutors(), p.Key):
			r.Add(p.At, "an executor cannot be named %s, which is a kind of executor", shown(p.Key))
			continue
		case !policyNameForm.MatchString(p.Key):
			r.Add(p.At, "an executor's name is letters, digits, _, . and -, at most 64, not %s", shown(p.Key))
			continue
		}
		what := "executor " + p.Key
		name, options := p.Value, node{}
		if p.Value.Kind == strictyaml.KindMap {
			r.Mapping(p.Value, what, "name", "options")
			given, ok := r.Required(p.Value, what, "name")
			if !ok {
				continue
			}
			name = given
			options, _ = p.Value.Get("options")
		}
		text, ok := r.Text(name, "name of "+what)
		if !ok {
			continue
		}
		i := r.instance(text, name.At, options)
		i.Name, i.Position = p.Key, p.At
		all = append(all, i)
	}
	return all
}

// instance makes an executor of its own.
func (r *reader) instance(executor string, at Position, options node) *Instance {
	i := &Instance{Executor: executor, Position: at, Options: r.server.defaults()}
	if options.At.Line > 0 && (executor == Docker || executor == Local) {
		i.Options = r.options(options, executor)
	}
	if executor == Docker {
		i.Loosenings = i.Options.loosenings(r.server)
	}
	i.Refusal = r.server.refusal(i, append(builtinExecutors(), r.named()...))
	return i
}

func specKeys() []string {
	return []string{"name", "options", "remote_timeout_seconds", "webhook_callback_url"}
}

// spec reads what a rule or a tool names as its executor: a name, or a mapping
// with a name, options and overrides.
func (r *reader) spec(n node, what string) *Rule {
	rule := &Rule{Position: n.At}
	name, options := n, node{}
	switch n.Kind {
	case strictyaml.KindString:
	case strictyaml.KindMap:
		if len(n.Pairs) == 0 {
			r.Add(n.At, "%s names no executor", what)
			return nil
		}
		r.Mapping(n, what, specKeys()...)
		given, ok := r.Required(n, what, "name")
		r.overrides(n, rule)
		if !ok {
			return nil
		}
		name = given
		options, _ = n.Get("options")
	default:
		r.Add(n.At, "%s is an executor's name or a mapping with one, not %s", what, n.Kind)
		return nil
	}
	text, ok := r.Text(name, "an executor's name")
	if !ok {
		return nil
	}
	if i := slices.IndexFunc(r.executors, func(i *Instance) bool { return i.Name == text }); i >= 0 {
		if options.At.Line > 0 {
			r.Add(options.At, "%s is a named executor: its options stand under executors", shown(text))
		}
		rule.Instance = r.executors[i]
		return rule
	}
	rule.Instance = r.instance(text, name.At, options)
	return rule
}

// overrides reads what a rule replaces of a tool's own.
func (r *reader) overrides(n node, rule *Rule) {
	if value, ok := n.Get("remote_timeout_seconds"); ok {
		rule.Timeout, _ = r.callTime(value)
	}
	if value, ok := n.Get("webhook_callback_url"); ok {
		rule.Webhook = r.webhook(value)
	}
}

// webhook reads an address. It is not repeated in a fault: it may carry a token.
func (r *reader) webhook(n node) string {
	text, ok := r.Text(n, "webhook_callback_url")
	if !ok || !r.noVariable(n, "webhook_callback_url", text) {
		return ""
	}
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" || u.User != nil {
		r.Add(n.At, "webhook_callback_url is an http:// or https:// address without a user")
		return ""
	}
	return text
}

// policy reads one policy. Its rules may name what the manifest declares.
func (r *reader) policy(n node, name string, m *Manifest) *Policy {
	p := &Policy{Name: name, most: r.server.MaxTimeout, rest: &Rule{Instance: r.instance(Docker, n.At, node{}), Position: n.At}}
	if n.At.Line == 0 {
		return p // none is declared
	}
	what := "execution_policy"
	if name != "" {
		what = "policy " + name
	}
	if !r.Mapping(n, what, "rules") {
		return p
	}
	rules, ok := r.Required(n, what, "rules")
	if !ok {
		return p
	}
	if rules.Kind != strictyaml.KindMap {
		r.Add(rules.At, "rules is a mapping of tools to executors, not %s", rules.Kind)
		return p
	}
	for _, entry := range rules.Pairs {
		r.ruleKey(entry, m)
		if rule := r.spec(entry.Value, "rule "+shown(entry.Key)); rule != nil {
			rule.Key, rule.Position = entry.Key, entry.At
			p.rules = append(p.rules, rule)
		}
	}
	return p
}

// ruleKey refuses a key that can match nothing: a misspelt one would leave its
// tool to a rule, or to defaults, that nobody meant for it.
func (r *reader) ruleKey(entry pair, m *Manifest) {
	if isPattern(entry.Key) {
		return
	}
	known := m.subjects()
	if slices.Contains(known, entry.Key) {
		return
	}
	for _, t := range m.Toolkits {
		if rest, found := strings.CutPrefix(entry.Key, t.Prefix+"_"); t.Prefix != "" && found && mayBeTool(rest) {
			return // what a toolkit lists is not known yet
		}
	}
	if slices.Contains(r.server.Builtin, entry.Key) {
		r.Add(entry.At, "%s is a tool of the server's own, which no policy moves", entry.Key)
		return
	}
	r.Add(entry.At, "there is no tool, toolkit or agent %s; %s", shown(entry.Key), meant(entry.Key, known))
}
