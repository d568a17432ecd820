package executor

import (
	"strings"

	"caisson/internal/strictyaml"
)

func (r *manifestReader) toolkit(n node, m *Manifest) {
	if !r.Mapping(n, "a toolkit", toolkitKeys()...) {
		return
	}
	t := Toolkit{Call: r.call(n), Position: n.At}
	if value, ok := r.Required(n, "a toolkit", "name"); ok {
		t.Name = r.toolkitName(value, m)
	}
	if value, ok := r.Required(n, "a toolkit", "tool_prefix"); ok {
		t.Prefix = r.prefix(value, m, t.Name)
	}
	if value, ok := r.Required(n, "a toolkit", "command"); ok {
		t.Command = r.command(value)
	}
	if value, ok := n.Get("include"); ok {
		t.Include = r.Texts(value, "include")
		if value.Kind == strictyaml.KindList && len(value.Items) == 0 {
			r.Add(value.At, "an include that lists nothing leaves no tool; leave it out to have all")
		}
	}
	if value, ok := n.Get("pins"); ok {
		t.Pins = map[string]string{}
		r.strings(value, "pins", func(p pair, text string) {
			if !pinForm.MatchString(text) {
				r.Add(p.Value.At, "a pin is sha256: and 64 hex digits in lower case")
				return
			}
			t.Pins[p.Key] = strings.TrimPrefix(text, "sha256:")
		})
	}
	m.Toolkits = append(m.Toolkits, t)
}

func (r *manifestReader) toolkitName(n node, m *Manifest) string {
	name, ok := r.Text(n, "a toolkit's name")
	if !ok {
		return ""
	}
	if !toolkitForm.MatchString(name) {
		r.Add(n.At, "a toolkit's name is letters, digits, _ and -, at most 64, and begins with a letter, not %s", shown(name))
		return ""
	}
	r.toolkitTaken(n, m, name)
	for _, other := range m.Toolkits {
		r.nameOverlaps(n, name, other.Prefix)
	}
	return name
}

// nameOverlaps refuses a toolkit's name that a tool of another toolkit could have: a rule
// for that name would be the tool's, and with it the credentials meant for the toolkit.
func (r *manifestReader) nameOverlaps(n node, name, prefix string) {
	if rest, found := strings.CutPrefix(name, prefix+"_"); prefix != "" && found && mayBeTool(rest) {
		r.Add(n.At, "a tool %s of the toolkit with the tool_prefix %s would have the name of the toolkit %s; give one of them another", rest, prefix, name)
	}
}

// mayBeTool says whether a toolkit's tool may have that name, after the prefix.
func mayBeTool(rest string) bool { return rest != "" && nameForm.MatchString(rest) }

func (r *manifestReader) prefix(n node, m *Manifest, name string) string {
	prefix, ok := r.Text(n, "tool_prefix")
	if !ok {
		return ""
	}
	if !nameForm.MatchString(prefix) || len(prefix) > longestPrefix {
		r.Add(n.At, "tool_prefix is 1 to %d of the characters a-z 0-9 _, not %s", longestPrefix, shown(prefix))
		return ""
	}
	for _, builtin := range r.server.Builtin {
		if strings.HasPrefix(builtin, prefix+"_") {
			r.Add(n.At, "tool_prefix %s would let the toolkit's tools pass for the server's own, such as %s", prefix, builtin)
			return ""
		}
	}
	if prefix != name {
		r.toolkitTaken(n, m, prefix)
	}
	r.prefixOverlaps(n, m, prefix)
	for _, other := range m.Toolkits {
		r.nameOverlaps(n, other.Name, prefix)
	}
	return prefix
}

// prefixOverlaps refuses a prefix under which a tool could have the same name as one of
// another toolkit: which of the two a rule for that name means would be the servers' to
// say.
func (r *manifestReader) prefixOverlaps(n node, m *Manifest, prefix string) {
	for _, other := range m.Toolkits {
		long, short := prefix, other.Prefix
		if len(long) < len(short) {
			long, short = short, long
		}
		if short != "" && strings.HasPrefix(long, short+"_") {
			r.Add(n.At, "tool_prefix %s and %s of the toolkit in line %d overlap: a tool %s_x of the one would have the name of a tool x of the other; let neither begin with the other and _",
				prefix, other.Prefix, other.Line, strings.TrimPrefix(long, short+"_"))
			return
		}
	}
}

// toolkitTaken refuses a word that is another toolkit's name or prefix already: a
// rule that names it would mean both.
func (r *manifestReader) toolkitTaken(n node, m *Manifest, word string) {
	for _, other := range m.Toolkits {
		if word == other.Name || word == other.Prefix {
			r.Add(n.At, "%s is the name or prefix of the toolkit in line %d already", shown(word), other.Line)
			return
		}
	}
}
