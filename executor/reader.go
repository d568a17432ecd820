package executor

import (
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
)

// reader reads a manifest for one server, and collects what is wrong with it.
type reader struct {
	*faults
	server    Server
	executors []*Instance // named ones, read before all that may name them
}

func (r *reader) named() []string {
	var names []string
	for _, i := range r.executors {
		names = append(names, i.Name)
	}
	return names
}

// mapping checks that n is a mapping with no keys but the known ones. What is the
// sentence's subject: "a tool".
func (r *reader) mapping(n node, what string, known ...string) bool {
	if n.kind != kindMap {
		r.add(n.at, "%s is a mapping, not %s", what, n.kind)
		return false
	}
	for _, p := range n.pairs {
		if !slices.Contains(known, p.key) {
			r.add(p.at, "%s has no key %s; %s", what, shown(p.key), meant(p.key, known))
		}
	}
	return true
}

// list returns the members of a list, or a fault and none.
func (r *reader) list(n node, what string) []node {
	if n.kind != kindList {
		r.add(n.at, "%s is a list, not %s", what, n.kind)
		return nil
	}
	return n.items
}

// text reads a string of one line that is not empty.
func (r *reader) text(n node, what string) (string, bool) {
	switch {
	case n.kind != kindString && n.kind != kindNull && n.kind != kindList && n.kind != kindMap:
		r.add(n.at, "%s is a string; put it into quotes", what)
	case n.kind != kindString:
		r.add(n.at, "%s is a string, not %s", what, n.kind)
	case n.text == "":
		r.add(n.at, "%s is empty", what)
	case !printable(n.text):
		r.add(n.at, "%s is one line without control characters", what)
	default:
		return n.text, true
	}
	return "", false
}

// texts reads a list of strings of one line.
func (r *reader) texts(n node, what string) []string {
	var all []string
	for _, item := range r.list(n, what) {
		if text, ok := r.text(item, "a member of "+what); ok {
			all = append(all, text)
		}
	}
	return all
}

// oneOf reads one of a few words.
func (r *reader) oneOf(n node, what string, words ...string) (string, bool) {
	text, ok := r.text(n, what)
	if ok && !slices.Contains(words, text) {
		r.add(n.at, "%s is one of %s, not %s", what, list(words), shown(text))
		return "", false
	}
	return text, ok
}

// whole reads a whole number of a range.
func (r *reader) whole(n node, what string, least, most int64) (int64, bool) {
	value, err := strconv.ParseInt(n.text, 10, 64)
	if n.kind != kindInt || err != nil || value < least || value > most {
		r.add(n.at, "%s is a whole number from %d to %d", what, least, most)
		return 0, false
	}
	return value, true
}

// seconds reads a duration of a range, in seconds with decimals.
func (r *reader) seconds(n node, what string, least, most float64) (time.Duration, bool) {
	value, err := strconv.ParseFloat(n.text, 64)
	if n.kind != kindInt && n.kind != kindFloat || err != nil || math.IsNaN(value) || value < least || value > most {
		r.add(n.at, "%s is a number of seconds from %g to %.0f", what, least, most)
		return 0, false
	}
	return time.Duration(value * float64(time.Second)), true
}

// required returns the value of a key that has to be there.
func (r *reader) required(n node, what, key string) (node, bool) {
	value, ok := n.get(key)
	if !ok {
		r.add(n.at, "%s needs the key %s", what, key)
	}
	return value, ok
}

// noVariable refuses ${VAR} where it would be taken for its own letters.
func (r *reader) noVariable(n node, what, text string) bool {
	if strings.Contains(text, "${") {
		r.add(n.at, "%s takes no ${VAR}: variables of the server are read in env alone", what)
		return false
	}
	return true
}
