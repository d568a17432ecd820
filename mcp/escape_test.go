package mcp

import (
	"fmt"
	"testing"
	"unicode"
)

func TestEscape(t *testing.T) {
	for _, test := range []struct{ in, want string }{
		{"plain\n\ttext é 語 😀", "plain\n\ttext é 語 😀"},
		{"\x00\x07\x08\x1b[0m\r\n\x7f", `\x00\x07\x08\x1b[0m\x0d` + "\n" + `\x7f`},
		{"\u0085\u009b31m", `\x85\x9b31m`},
		{"a\u202eb\u2069c\u200e\u061c", `a\u202eb\u2069c\u200e\u061c`},
		{"x\U000e0041\U000e01ef\ufeff\u200b\u2060\u2028", `x\U000e0041\U000e01ef\ufeff\u200b\u2060\u2028`},
		{"broken \xff\xe8\xaa \ufffd", `broken \xff\xe8\xaa ` + "\ufffd"},
		{"👩\u200d💻 joined", "👩\u200d💻 joined"},
	} {
		if got := escape(test.in); got != test.want {
			t.Errorf("%q gives %q, want %q", test.in, got, test.want)
		}
	}
	for r := rune(0); r <= unicode.MaxRune; r++ {
		if bad := unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r) || 0xe0000 <= r && r <= 0xe007f; bad && r != '\n' && r != '\t' && escape(string(r)) == string(r) {
			t.Errorf("%U stays", r)
		}
	}
}

func TestVisibleShowsNamesOfAnyBytes(t *testing.T) {
	for in, want := range map[string]string{"é": "é", "a\xffb\xe8": `a\xffb\xe8`, "\ufffd": "\ufffd", "a\nb": "a\nb"} {
		if got := visible(in); got != want {
			t.Errorf("%q gives %q", in, got)
		}
	}
}

func TestShowIsShortAndQuoted(t *testing.T) {
	if got := show("a\x1b\n" + fmt.Sprintf("%0100d語", 0)); len(got) > 90 || got[:10] != `"a\x1b\n00` {
		t.Errorf("%s", got)
	}
}
