// Package strictyaml reads the files that operators write: the strict part of
// YAML in which a file says what it shows, with the place of every value, and
// every fault at once.
package strictyaml
