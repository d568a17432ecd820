package executor

import (
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"net/url"
	"strings"
	"unicode/utf16"
)

// spellings are the forms in which a value is looked for.
func spellings(value string) []string {
	if len(value) < leastSecret {
		return nil
	}
	forms := append([]string{value}, inJSON(value)...)
	forms = append(forms, strings.NewReplacer(`\`, `\\`, "'", `\'`, "\n", `\n`).Replace(value)) // Python's repr
	if len(value) < leastEncoded {
		return forms
	}
	forms = append(forms, inAddress(value)...)
	forms = append(forms, hex.EncodeToString([]byte(value)), strings.ToUpper(hex.EncodeToString([]byte(value))))
	return append(forms, inBase64(value)...)
}

// inJSON gives a value as JSON inside a text has it. Languages differ in what they
// escape beyond what has to be: the signs of HTML (Go), the slash (PHP), all that is
// not ASCII (Python, PHP), in small or capital digits.
func inJSON(value string) []string {
	var forms []string
	for _, html := range []bool{false, true} {
		for _, slash := range []bool{false, true} {
			for _, ascii := range []bool{false, true} {
				for _, digits := range []string{`\u%04x`, `\u%04X`} {
					forms = append(forms, escaped(value, html, slash, ascii, digits))
				}
			}
		}
	}
	return forms
}

func escaped(value string, html, slash, ascii bool, digits string) string {
	short := map[rune]string{'"': `\"`, '\\': `\\`, '\n': `\n`, '\r': `\r`, '\t': `\t`, '\b': `\b`, '\f': `\f`}
	var b strings.Builder
	for _, r := range value {
		word, known := short[r]
		switch {
		case known:
			b.WriteString(word)
		case r == '/' && slash:
			b.WriteString(`\/`)
		case r < 0x20, html && (strings.ContainsRune("<>&", r) || r == 0x2028 || r == 0x2029), ascii && 0x7f <= r && r < 0x10000:
			fmt.Fprintf(&b, digits, r)
		case ascii && r >= 0x10000:
			high, low := utf16.EncodeRune(r)
			fmt.Fprintf(&b, digits+digits, high, low)
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}

// inAddress gives a value as an address has it. Libraries differ in what they leave
// as it is, in what a space becomes, and in the digits.
func inAddress(value string) []string {
	forms := []string{url.QueryEscape(value), url.PathEscape(value)}
	for _, kept := range []string{
		"",                     // quote(safe="")
		"/",                    // Python's quote
		"!*'()",                // encodeURIComponent
		";,/?:@&=+$#!*'()",     // encodeURI
		"/ ",                   // quote_plus(safe="/"): the space is made a plus below
		" ",                    // quote_plus
		"!$&'()*+,;=:@", "|^ ", // what else paths and forms keep
	} {
		for _, digits := range []string{"%%%02X", "%%%02x"} {
			forms = append(forms, percent(value, kept, digits))
		}
	}
	return forms
}

func percent(value, kept, digits string) string {
	var b strings.Builder
	for i := range len(value) {
		switch c := value[i]; {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', strings.IndexByte("-_.~", c) >= 0:
			b.WriteByte(c)
		case c == ' ' && strings.IndexByte(kept, c) >= 0:
			b.WriteByte('+')
		case strings.IndexByte(kept, c) >= 0:
			b.WriteByte(c)
		default:
			fmt.Fprintf(&b, digits, c)
		}
	}
	return b.String()
}

// inBase64 gives what is sure of a value's letters, wherever it begins in what is
// encoded: three offsets, two alphabets.
func inBase64(value string) []string {
	var forms []string
	for skip := range 3 {
		// The letters that hold bits of what stands before and behind are left out.
		first := []int{0, 2, 3}[skip]
		whole := (skip + len(value)) / 3 * 4
		padded := append(make([]byte, skip), value...)
		for _, alphabet := range []*base64.Encoding{base64.RawStdEncoding, base64.RawURLEncoding} {
			if text := alphabet.EncodeToString(padded); whole-first >= leastEncoded {
				forms = append(forms, text[first:whole])
			}
		}
	}
	return forms
}
