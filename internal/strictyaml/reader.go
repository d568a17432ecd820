package strictyaml

import (
	"math"
	"slices"
	"strconv"
	"time"
)

// Reader reads the values of a file, and collects what is wrong with them.
type Reader struct{ *Collector }

// Mapping checks that n is a mapping with no keys but the known ones. What is the
// sentence's subject: "a tool".
func (r Reader) Mapping(n Node, what string, known ...string) bool {
	if n.Kind != KindMap {
		r.Add(n.At, "%s is a mapping, not %s", what, n.Kind)
		return false
	}
	for _, p := range n.Pairs {
		if !slices.Contains(known, p.Key) {
			r.Add(p.At, "%s has no key %s; %s", what, Shown(p.Key), Meant(p.Key, known))
		}
	}
	return true
}

// List returns the members of a list, or a fault and none.
func (r Reader) List(n Node, what string) []Node {
	if n.Kind != KindList {
		r.Add(n.At, "%s is a list, not %s", what, n.Kind)
		return nil
	}
	return n.Items
}

// Text reads a string of one line that is not empty.
func (r Reader) Text(n Node, what string) (string, bool) {
	switch {
	case n.Kind != KindString && n.Kind != KindNull && n.Kind != KindList && n.Kind != KindMap:
		r.Add(n.At, "%s is a string; put it into quotes", what)
	case n.Kind != KindString:
		r.Add(n.At, "%s is a string, not %s", what, n.Kind)
	case n.Text == "":
		r.Add(n.At, "%s is empty", what)
	case !Printable(n.Text):
		r.Add(n.At, "%s is one line without control characters", what)
	default:
		return n.Text, true
	}
	return "", false
}

// Texts reads a list of strings of one line.
func (r Reader) Texts(n Node, what string) []string {
	var all []string
	for _, item := range r.List(n, what) {
		if text, ok := r.Text(item, "a member of "+what); ok {
			all = append(all, text)
		}
	}
	return all
}

// OneOf reads one of a few words.
func (r Reader) OneOf(n Node, what string, words ...string) (string, bool) {
	text, ok := r.Text(n, what)
	if ok && !slices.Contains(words, text) {
		r.Add(n.At, "%s is one of %s, not %s", what, Join(words), Shown(text))
		return "", false
	}
	return text, ok
}

// Whole reads a whole number of a range.
func (r Reader) Whole(n Node, what string, least, most int64) (int64, bool) {
	value, err := strconv.ParseInt(n.Text, 10, 64)
	if n.Kind != KindInt || err != nil || value < least || value > most {
		r.Add(n.At, "%s is a whole number from %d to %d", what, least, most)
		return 0, false
	}
	return value, true
}

// Seconds reads a duration of a range, in seconds with decimals.
func (r Reader) Seconds(n Node, what string, least, most float64) (time.Duration, bool) {
	value, err := strconv.ParseFloat(n.Text, 64)
	if n.Kind != KindInt && n.Kind != KindFloat || err != nil || math.IsNaN(value) || value < least || value > most {
		r.Add(n.At, "%s is a number of seconds from %g to %.0f", what, least, most)
		return 0, false
	}
	return time.Duration(value * float64(time.Second)), true
}

// Required returns the value of a key that has to be there.
func (r Reader) Required(n Node, what, key string) (Node, bool) {
	value, ok := n.Get(key)
	if !ok {
		r.Add(n.At, "%s needs the key %s", what, key)
	}
	return value, ok
}

// Number reads a number of a range.
func (r Reader) Number(n Node, what string, least, most float64) (float64, bool) {
	value, err := strconv.ParseFloat(n.Text, 64)
	if n.Kind != KindInt && n.Kind != KindFloat || err != nil || math.IsNaN(value) || value < least || value > most {
		r.Add(n.At, "%s is a number from %g to %g", what, least, most)
		return 0, false
	}
	return value, true
}
