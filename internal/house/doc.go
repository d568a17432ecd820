// Package house holds the rules of the repository that a compiler does not
// check, as tests: which package may import which, how long files and functions
// may be, and the table that says which test shows which requirement.
package house

//go:generate go test -run ^TestCoverageTableIsCurrent$ . -update
