package cli

import (
	"errors"
	"fmt"
	"strconv"

	"github.com/spf13/cobra"

	"caisson/executor"
)

func (p Process) manifestExplain() *cobra.Command {
	var (
		policy string
		asJSON bool
	)
	cmd := &cobra.Command{
		Use:   "explain FILE TOOL",
		Short: "Say where a tool would run: which rule, why, and every option in force",
		Long: "Say where a tool would run: which rule, why, which weaker rules match as well, and every option in force with where it\n" +
			"comes from. TOOL is the name that clients see, <tool_prefix>_<tool> for a toolkit's. Values of env are not shown.",
		Args: usageArgs(cobra.ExactArgs(2)),
		RunE: func(_ *cobra.Command, args []string) error {
			m, err := p.readManifest(args[0])
			if err != nil {
				return err
			}
			e, err := explain(m, policy, args[1])
			if err != nil {
				return usageError{err}
			}
			if asJSON {
				return p.printJSON(e)
			}
			_, err = fmt.Fprint(p.Stdout, e.text())
			return err
		},
	}
	cmd.Flags().StringVar(&policy, "policy", "", "a policy of execution_policies instead of the default one")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print a JSON object")
	return cmd
}

// explanation is where a tool would run, and why.
type explanation struct {
	Tool        string                 `json:"tool"`
	Toolkit     string                 `json:"toolkit,omitempty"`
	Note        string                 `json:"note,omitempty"`
	Policy      string                 `json:"policy"`
	Rule        string                 `json:"rule,omitempty"` // empty: no rule
	Line        int                    `json:"line,omitempty"`
	Why         string                 `json:"why"`
	Beaten      []beaten               `json:"beaten"`
	Executor    string                 `json:"executor"`
	Named       string                 `json:"named_executor,omitempty"`
	Unavailable string                 `json:"unavailable,omitempty"`
	Loosenings  []string               `json:"loosenings,omitempty"`
	Timeout     float64                `json:"remote_timeout_seconds"`
	Webhook     string                 `json:"webhook_callback_url,omitempty"`
	Options     []executor.OptionValue `json:"options"`
}

// beaten is a rule that matches as well.
type beaten struct {
	Rule string `json:"rule"`
	Line int    `json:"line"`
	Why  string `json:"why"`
}

func explain(m *executor.Manifest, policy, tool string) (explanation, error) {
	p, err := m.Policy(policy)
	if err != nil {
		return explanation{}, err
	}
	s, ok := m.Subject(tool)
	if !ok {
		return explanation{}, errors.New(m.Unknown(tool))
	}
	r := p.Resolve(s)
	i := r.Rule.Instance
	e := explanation{
		Tool: tool, Toolkit: s.Toolkit, Policy: policyName(p), Rule: r.Rule.Key, Why: r.Reason.String(), Beaten: []beaten{},
		Executor: i.Executor, Named: i.Name, Unavailable: r.Refusal(), Loosenings: i.Loosenings,
		Timeout: r.Timeout.Seconds(), Webhook: r.Webhook, Options: []executor.OptionValue{},
	}
	if r.Reason != executor.NoRule {
		e.Line = r.Rule.Line
	}
	if kit, own, isToolkit := m.ToolkitOf(tool); isToolkit && s.Toolkit != "" && !kit.Includes(own) {
		e.Note = "the toolkit's include leaves this tool out"
	}
	for _, b := range r.Beaten {
		e.Beaten = append(e.Beaten, beaten{b.Rule.Key, b.Rule.Line, b.Reason.String()})
	}
	if i.Executor == executor.Docker {
		e.Options = i.Options.Values()
	}
	return e, nil
}

func (e explanation) text() string {
	rows := [][]string{{"tool", e.Tool}}
	add := func(name, value string) {
		if value != "" {
			rows = append(rows, []string{name, value})
		}
	}
	add("toolkit", e.Toolkit)
	add("note", e.Note)
	add("policy", e.Policy)
	if e.Rule != "" {
		add("rule", fmt.Sprintf("%q in line %d", e.Rule, e.Line))
	}
	add("why", e.Why)
	for _, b := range e.Beaten {
		add("beats", fmt.Sprintf("%q in line %d: %s", b.Rule, b.Line, b.Why))
	}
	name := e.Executor
	if e.Named != "" {
		name = e.Named + ", a named one: " + e.Executor
	}
	add("executor", name)
	add("unavailable", e.Unavailable)
	for _, loosening := range e.Loosenings {
		add("loosens", loosening)
	}
	add("timeout", strconv.FormatFloat(e.Timeout, 'f', -1, 64)+" s")
	add("webhook", e.Webhook)
	text := columns(rows)
	if len(e.Options) > 0 {
		options := [][]string{{"OPTION", "VALUE", "FROM"}}
		for _, o := range e.Options {
			options = append(options, []string{o.Name, o.Value, o.From})
		}
		text += "\n" + columns(options)
	}
	return text
}
