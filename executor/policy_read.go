package executor

import (
	"net/url"
	"regexp"
	"slices"
	"strings"
)

var policyNameForm = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$`)

// builtinExecutors are the names that a named executor may not take.
func builtinExecutors() []string { return []string{Local, Docker, K8s, Qworker, DockerSandbox} }

// namedExecutors reads `executors:`, in the order of the file.
func (r *reader) namedExecutors(n node) []*Instance {
	if n.kind != kindMap {
		r.add(n.at, "executors is a mapping of names to executors, not %s", n.kind)
		return nil
	}
	var all []*Instance
	for _, p := range n.pairs {
		switch {
		case slices.Contains(builtinExecutors(), p.key):
			r.add(p.at, "an executor cannot be named %s, which is a kind of executor", shown(p.key))
			continue
		case !policyNameForm.MatchString(p.key):
			r.add(p.at, "an executor's name is letters, digits, _, . and -, at most 64, not %s", shown(p.key))
			continue
		}
		what := "executor " + p.key
		name, options := p.value, node{}
		if p.value.kind == kindMap {
			r.mapping(p.value, what, "name", "options")
			given, ok := r.required(p.value, what, "name")
			if !ok {
				continue
			}
			name = given
			options, _ = p.value.get("options")
		}
		text, ok := r.text(name, "name of "+what)
		if !ok {
			continue
		}
		i := r.instance(text, name.at, options)
		i.Name, i.Position = p.key, p.at
		all = append(all, i)
	}
	return all
}

// instance makes an executor of its own.
func (r *reader) instance(executor string, at Position, options node) *Instance {
	i := &Instance{Executor: executor, Position: at, Options: r.server.defaults()}
	if options.at.Line > 0 && (executor == Docker || executor == Local) {
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
	rule := &Rule{Position: n.at}
	name, options := n, node{}
	switch n.kind {
	case kindString:
	case kindMap:
		if len(n.pairs) == 0 {
			r.add(n.at, "%s names no executor", what)
			return nil
		}
		r.mapping(n, what, specKeys()...)
		given, ok := r.required(n, what, "name")
		r.overrides(n, rule)
		if !ok {
			return nil
		}
		name = given
		options, _ = n.get("options")
	default:
		r.add(n.at, "%s is an executor's name or a mapping with one, not %s", what, n.kind)
		return nil
	}
	text, ok := r.text(name, "an executor's name")
	if !ok {
		return nil
	}
	if i := slices.IndexFunc(r.executors, func(i *Instance) bool { return i.Name == text }); i >= 0 {
		if options.at.Line > 0 {
			r.add(options.at, "%s is a named executor: its options stand under executors", shown(text))
		}
		rule.Instance = r.executors[i]
		return rule
	}
	rule.Instance = r.instance(text, name.at, options)
	return rule
}

// overrides reads what a rule replaces of a tool's own.
func (r *reader) overrides(n node, rule *Rule) {
	if value, ok := n.get("remote_timeout_seconds"); ok {
		rule.Timeout, _ = r.callTime(value)
	}
	if value, ok := n.get("webhook_callback_url"); ok {
		rule.Webhook = r.webhook(value)
	}
}

// webhook reads an address. It is not repeated in a fault: it may carry a token.
func (r *reader) webhook(n node) string {
	text, ok := r.text(n, "webhook_callback_url")
	if !ok || !r.noVariable(n, "webhook_callback_url", text) {
		return ""
	}
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" || u.User != nil {
		r.add(n.at, "webhook_callback_url is an http:// or https:// address without a user")
		return ""
	}
	return text
}

// policy reads one policy. Its rules may name what the manifest declares.
func (r *reader) policy(n node, name string, m *Manifest) *Policy {
	p := &Policy{Name: name, rest: &Rule{Instance: r.instance(Docker, n.at, node{}), Position: n.at}}
	if n.at.Line == 0 {
		return p // none is declared
	}
	what := "execution_policy"
	if name != "" {
		what = "policy " + name
	}
	if !r.mapping(n, what, "rules") {
		return p
	}
	rules, ok := r.required(n, what, "rules")
	if !ok {
		return p
	}
	if rules.kind != kindMap {
		r.add(rules.at, "rules is a mapping of tools to executors, not %s", rules.kind)
		return p
	}
	for _, entry := range rules.pairs {
		r.ruleKey(entry, m)
		if rule := r.spec(entry.value, "rule "+shown(entry.key)); rule != nil {
			rule.Key, rule.Position = entry.key, entry.at
			p.rules = append(p.rules, rule)
		}
	}
	return p
}

// ruleKey refuses a key that can match nothing: a misspelt one would leave its
// tool to a rule, or to defaults, that nobody meant for it.
func (r *reader) ruleKey(entry pair, m *Manifest) {
	if isPattern(entry.key) {
		return
	}
	known := m.subjects()
	if slices.Contains(known, entry.key) {
		return
	}
	for _, t := range m.Toolkits {
		if strings.HasPrefix(entry.key, t.Prefix+"_") {
			return // what a toolkit lists is not known yet
		}
	}
	if slices.Contains(r.server.Builtin, entry.key) {
		r.add(entry.at, "%s is a tool of the server's own, which no policy moves", entry.key)
		return
	}
	r.add(entry.at, "there is no tool, toolkit or agent %s; %s", shown(entry.key), meant(entry.key, known))
}
