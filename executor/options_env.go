package executor

import (
	"errors"
	"regexp"
	"strings"

	"caisson/sandbox"
)

// ownStem begins the names of the server's own settings, which a manifest never
// reads: among them are the paths of the engine's client identity (D29).
const ownStem = "SANDBOX_"

var variableForm = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

func readEnv(r *reader, o *Options, n node) {
	o.Env = map[string]sandbox.Secret{}
	r.strings(n, "env", func(p pair, text string) {
		value, fault := r.expand(text, o)
		if fault == "" {
			if err := sandbox.CheckEnv("env", map[string]sandbox.Secret{p.Key: sandbox.NewSecret(value)}); err != nil {
				fault = textOf(err)
			}
		}
		if fault != "" {
			r.Add(p.At, "env: %s", fault)
			return
		}
		o.Env[p.Key] = sandbox.NewSecret(value)
	})
	if err := sandbox.CheckEnv("env", o.Env); err != nil {
		r.Add(n.At, "env: %s", textOf(err))
	}
}

// expand puts the server's variables in the place of ${VAR}; $${ stands for ${.
// No value is ever part of a fault.
func (r *reader) expand(text string, o *Options) (value, fault string) {
	var b strings.Builder
	for {
		before, rest, found := strings.Cut(text, "${")
		if !found {
			b.WriteString(text)
			return b.String(), ""
		}
		if escaped, ok := strings.CutSuffix(before, "$"); ok {
			b.WriteString(escaped + "${")
			text = rest
			continue
		}
		b.WriteString(before)
		name, after, closed := strings.Cut(rest, "}")
		switch {
		case !closed:
			return "", "a ${ is not closed; $${ stands for the characters themselves"
		case !variableForm.MatchString(name):
			return "", "between ${ and } stands the name of a variable and nothing else; $${ stands for the characters themselves"
		case strings.HasPrefix(strings.ToUpper(name), ownStem):
			return "", "${" + name + "} is refused: a manifest never reads the server's own settings"
		}
		if r.server.Environment != nil {
			if set, ok := r.server.Environment(name); ok {
				b.WriteString(set)
				text = after
				continue
			}
		}
		o.missing = append(o.missing, name) // the rule is kept, and refused by this name
		text = after
	}
}

// textOf is the sentence of an error of ours.
func textOf(err error) string {
	var e *sandbox.Error
	if errors.As(err, &e) {
		return e.Text
	}
	return err.Error()
}
