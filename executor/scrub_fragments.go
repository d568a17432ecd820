package executor

import "strings"

const (
	// leastPart is the shortest part of a value that is looked for where a cut may
	// have been, in bytes.
	leastPart = leastSecret
	// leastCut is the shortest text that a cut of ours leaves, in bytes. In shorter
	// ones an end that is like a part of a value is chance, such as a word.
	leastCut = 32
	// cutMark stands where the worker and we have cut a text.
	cutMark = "…"
	// brim is what may stand between a part and the cut: blanks, a character that was
	// cut in two, the quotes of a text that was cut before it was quoted.
	brim = " \t\r\n\uFFFD\""
)

// fragments finds what a cut has left of a value: the worker cuts before the server
// looks, so that the first or last part of one may stand at the start or end of a
// text, or beside a mark. Read-only once made.
type fragments struct {
	forms []string
	at    map[[leastPart]byte][]place // where each leastPart bytes stand in the forms
}

type place struct{ form, offset int }

func newFragments(forms []string) fragments {
	f := fragments{at: map[[leastPart]byte][]place{}}
	known := map[string]bool{}
	for _, form := range forms {
		if known[form] {
			continue
		}
		known[form] = true
		f.forms = append(f.forms, form)
		for offset := range len(form) - leastPart + 1 {
			gram := [leastPart]byte([]byte(form[offset : offset+leastPart]))
			f.at[gram] = append(f.at[gram], place{len(f.forms) - 1, offset})
		}
	}
	return f
}

// take replaces parts of values at the ends of a text and beside the marks in it.
func (f fragments) take(text string) string {
	if len(text) < leastCut || len(f.forms) == 0 {
		return text
	}
	pieces := strings.Split(text, cutMark)
	changed := false
	for i, piece := range pieces {
		pieces[i] = f.ends(piece)
		changed = changed || pieces[i] != piece
	}
	if !changed {
		return text
	}
	return strings.Join(pieces, cutMark)
}

// ends replaces the end of a value that a text begins with, and the beginning of one
// that it ends with.
func (f fragments) ends(text string) string {
	inner := strings.TrimLeft(text, brim)
	if n := f.suffix(inner); n > 0 {
		text = text[:len(text)-len(inner)] + scrubbed + inner[n:]
	}
	inner = strings.TrimRight(text, brim)
	if n := f.prefix(inner); n > 0 {
		text = inner[:len(inner)-n] + scrubbed + text[len(inner):]
	}
	return text
}

// suffix is how much of a text's beginning is the end of a value; 0: nothing.
func (f fragments) suffix(text string) (most int) {
	if len(text) < leastPart {
		return 0
	}
	for _, p := range f.at[[leastPart]byte([]byte(text[:leastPart]))] {
		if end := f.forms[p.form][p.offset:]; len(end) > most && strings.HasPrefix(text, end) {
			most = len(end)
		}
	}
	return most
}

// prefix is how much of a text's end is the beginning of a value; 0: nothing.
func (f fragments) prefix(text string) (most int) {
	if len(text) < leastPart {
		return 0
	}
	for _, p := range f.at[[leastPart]byte([]byte(text[len(text)-leastPart:]))] {
		if beginning := f.forms[p.form][:p.offset+leastPart]; len(beginning) > most && strings.HasSuffix(text, beginning) {
			most = len(beginning)
		}
	}
	return most
}
