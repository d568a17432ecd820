package docker

import (
	"maps"
	"strconv"
	"strings"

	"caisson/sandbox"
)

// spec reads what the session was made from: labels, and for the values of its
// environment, which no label holds, what the engine keeps of the container. The
// owner is known by the hash alone.
func (l labelled) spec(info sandbox.Info) sandbox.Spec {
	spec := sandbox.Spec{
		Image: info.Image, Network: info.Network, Durability: info.Durability, WorkspaceKey: info.WorkspaceKey,
		Isolation: sandbox.Isolation(l.labels[labelIsolate]), TTL: info.TTL,
	}
	if cpu, err := strconv.ParseFloat(l.labels[labelCPU], 64); err == nil {
		spec.CPU = &cpu
	}
	if memory, err := strconv.ParseInt(l.labels[labelMemory], 10, 64); err == nil {
		spec.MemoryMB = &memory
	}
	if pids, err := strconv.ParseInt(l.labels[labelPids], 10, 64); err == nil {
		spec.Pids = &pids
	}
	if len(info.Labels) > 0 {
		spec.Labels = maps.Clone(info.Labels)
	}
	for _, name := range info.EnvNames {
		if value, ok := l.variable(name); ok {
			if spec.Env == nil {
				spec.Env = map[string]sandbox.Secret{}
			}
			spec.Env[name] = sandbox.NewSecret(value)
		}
	}
	return spec
}

// variable is a variable of the container as sessionEnv was given it.
func (l labelled) variable(name string) (string, bool) {
	for _, pair := range l.env {
		if value, ok := strings.CutPrefix(pair, name+"="); ok {
			if name == "PATH" {
				value = strings.TrimSuffix(value, ":"+systemPath)
			}
			return value, true
		}
	}
	return "", false
}
