package wrapper

import "strings"

// EnvPasses reports whether a variable of this name reaches the command as it was given.
// The shell that the wrapper is made of drops names that are no identifiers of its own
// (a.b, exported functions of bash), rewrites or is upset by a few of them (a
// non-numeric OPTIND ends dash before its first line, SHELLOPTS=noexec keeps bash from
// running anything), and the scripts' own variables begin with tai_. A name that does
// not pass is best refused before the command starts.
func EnvPasses(name string) bool {
	if name == "" || strings.HasPrefix(name, "tai_") {
		return false
	}
	for i, c := range []byte(name) {
		letter := c == '_' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
		digit := c >= '0' && c <= '9'
		if !letter && (!digit || i == 0) {
			return false
		}
	}
	switch name {
	case "IFS", "OPTIND", "PPID", "PWD", "OLDPWD", "SHLVL", "_", "SHELLOPTS", "BASHOPTS", "POSIXLY_CORRECT":
		return false
	}
	return true
}
