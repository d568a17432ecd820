package mcp

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"time"
)

// declaredText is a result in words: how the call ended, what is missing, and
// what the tool gave.
func declaredText(r declaredResult, notes []string) string {
	var b strings.Builder
	b.WriteString(strings.ReplaceAll(string(r.Status), "_", " ") + ranWhere(r.Metadata) + "\n")
	for _, n := range notes {
		fmt.Fprintf(&b, "note: %s\n", n)
	}
	fence := "=== " + newMark()
	if r.Error != "" && !isLine(r.Error) {
		writeFenced(&b, fence+" error, as the tool gave it", r.Error)
	} else if r.Error != "" {
		fmt.Fprintf(&b, "error: %s\n", r.Error)
	}
	if string(r.Result) == "null" {
		if r.Error == "" {
			b.WriteString("the tool gave nothing\n")
		}
	} else {
		text, left := cutMiddle(escape(readable(r.Result)), maxDeclared)
		if left > 0 {
			fmt.Fprintf(&b, "note: %d characters are left out of this text; the structured result has them\n", left)
		}
		writeFenced(&b, fence+" result, as the tool gave it", text)
	}
	b.WriteString(fence + " end\n")
	return b.String()
}

func writeFenced(b *strings.Builder, head, text string) {
	b.WriteString(head + "\n" + text)
	if !strings.HasSuffix(text, "\n") {
		b.WriteByte('\n')
	}
}

// ranWhere tells on one line what the executor says of the call.
func ranWhere(metadata map[string]json.RawMessage) string {
	var parts []string
	for _, key := range []string{"executor", "mode"} {
		if word := wordOf(metadata[key]); word != "" && isLine(word) {
			parts = append(parts, shorten(word))
		}
	}
	if rule := wordOf(metadata["rule"]); rule != "" {
		parts = append(parts, "rule "+show(rule))
	}
	var ms float64
	if json.Unmarshal(metadata["duration_ms"], &ms) == nil && ms >= 0 && ms < 1e12 {
		parts = append(parts, (time.Duration(ms) * time.Millisecond).String())
	}
	if len(parts) == 0 {
		return ""
	}
	return " (" + strings.Join(parts, ", ") + ")"
}

// readable is a JSON value as one reads it: a string as it is, an object a field a
// line with its strings as they are, and all else indented.
func readable(value json.RawMessage) string {
	var text string
	if json.Unmarshal(value, &text) == nil {
		return text
	}
	decoder := json.NewDecoder(bytes.NewReader(value))
	if open, err := decoder.Token(); err != nil || open != json.Delim('{') {
		return indented(value)
	}
	var b strings.Builder
	for decoder.More() {
		key, err := decoder.Token()
		var field json.RawMessage
		if err == nil {
			err = decoder.Decode(&field)
		}
		if err != nil {
			return indented(value)
		}
		writeField(&b, fmt.Sprint(key), field)
	}
	if b.Len() == 0 {
		return "{}"
	}
	return b.String()
}

func writeField(b *strings.Builder, key string, field json.RawMessage) {
	var text string
	switch {
	case json.Unmarshal(field, &text) != nil:
		text = indented(field)
	case strings.TrimRight(text, "\n") != text || strings.Contains(text, "\n"):
		text = "\n" + strings.TrimRight(text, "\n")
	}
	fmt.Fprintf(b, "%s: %s\n", key, text)
}

func indented(value json.RawMessage) string {
	var b bytes.Buffer
	if json.Indent(&b, value, "", " ") != nil {
		return string(value)
	}
	return b.String()
}
