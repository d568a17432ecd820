package mcp

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"caisson/executor"
	"caisson/sandbox"
)

// The bounds of what a tool of the manifest gives back, in characters; together
// they stay below the 200,000 that any result may have.
const (
	maxDeclared      = 150_000 // the result
	maxDeclaredError = 16_000
	maxMetadata      = 16_000
	maxDepth         = 64 // of nested values: readers of less give up on more
)

// declaredResult is the structured form.
type declaredResult struct {
	Status   executor.Status            `json:"status"`
	Result   json.RawMessage            `json:"result"`
	Error    string                     `json:"error,omitempty"`
	Metadata map[string]json.RawMessage `json:"metadata"`
}

// declaredReply shapes a result. All of it came out of a container: it is bounded,
// and in the text what the tool says stands between lines with a mark that it
// cannot know (T58).
func declaredReply(r executor.Result) *reply {
	notes := []string{}
	result := declaredResult{Status: r.Status}
	var note string
	if result.Result, note = boundedJSON(r.Result); note != "" {
		notes = append(notes, note)
	}
	var omitted, dropped int
	if result.Error, omitted = cutMiddle(strings.ToValidUTF8(r.Error, "\ufffd"), maxDeclaredError); omitted > 0 {
		notes = append(notes, fmt.Sprintf("%d characters of the error are left out", omitted))
	}
	notes = append(notes, leftOut(r.Metadata)...)
	if result.Metadata, dropped = boundedMetadata(r); dropped > 0 {
		notes = append(notes, fmt.Sprintf("%d entries of the metadata are left out", dropped))
	}
	extra, note := media(r.Images, r.Files)
	if note != "" {
		notes = append(notes, note)
	}
	reply := &reply{structured: result, text: declaredText(result, notes), extra: extra}
	if !r.Success && r.Status != executor.StatusPending {
		reply.failed = declaredFailure(result)
	}
	return reply
}

// declaredFailure is what a failed tool's text begins with. An error of several
// lines stands below, where nothing of it can pass for ours.
func declaredFailure(r declaredResult) *failure {
	f := &failure{code: codes[sandbox.KindToolFailed].code, text: r.Error}
	switch {
	case r.Error == "":
		f.text = "the tool failed and did not say why; its status is " + string(r.Status)
	case !isLine(r.Error):
		f.text = "the tool failed with the error below; its status is " + string(r.Status)
	}
	return f
}

// isLine says whether a text is one short line.
func isLine(text string) bool { return len(text) <= 1000 && !strings.ContainsAny(text, "\r\n") }

// boundedJSON is a value that every client can read: valid, not too deep and not
// too long. One that is not is given as a string, cut in its middle, and the note
// says so.
func boundedJSON(value json.RawMessage) (bounded json.RawMessage, note string) {
	value = bytes.ToValidUTF8(bytes.TrimSpace(value), []byte("\ufffd"))
	if len(value) == 0 || !json.Valid(value) {
		return json.RawMessage("null"), ""
	}
	isText := value[0] == '"'
	if utf8.RuneCount(value) <= maxDeclared && (isText || depth(value) <= maxDepth) {
		return value, ""
	}
	bounded, omitted := fitting(wordOf(value))
	switch {
	case omitted > 0:
		note = fmt.Sprintf("%d characters of the result are left out", omitted)
	default:
		note = "the result is nested too deep for some readers"
	}
	if !isText {
		note += "; it is given as the text of its JSON"
	}
	return bounded, note
}

// fitting is a text as a JSON string of at most maxDeclared characters, which is
// more than the text has where quotes and control characters are in it.
func fitting(text string) (bounded json.RawMessage, omitted int) {
	for limit := maxDeclared; ; limit = limit * maxDeclared / (len(bounded) + 1) {
		var cut string
		cut, omitted = cutMiddle(text, max(limit-100, 0))
		if bounded = stringJSON(cut); utf8.RuneCount(bounded) <= maxDeclared || limit <= 100 {
			return bounded, omitted
		}
	}
}

// depth is how deep values are nested in a valid JSON text.
func depth(text []byte) int {
	deepest, level, quoted := 0, 0, false
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '{' || c == '[':
			level++
			deepest = max(deepest, level)
		case c == '}' || c == ']':
			level--
		}
	}
	return deepest
}

// cutMiddle keeps the beginning and the end of a text that has more than limit
// characters, and says in between how many are left out.
func cutMiddle(text string, limit int) (cut string, omitted int) {
	all := utf8.RuneCountInString(text)
	if all <= limit {
		return text, 0
	}
	omitted = all - limit
	front, _ := runesFront([]byte(text), int64(limit/2))
	back, _ := runesBack([]byte(text), int64(limit-limit/2))
	return fmt.Sprintf("%s\n[%d characters are left out here]\n%s", text[:front], omitted, text[len(text)-int(back):]), omitted
}

// mostLeftOut is how many things that were left out are noted, and maxLeftOut how much
// of each, in characters.
const (
	mostLeftOut = 8
	maxLeftOut  = 400
)

// leftOut are notes of what was left out of a result before it came here, which a
// client that reads the text alone would not see.
func leftOut(metadata map[string]json.RawMessage) (notes []string) {
	var left []string
	if json.Unmarshal(metadata["left_out"], &left) != nil {
		return nil // a tool has its own meaning for it
	}
	for _, what := range left[:min(len(left), mostLeftOut)] {
		front, _ := runesFront([]byte(what), maxLeftOut)
		notes = append(notes, `left out where the tool ran: "`+escape(strings.NewReplacer("\n", `\n`, "\t", `\t`).Replace(what[:front]))+`"`)
	}
	return notes
}

// ours are the entries of the metadata that the server writes over a tool's own, the
// most important first.
func ours() []string {
	return []string{"executor", "mode", "rule", "container", "duration_ms", "failure", "started", "exec_id", "json_changed", "left_out"}
}

// boundedMetadata is the metadata, with what a tool says beside its result: the
// server's own entries first, then the shortest, as many as there is room for.
func boundedMetadata(r executor.Result) (kept map[string]json.RawMessage, dropped int) {
	all := maps.Clone(r.Metadata)
	if all == nil {
		all = map[string]json.RawMessage{}
	}
	if r.VoiceText != "" {
		all["voice_text"] = stringJSON(r.VoiceText)
	}
	if len(r.DisplayData) > 0 && string(r.DisplayData) != "null" {
		all["display_data"] = r.DisplayData
	}
	rank := func(name string) int {
		if i := slices.Index(ours(), name); i >= 0 {
			return i
		}
		return len(ours())
	}
	names := slices.SortedFunc(maps.Keys(all), func(a, b string) int {
		if first := rank(a) - rank(b); first != 0 {
			return first
		}
		if shorter := len(a) + len(all[a]) - len(b) - len(all[b]); shorter != 0 {
			return shorter
		}
		return strings.Compare(a, b)
	})
	room := maxMetadata
	kept = map[string]json.RawMessage{}
	for _, name := range names {
		value := bytes.ToValidUTF8(all[name], []byte("\ufffd"))
		if len(name)+len(value) > room || !utf8.ValidString(name) || !json.Valid(value) || depth(value) > maxDepth {
			dropped++
			continue
		}
		room -= len(name) + len(value)
		kept[name] = value
	}
	return kept, dropped
}

// stringJSON is a text as a JSON value.
func stringJSON(text string) json.RawMessage {
	raw, _ := json.Marshal(text) // a string can always be written
	return raw
}
