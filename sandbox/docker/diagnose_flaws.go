package docker

import (
	"strings"

	"github.com/docker/docker/api/types"
	"github.com/docker/docker/api/types/versions"
)

// flaws are what is known of parts of the engine that weakens a session's isolation
// whatever this server does. fixed are the versions that mend it, the oldest branch
// first; a branch that is not named is mended from the last one on.
var flaws = []struct {
	part, name, what string
	fixed            []string
}{
	{"Engine", "CVE-2024-29018", "look-ups leave an internal network where the engine's host has its resolver on a loopback address", []string{"23.0.11", "25.0.5", "26.0.0"}},
	{"runc", "CVE-2024-21626", "a command's working directory can lead out of the container", []string{"1.1.12"}},
	{"runc", "CVE-2025-31133", "an image's files can undo the masks over /proc", []string{"1.2.8", "1.3.3", "1.4.0"}},
}

// checkFlaws warns of each known flaw of the versions that the engine says it has (R9).
func checkFlaws(version types.Version) []Check {
	var checks []Check
	for _, c := range version.Components {
		for _, f := range flaws {
			if c.Name != f.part || mended(c.Version, f.fixed) {
				continue
			}
			checks = append(checks, Check{
				Name: f.name, OK: true, Warn: true, Detail: oneLine(c.Name+" "+c.Version+": "+f.what, 300),
				Mend: "update it to " + strings.Join(f.fixed, ", ") + " or newer, unless the distribution has mended its own " + oneLine(c.Version, 40),
			})
		}
	}
	return checks
}

// mended says whether a version, with whatever a distribution appends to it, is not
// older than the mended one of its branch.
func mended(version string, fixed []string) bool {
	version = strings.TrimPrefix(version, "v")
	if i := strings.IndexAny(version, "+~-"); i >= 0 {
		version = version[:i]
	}
	for _, f := range fixed {
		if branch := f[:strings.LastIndexByte(f, '.')+1]; strings.HasPrefix(version, branch) {
			return !versions.LessThan(version, f)
		}
	}
	return !versions.LessThan(version, fixed[len(fixed)-1])
}
