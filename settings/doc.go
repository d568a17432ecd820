// Package settings reads the environment once into one value and says all that
// is wrong with it at once, each fault by the name of its variable.
//
// It holds the whole table of variables: names, defaults, ranges and meanings
// are tags of the fields of Docker and MCP, and the reading, the checks, the
// table in the documentation and what `caisson config` prints all come from
// them. Nothing else in the program looks at the environment, and only the cli
// package looks at Settings: the other packages take configurations of their
// own.
//
// No error, warning or printed value carries certificate or key material: a
// value that looks like a secret is described by its length.
package settings

//go:generate go test -run ^TestCFG15_ . -update
