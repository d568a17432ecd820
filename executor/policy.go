package executor

import (
	"fmt"
	"strings"
	"time"
)

// The names of executors (D18). DockerSandbox is reserved.
const (
	Local         = "local"
	Docker        = "docker"
	K8s           = "k8s"
	Qworker       = "qworker"
	DockerSandbox = "docker-sandbox"
)

// Instance is one executor as it is declared. It is built once and shared: rules
// that refer to one named executor hold the same *Instance, and two rules with
// equal specs hold two.
type Instance struct {
	Name       string   // of a named executor, else empty
	Executor   string   // Docker, Local, …
	Options    Options  // of Docker and Local
	Loosenings []string // in what it is weaker than the defaults; allowed where Refusal is empty
	Refusal    string   // why this server does not build it; empty: it does
	Position
}

// Rule is one entry of a policy, or what stands in the place of one: a tool's
// explicit executor, and the docker executor for what no rule matches.
type Rule struct {
	Key      string // empty for the two that are no entry
	Instance *Instance
	Timeout  time.Duration // replaces the tool's own; 0: does not
	Webhook  string        // replaces the tool's own; empty: does not
	Position
}

// Policy says which tool runs on which executor.
type Policy struct {
	Name  string // empty: the default one
	rules []*Rule
	rest  *Rule         // for what no rule matches
	most  time.Duration // bounds the default timeout; 0: nothing does
}

// Rules returns the rules in the order of their declaration.
func (p *Policy) Rules() []*Rule { return append([]*Rule(nil), p.rules...) }

// Reason is why a rule was chosen, in falling precedence.
type Reason uint8

// The reasons.
const (
	Explicit Reason = iota // the tool names its executor itself
	ExactTool
	ToolkitName
	ToolkitPrefix
	ToolPattern
	ToolkitPattern
	CatchAll
	NoRule
	reasonEnd
)

func (r Reason) String() string {
	return [reasonEnd]string{
		"the tool's own executor", "the tool's exact name", "the toolkit's name", "the toolkit's prefix",
		"a wildcard that matches the tool's name", "a wildcard that matches the toolkit's name or prefix",
		"the catch-all", "no rule matches: the docker executor",
	}[r]
}

// Match is a rule that applies to a tool.
type Match struct {
	Rule   *Rule
	Reason Reason
}

// Subject is a tool as a policy sees it.
type Subject struct {
	Name     string        // as it is listed, with its toolkit's prefix
	Toolkit  string        // empty: it belongs to none
	Prefix   string        // of the toolkit
	Executor *Rule         // explicit; nil: the policy decides
	Timeout  time.Duration // its own, or its toolkit's; 0: none
	Webhook  string
}

// Resolution is where a tool runs and why.
type Resolution struct {
	Match
	Beaten  []Match       // the rules that match as well, strongest first
	Timeout time.Duration // of a call
	Webhook string
}

// Refusal says why the tool is unavailable, naming the rule; empty: it is not.
// Such a tool runs nowhere, least of all on the server's host (D9).
func (r Resolution) Refusal() string {
	reason := r.Rule.Instance.Refusal
	switch {
	case reason == "":
		return ""
	case r.Reason == Explicit:
		return "the tool's own executor cannot be used: " + reason
	case r.Reason == NoRule:
		return "no rule matches, and the docker executor cannot be used with its defaults: " + reason
	default:
		return fmt.Sprintf("rule %s cannot be used: %s", shown(r.Rule.Key), reason)
	}
}

// Resolve finds the rule for a tool: its own executor, then the exact name, the
// toolkit's name and its prefix, wildcards on the tool's name, wildcards on the
// toolkit's, "*", and the docker executor for the rest; inside a class the one
// declared first. It always finds one.
func (p *Policy) Resolve(s Subject) Resolution {
	var matches []Match
	if s.Executor != nil {
		matches = append(matches, Match{s.Executor, Explicit})
	}
	for reason := ExactTool; reason <= CatchAll; reason++ {
		for _, rule := range p.rules {
			if rule.applies(reason, s) && !held(matches, rule) {
				matches = append(matches, Match{rule, reason})
			}
		}
	}
	if len(matches) == 0 {
		matches = []Match{{p.rest, NoRule}}
	}
	r := Resolution{Match: matches[0], Beaten: matches[1:], Timeout: s.Timeout, Webhook: s.Webhook}
	if r.Rule.Timeout > 0 {
		r.Timeout = r.Rule.Timeout
	}
	if r.Timeout == 0 {
		r.Timeout = DefaultTimeout
		if p.most > 0 {
			r.Timeout = min(r.Timeout, p.most)
		}
	}
	if r.Rule.Webhook != "" {
		r.Webhook = r.Rule.Webhook
	}
	return r
}

func held(matches []Match, rule *Rule) bool {
	for _, m := range matches {
		if m.Rule == rule {
			return true
		}
	}
	return false
}

// applies says whether the rule matches for this reason.
func (r *Rule) applies(reason Reason, s Subject) bool {
	pattern := isPattern(r.Key)
	switch reason {
	case ExactTool:
		return r.Key == s.Name
	case ToolkitName:
		return s.Toolkit != "" && r.Key == s.Toolkit
	case ToolkitPrefix:
		return s.Prefix != "" && r.Key == s.Prefix
	case ToolPattern:
		return pattern && r.Key != "*" && match(r.Key, s.Name)
	case ToolkitPattern:
		return pattern && r.Key != "*" && s.Toolkit != "" && (match(r.Key, s.Toolkit) || match(r.Key, s.Prefix))
	case CatchAll:
		return r.Key == "*"
	default:
		return false
	}
}

// instance judges an executor by name for this server: the reason why it is not
// built, or nothing.
func (s Server) refusal(i *Instance, known []string) string {
	switch i.Executor {
	case Docker:
		return s.refusalOfDocker(i)
	case Local:
		if !s.AllowLocal {
			return "the local executor runs tools on the server's own host, which needs SANDBOX_MCP_ALLOW_LOCAL"
		}
		return missing(i.Options)
	case K8s, Qworker:
		return "the executor " + i.Executor + " is not available in this build"
	case DockerSandbox:
		return "the executor docker-sandbox is reserved and not implemented"
	default:
		text := fmt.Sprintf("there is no executor %s; known are %s", shown(i.Executor), list(known))
		if likely := meant(i.Executor, known); !strings.HasPrefix(likely, "known are") {
			text += "; " + likely
		}
		return text
	}
}

func (s Server) refusalOfDocker(i *Instance) string {
	if text := missing(i.Options); text != "" {
		return text
	}
	if text := i.Options.over(s); text != "" {
		return text
	}
	if len(i.Loosenings) > 0 && !s.AllowWeaker {
		return list(i.Loosenings) + ": loosening needs SANDBOX_MCP_ALLOW_WEAKER_TOOLS"
	}
	return ""
}

func missing(o Options) string {
	if len(o.missing) == 0 {
		return ""
	}
	return "its env needs " + list(o.missing) + ", which the server's environment does not have"
}
