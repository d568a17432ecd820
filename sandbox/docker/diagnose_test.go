package docker

import (
	"strings"
	"testing"

	"github.com/docker/docker/api/types/network"
	"github.com/docker/docker/api/types/system"

	"caisson/sandbox"
)

func find(t *testing.T, checks []Check, name string) Check {
	t.Helper()
	for _, c := range checks {
		if c.Name == name {
			return c
		}
	}
	t.Fatalf("no check %q in %+v", name, checks)
	return Check{}
}

func TestD34_DoctorNamesCapsThatCannotBeEnforced(t *testing.T) {
	all := system.Info{CPUCfsQuota: true, MemoryLimit: true, PidsLimit: true, SwapLimit: true, SecurityOptions: []string{"name=seccomp,profile=default"}}
	for _, c := range checkCaps(all) {
		if !c.OK || c.Warn || c.Mend != "" {
			t.Errorf("%+v", c)
		}
	}
	for _, c := range checkCaps(system.Info{}) {
		if c.Mend == "" || c.OK != (c.Name == "cap on swap") {
			t.Errorf("%+v", c)
		}
	}
}

func TestD22_DoctorWarnsOfNetworksThatJoinSessions(t *testing.T) {
	p := bare(t)
	for _, c := range []struct {
		tier     sandbox.Network
		name     string
		found    *network.Inspect
		ok, warn bool
	}{
		{sandbox.NetworkEgress, egressNetwork, nil, true, false},
		{sandbox.NetworkEgress, "other", nil, false, false},
		{sandbox.NetworkEgress, "bridge", &network.Inspect{Name: "bridge", Driver: "bridge"}, true, true},
		{sandbox.NetworkEgress, egressNetwork, &network.Inspect{Name: egressNetwork, Driver: "bridge", Options: map[string]string{optionICC: "false"}}, true, false},
		{sandbox.NetworkInternal, internalNetwork, &network.Inspect{Name: internalNetwork, Driver: "bridge"}, false, false},
	} {
		got := p.checkTier(c.tier, c.name, c.found, nil)
		if got.OK != c.ok || got.Warn != c.warn || (got.Mend == "") == (!c.ok || c.warn) {
			t.Errorf("%s %s: %+v", c.tier, c.name, got)
		}
	}
}

func TestCON07_DoctorOnADeadEngine(t *testing.T) {
	checks := bare(t).Diagnose(t.Context(), busybox)
	if c := find(t, checks, "engine"); c.OK || !strings.Contains(c.Detail, "/nowhere/engine.sock") || c.Mend == "" {
		t.Errorf("%+v", checks)
	}
}

func TestEXW01_DoctorOnARealEngine(t *testing.T) {
	p := provider(t)
	checks := p.Diagnose(t.Context(), debian)
	for _, c := range checks {
		if !c.OK {
			t.Errorf("%+v", c)
		}
	}
	if p.host.transport == transportMutual {
		find(t, checks, "client certificate")
	}
	for _, name := range []string{"connection", "engine", "cap on memory", "network internal", "network egress", "image " + debian} {
		find(t, checks, name)
	}
	if c := find(t, p.Diagnose(t.Context(), "caisson-test-no-mkfifo"), "image caisson-test-no-mkfifo"); c.OK || !strings.Contains(c.Detail, "mkfifo") {
		t.Errorf("%+v", c)
	}
	cfg := engine(t)
	cfg.Runtime = "runsc-nowhere"
	if c := find(t, newProvider(t, cfg).Diagnose(t.Context(), ""), "runtime runsc-nowhere"); c.OK || !strings.Contains(c.Mend, "SANDBOX_DOCKER_RUNTIME") {
		t.Errorf("%+v", c)
	}
}

func TestD32_DoctorSaysHowTheDiskIsLimited(t *testing.T) {
	p := provider(t)
	for _, c := range p.Diagnose(t.Context(), busybox) {
		if c.Name == "limit on disk" {
			t.Errorf("without a limit: %+v", c)
		}
	}
	p.cfg.DiskMB = testDiskMB
	if c := find(t, p.Diagnose(t.Context(), busybox), "limit on disk"); !c.OK || !c.Warn || c.Mend == "" || !strings.Contains(c.Detail, "24 MB") {
		t.Errorf("%+v", c)
	}
	if c, ok := checkDisk(sandbox.Note{Code: sandbox.NoteDiskQuota, Text: "x"}); !ok || !c.OK || c.Warn {
		t.Errorf("a quota: %+v", c)
	}
}
