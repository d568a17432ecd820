package executor

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// mostListed is how many tools of one toolkit are taken.
const mostListed = 500

// listed is a tool as a toolkit's server gives it.
type listed struct {
	Name        string          `json:"name"`
	Title       string          `json:"title"`
	Description string          `json:"description"`
	InputSchema json.RawMessage `json:"inputSchema"`
	Annotations struct {
		Title       string `json:"title"`
		ReadOnly    bool   `json:"readOnlyHint"`
		Destructive *bool  `json:"destructiveHint"`
		Idempotent  bool   `json:"idempotentHint"`
		OpenWorld   *bool  `json:"openWorldHint"`
	} `json:"annotations"`

	form *form // of the schema, where the toolkit's filter lets the tool through; see formed
}

// pin is the hash of a definition, by which the operator approves it: SHA-256 in
// hex of its name, description and schema in one JSON object without spaces, keys
// sorted, as others write it too: only what has to be is escaped, and numbers stay as
// they are written.
func (l listed) pin() string {
	var schema any
	d := json.NewDecoder(bytes.NewReader(l.InputSchema))
	d.UseNumber()
	_ = d.Decode(&schema) // what is none is null, for every such definition
	var text bytes.Buffer
	e := json.NewEncoder(&text)
	e.SetEscapeHTML(false)
	_ = e.Encode(map[string]any{"name": l.Name, "description": l.Description, "inputSchema": schema}) // what was decoded can be encoded
	sum := sha256.Sum256(separatorsBare(bytes.TrimSuffix(text.Bytes(), []byte("\n"))))
	return hex.EncodeToString(sum[:])
}

// separatorsBare writes the two line separators as they are, which encoding/json alone
// escapes.
func separatorsBare(text []byte) []byte {
	var b bytes.Buffer
	for {
		i := bytes.IndexByte(text, '\\')
		if i < 0 {
			b.Write(text)
			return b.Bytes()
		}
		b.Write(text[:i])
		switch text = text[i:]; {
		case bytes.HasPrefix(text, []byte(`\u2028`)):
			b.WriteRune(0x2028)
			text = text[6:]
		case bytes.HasPrefix(text, []byte(`\u2029`)):
			b.WriteRune(0x2029)
			text = text[6:]
		default: // what stands behind a backslash goes with it
			n := min(2, len(text))
			b.Write(text[:n])
			text = text[n:]
		}
	}
}

// readListing reads the result of a listing, as far as it can be used. Notes say
// what was left out, for the log.
func readListing(text json.RawMessage) (tools []listed, notes []string, err error) {
	var items []json.RawMessage
	if err := json.Unmarshal(text, &items); err != nil {
		var wrapped struct {
			Tools []json.RawMessage `json:"tools"`
		}
		if json.Unmarshal(text, &wrapped) != nil || wrapped.Tools == nil {
			return nil, nil, fmt.Errorf("its list of tools cannot be read")
		}
		items = wrapped.Tools
	}
	if len(items) > mostListed {
		notes = append(notes, fmt.Sprintf("it lists %d tools, of which the first %d are taken", len(items), mostListed))
		items = items[:mostListed]
	}
	for _, item := range items {
		var l listed
		switch err := json.Unmarshal(item, &l); {
		case err != nil || l.Name == "" || len(l.Name) > 256:
			notes = append(notes, "a tool that it lists has no definition that can be read")
		case slices.ContainsFunc(tools, func(other listed) bool { return other.Name == l.Name }):
			notes = append(notes, "it lists "+shown(clean(l.Name))+" twice, of which the first is taken")
		default:
			tools = append(tools, l)
		}
	}
	slices.SortFunc(tools, func(a, b listed) int { return strings.Compare(a.Name, b.Name) })
	return tools, notes, nil
}

// entries are the tools of a toolkit that its filter lets through, under names
// that are not taken; taken gets theirs.
func (t Toolkit) entries(tools []listed, taken map[string]bool) []*entry {
	var all []*entry
	for _, l := range tools {
		if !t.Includes(l.Name) {
			continue
		}
		name := t.toolName(l.Name, taken)
		taken[name] = true
		s := t.subject(name)
		s.Toolkit, s.Prefix = t.Name, t.Prefix
		if l.form == nil {
			continue // formed comes before
		}
		e := &entry{
			Definition: l.definition(name), subject: s, path: ToolkitPath, method: l.Name,
			parts: map[string]any{"name": t.Name, "command": t.Command},
		}
		if pin, ok := t.Pins[l.Name]; ok && pin != l.pin() {
			e.Blocked = fmt.Sprintf("the definition of this tool is not the one that was pinned; it is sha256:%s now, which the operator may approve in the manifest", l.pin())
		}
		e.take(*l.form)
		all = append(all, e)
	}
	return all
}

// formed gives the tools of a list that the toolkit's filter lets through the forms
// of their schemas, those that have none yet. The tools after the ones whose schemas
// fill mostSchemas are served without theirs.
func (t Toolkit) formed(tools []listed) []listed {
	tools = slices.Clone(tools)
	room := mostSchemas
	for i := range tools {
		l := &tools[i]
		switch {
		case !t.Includes(l.Name):
			continue
		case l.form != nil:
		case room < len(anything):
			l.form = new(undescribed(fmt.Sprintf("Its arguments cannot be described: the schemas of this toolkit have more than %d bytes together.", mostSchemas)))
		default:
			f := acceptable(l.InputSchema)
			l.form = &f
		}
		room -= len(l.form.schema)
	}
	return tools
}

// definition is what clients are told, cleaned and cut.
func (l listed) definition(name string) Definition {
	d := Definition{
		Name: name, Title: cutAt(clean(l.Title), 120), Description: cutAt(strings.TrimSpace(clean(l.Description)), longestDescription-len("…")), InputSchema: l.InputSchema, Kind: KindToolkit,
		ReadOnly: l.Annotations.ReadOnly, Idempotent: l.Annotations.Idempotent, Destructive: true, OpenWorld: true,
	}
	if d.Title == "" {
		d.Title = cutAt(clean(l.Annotations.Title), 120)
	}
	if hint := l.Annotations.Destructive; hint != nil {
		d.Destructive = *hint
	}
	if hint := l.Annotations.OpenWorld; hint != nil {
		d.OpenWorld = *hint
	}
	if d.ReadOnly {
		d.Destructive = false
	}
	return d
}

// toolName maps a server's own name of a tool to one that clients take: the prefix
// and the name in a-z, 0-9 and _. One that is too long, or taken, ends in a hash of
// the whole.
func (t Toolkit) toolName(own string, taken map[string]bool) string {
	name := t.Prefix + "_" + strings.Map(func(r rune) rune {
		switch {
		case 'A' <= r && r <= 'Z':
			return r - 'A' + 'a'
		case 'a' <= r && r <= 'z', '0' <= r && r <= '9', r == '_':
			return r
		default:
			return '_'
		}
	}, own)
	if len(name) <= longestName && !taken[name] {
		return name
	}
	sum := sha256.Sum256([]byte(t.Name + "\x00" + own))
	const letters = 6
	return name[:min(len(name), longestName-letters-1)] + "_" + hex.EncodeToString(sum[:])[:letters]
}
