package cli

import (
	"testing"

	"caisson/settings"
)

// TestCFG14_AttackT55_CeilingsReachThoseWhoEnforceThem holds the settings against what the
// manager and the manifest are made with.
func TestCFG14_AttackT55_CeilingsReachThoseWhoEnforceThem(t *testing.T) {
	s, err := settings.Load([]string{deadEngine, "SANDBOX_DOCKER_MAX_PIDS=700", "SANDBOX_DOCKER_MAX_CPU=2", "SANDBOX_DOCKER_MAX_MEMORY_MB=2048", "SANDBOX_DOCKER_MAX_WORKSPACES_PER_OWNER=5"})
	if err != nil {
		t.Fatal(err)
	}
	if p := policy(s.Docker); p.MaxPids != 700 || p.MaxCPU != 2 || p.MaxMemoryMB != 2048 {
		t.Errorf("%+v", p)
	}
	if l := limits(s.Docker); l.WorkspacesPerOwner != 5 {
		t.Errorf("%+v", l)
	}
	if m := manifestServer(s, nil); m.MaxPids != 700 || m.MaxNanoCPUs != 2e9 || m.MaxMemory != 2048<<20 {
		t.Errorf("%+v", m)
	}
}
