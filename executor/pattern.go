package executor

import "strings"

// isPattern says whether a rule's key is a wildcard.
func isPattern(key string) bool { return strings.ContainsAny(key, "*?[") }

// match says whether the whole of name matches the pattern as fnmatch does,
// upper and lower case apart: * is any text, slashes and dots included, ? one
// character, [a-z] one of a set and [!a-z] one that is not in it. There are no
// escapes; [*] is a star. A [ that nothing closes is an ordinary character.
// path.Match and filepath.Match differ in each of these.
func match(pattern, name string) bool {
	p, s := []rune(pattern), []rune(name)
	star, mark := -1, 0 // the last * and how much it has taken
	pi, si := 0, 0
	for si < len(s) {
		if pi < len(p) && p[pi] == '*' {
			star, mark = pi, si
			pi++
			continue
		}
		if pi < len(p) {
			if width, ok := matchOne(p[pi:], s[si]); ok {
				pi += width
				si++
				continue
			}
		}
		if star < 0 {
			return false
		}
		mark++
		pi, si = star+1, mark
	}
	for pi < len(p) && p[pi] == '*' {
		pi++
	}
	return pi == len(p)
}

// matchOne matches one character against the head of a pattern that is no star,
// and says how long that head is.
func matchOne(p []rune, c rune) (width int, ok bool) {
	switch p[0] {
	case '?':
		return 1, true
	case '[':
		if end := setEnd(p); end > 0 {
			return end + 1, inSet(p[1:end], c)
		}
	}
	return 1, p[0] == c
}

// setEnd finds the ] of the set that p begins with, or 0. One that comes first
// in the set is a member of it.
func setEnd(p []rune) int {
	i := 1
	if i < len(p) && p[i] == '!' {
		i++
	}
	for i++; i < len(p); i++ {
		if p[i] == ']' {
			return i
		}
	}
	return 0
}

// inSet looks c up in what stands between the brackets. A range whose ends are
// the wrong way round has no members.
func inSet(set []rune, c rune) bool {
	negated := len(set) > 0 && set[0] == '!'
	if negated {
		set = set[1:]
	}
	found := false
	for i := 0; i < len(set); i++ {
		if i+2 < len(set) && set[i+1] == '-' {
			found = found || set[i] <= c && c <= set[i+2]
			i += 2
			continue
		}
		found = found || set[i] == c
	}
	return found != negated
}
