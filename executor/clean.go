package executor

import (
	"strings"
	"unicode"
)

// clean takes out of a text that a third party wrote for a model what nobody
// would see: control characters but tab and line end, marks that turn the
// direction of text, tags, variation selectors and other invisible characters
// (T54, T58). Each becomes a replacement character, so that it is seen that
// something was there.
func clean(text string) string {
	text = strings.ToValidUTF8(text, "\uFFFD")
	return strings.Map(func(r rune) rune {
		if hidden(r) {
			return unicode.ReplacementChar
		}
		return r
	}, text)
}

func hidden(r rune) bool {
	switch {
	case r == '\n', r == '\t':
		return false
	case unicode.IsControl(r), unicode.Is(unicode.Bidi_Control, r):
		return true
	case r == 0x2028, r == 0x2029:
		return true // line ends to some readers, not to others
	case r == 0x200b, 0x2060 <= r && r <= 0x2064, r == 0xfeff, r == 0x00ad, r == 0x180e:
		return true
	case 0xe0000 <= r && r <= 0xe0fff:
		return true
	}
	return false
}
