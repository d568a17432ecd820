package settings

import (
	"crypto/rand"
	"os"
	"regexp"
	"strings"
)

var notInstance = regexp.MustCompile(`[^A-Za-z0-9_.-]+`)

// nameInstance gives a server without a name one of its own (D14): on http the
// host's, so that a restart finds its sessions again; on stdio one that nobody
// else has, since a client may start several on one machine and each ends its
// sessions when it ends.
func (s *Settings) nameInstance(faults *Faults) {
	const name = DockerPrefix + "INSTANCE"
	if s.Docker.Instance != "" || faults.Has(name) {
		return
	}
	if s.MCP.Transport != "http" {
		s.Docker.Instance, s.UniqueInstance = "stdio-"+strings.ToLower(rand.Text()), true
		return
	}
	host, err := os.Hostname()
	host = strings.Trim(notInstance.ReplaceAllString(host, "-"), "-._")
	if err != nil || host == "" {
		faults.add(name, "is required: this host has no name to take")
		return
	}
	s.Docker.Instance = host[:min(len(host), 63)]
}
