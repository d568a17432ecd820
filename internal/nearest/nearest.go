// Package nearest finds the name that somebody most likely meant.
package nearest

import "strings"

// Of returns the member of names that is closest to name: by edits, after case
// and separators are put aside, so that sessionId finds session_id. Of equally
// close ones the first wins; of no names, "".
func Of(name string, names []string) string {
	best, least := "", -1
	for _, candidate := range names {
		// What is left after case and separators counts most; how it is
		// spelled only tells the equally close apart.
		d := 4*distance(plain(name), plain(candidate)) + min(distance(name, candidate), 3)
		if least < 0 || d < least {
			best, least = candidate, d
		}
	}
	return best
}

// Likely is Of, or "" where so much would have to change, more than a third of
// the name, that it was hardly meant.
func Likely(name string, names []string) string {
	best := Of(name, names)
	if best == "" || distance(plain(name), plain(best)) > len(plain(name))/3 {
		return ""
	}
	return best
}

func plain(name string) string {
	return strings.ToLower(strings.NewReplacer("_", "", "-", "", ".", "").Replace(name))
}

// longest is how much of a name is compared: names come from outside, and the
// work grows with the product of their lengths.
const longest = 64

// distance counts single-byte insertions, deletions, substitutions and swaps of
// neighbours. A swap counts one because that is how names are mistyped.
func distance(a, b string) int {
	a, b = a[:min(len(a), longest)], b[:min(len(b), longest)]
	before, last := make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range last {
		last[j] = j
	}
	for i := 1; i <= len(a); i++ {
		row := make([]int, len(b)+1)
		row[0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			row[j] = min(last[j]+1, row[j-1]+1, last[j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
		}
		before, last = last, row
	}
	return last[len(b)]
}
