package mcp

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// escape makes text safe to show to a model or on a terminal: control
// characters other than tab and newline, marks that change the direction of
// text, and the invisible characters that can carry a hidden message are
// written as \xNN or \uNNNN. It is the one rule for all text results (ST-03,
// T58); the structured results carry the exact text.
func escape(text string) string {
	if utf8.ValidString(text) && strings.IndexFunc(text, mustEscape) < 0 {
		return text
	}
	var b strings.Builder
	b.Grow(len(text) + 16)
	for i := 0; i < len(text); {
		r, size := utf8.DecodeRuneInString(text[i:])
		switch {
		case r == utf8.RuneError && size == 1:
			fmt.Fprintf(&b, `\x%02x`, text[i])
		case !mustEscape(r):
			b.WriteRune(r)
		case r < 0x100:
			fmt.Fprintf(&b, `\x%02x`, r)
		case r < 0x10000:
			fmt.Fprintf(&b, `\u%04x`, r)
		default:
			fmt.Fprintf(&b, `\U%08x`, r)
		}
		i += size
	}
	return b.String()
}

func mustEscape(r rune) bool {
	switch {
	case r == '\n' || r == '\t':
		return false
	case r == utf8.RuneError:
		return false // real ones are harmless; broken bytes are seen by their size
	case unicode.IsControl(r), unicode.Is(unicode.Bidi_Control, r):
		return true
	case r == 0x2028 || r == 0x2029:
		return true // line ends to some readers, not to others
	case r == 0x200b || 0x2060 <= r && r <= 0x2064 || r == 0xfeff:
		return true // invisible
	case 0xe0000 <= r && r <= 0xe0fff:
		return true // tags and variation selectors that no font shows
	}
	return false
}

// visible shows a name that may hold any bytes, such as a file's: what is not
// UTF-8 becomes \xNN. Everything else stays as it is.
func visible(name string) string {
	if utf8.ValidString(name) {
		return name
	}
	var b strings.Builder
	for i := 0; i < len(name); {
		r, size := utf8.DecodeRuneInString(name[i:])
		if r == utf8.RuneError && size == 1 {
			fmt.Fprintf(&b, `\x%02x`, name[i])
		} else {
			b.WriteString(name[i : i+size])
		}
		i += size
	}
	return b.String()
}

// show quotes a name that a client sent, cut short, for messages.
func show(name string) string {
	return `"` + escape(strings.NewReplacer("\n", `\n`, "\t", `\t`).Replace(shorten(name))) + `"`
}

// shorten cuts a name that a client sent to at most 64 bytes and a mark.
func shorten(name string) string {
	const most = 64
	if len(name) > most {
		cut := most
		for !utf8.RuneStart(name[cut]) {
			cut--
		}
		name = name[:cut] + "…"
	}
	return name
}
