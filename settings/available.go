package settings

// Unavailable names the variables of features that this build does not have. A
// value other than the default is refused at start: ignoring it would let an
// operator believe that something is in force which is not. Whoever adds a
// feature takes its lines out.
func Unavailable() []string {
	return []string{
		DockerPrefix + "TOOL_IMAGE",
		DockerPrefix + "EXECUTOR_MODE",
		DockerPrefix + "IDLE_TTL_SECONDS",
		DockerPrefix + "NETWORK_MODE",
		MCPPrefix + "MANIFEST",
		MCPPrefix + "ALLOW_LOCAL",
		MCPPrefix + "ALLOW_WEAKER_TOOLS",
	}
}

// checkAvailable refuses what cannot be honoured.
func (s *Settings) checkAvailable(faults *Faults) {
	for _, name := range Unavailable() {
		f := s.field(name)
		raw, set := s.given[name]
		if set && raw != f.tag.Get("envDefault") && !faults.has(name) {
			faults.add(name, "is not available in this build; leave it unset")
		}
	}
}
