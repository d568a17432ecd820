// Package nearest finds the name that somebody most likely meant.
package nearest

// Of returns the member of known that takes the fewest single-character edits
// to reach from name, or "" where none is near enough to be a likely slip: more
// than a third of the name would have to change. Of several equally near ones
// the first wins.
func Of(name string, known []string) string {
	best, limit := "", len([]rune(name))/3+1
	for _, candidate := range known {
		if d := distance(name, candidate); d < limit {
			best, limit = candidate, d
		}
	}
	return best
}

// distance is the optimal string alignment distance: insertions, deletions,
// substitutions and swaps of neighbours each count one. A swap counts one
// because that is how names are mistyped.
func distance(a, b string) int {
	x, y := []rune(a), []rune(b)
	before, last := make([]int, len(y)+1), make([]int, len(y)+1)
	for j := range last {
		last[j] = j
	}
	for i := 1; i <= len(x); i++ {
		row := make([]int, len(y)+1)
		row[0] = i
		for j := 1; j <= len(y); j++ {
			cost := 1
			if x[i-1] == y[j-1] {
				cost = 0
			}
			row[j] = min(last[j]+1, row[j-1]+1, last[j-1]+cost)
			if i > 1 && j > 1 && x[i-1] == y[j-2] && x[i-2] == y[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
		}
		before, last = last, row
	}
	return last[len(y)]
}
