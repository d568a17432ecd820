package mcp

import "strings"

// nearest returns the name that is closest to the one given: by edit distance,
// after case and separators are put aside, so that sessionId finds session_id.
func nearest(name string, names []string) string {
	best, least := "", -1
	for _, candidate := range names {
		d := 4*distance(plain(name), plain(candidate)) + min(distance(name, candidate), 3)
		if least < 0 || d < least {
			best, least = candidate, d
		}
	}
	return best
}

func plain(name string) string {
	return strings.ToLower(strings.NewReplacer("_", "", "-", "", ".", "").Replace(name))
}

// distance is the number of single-byte edits between two names (Levenshtein).
// Long ones are cut: they come from a client.
func distance(a, b string) int {
	const most = 64
	a, b = a[:min(len(a), most)], b[:min(len(b), most)]
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := 1
			if a[i] == b[j] {
				cost = 0
			}
			next := min(row[j+1]+1, row[j]+1, diagonal+cost)
			diagonal, row[j+1] = row[j+1], next
		}
	}
	return row[len(b)]
}
