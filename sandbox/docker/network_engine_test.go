package docker

import (
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/docker/docker/api/types/network"

	"caisson/sandbox"
)

func TestNET01_NET02_AttackT24_NoneHasLoopbackAlone(t *testing.T) {
	t.Parallel()
	p := provider(t)
	s := create(t, p, specOf(""))
	if got := sh(t, s, "ls /sys/class/net"); strings.TrimSpace(got) != "lo" {
		t.Errorf("interfaces %q", got)
	}
	if got := sh(t, s, "cat /etc/resolv.conf"); !strings.Contains(got, "nameserver "+sinkResolver) || strings.Count("\n"+got, "\nnameserver") != 1 {
		t.Errorf("resolv.conf %q", got)
	}
	began := time.Now()
	if r := run(t, s, shell("nslookup example.invalid || wget -T 5 -O - http://192.0.2.1/")); r.code() == 0 || time.Since(began) > 3*time.Second {
		t.Errorf("code %d after %v", r.code(), time.Since(began))
	}
	spec := specOf("")
	spec.Network = "host"
	_, err := tryCreate(t, p, spec)
	wantError(t, err, sandbox.KindRejected, "network")
	for tier, want := range map[sandbox.Network]string{sandbox.NetworkNone: "none", sandbox.NetworkInternal: internalNetwork, sandbox.NetworkEgress: egressNetwork} {
		spec.Network = tier
		if got := inspect(t, p, create(t, p, spec)).HostConfig.NetworkMode; string(got) != want {
			t.Errorf("%s is the engine's %s", tier, got)
		}
	}
}

func TestNET03_D22_InternalNetworkIsMadeOnceAndShut(t *testing.T) {
	t.Parallel()
	p := provider(t)
	spec := specOf("")
	spec.Network = sandbox.NetworkInternal
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			id := sandbox.NewSessionID()
			if _, err := p.Create(t.Context(), id, spec, nil); err != nil {
				t.Error(err)
			}
			destroy(t, p, id)
		})
	}
	all.Wait()
	n, err := p.api.NetworkInspect(t.Context(), internalNetwork, network.InspectOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if !n.Internal || n.Options[optionICC] != "false" || n.Options[optionBridge] != internalBridge || n.Labels[labelSandbox] != "1" {
		t.Errorf("%+v", n)
	}
	a, b := create(t, p, spec), create(t, p, spec)
	mustStart(t, a, shell("nc -l -p 7777 -e echo reached"))
	peer := inspect(t, p, a).NetworkSettings.Networks[internalNetwork].IPAddress
	if peer == "" {
		t.Fatal("no address")
	}
	if r := run(t, b, shell("nc -w 2 "+peer+" 7777 </dev/null")); strings.Contains(r.stdout, "reached") {
		t.Error("sessions reach one another")
	}
	if got := sh(t, a, "(nc -w 2 "+peer+" 7777 </dev/null) | cat"); got != "reached\n" {
		t.Errorf("the control: a session does not reach itself: %q", got)
	}
}

func TestNET06_ForeignEgressNetwork(t *testing.T) {
	t.Parallel()
	cfg := engine(t)
	cfg.EgressNetwork = "caisson-test-nowhere"
	spec := specOf("")
	spec.Network = sandbox.NetworkEgress
	_, err := tryCreate(t, newProvider(t, cfg), spec)
	wantError(t, err, sandbox.KindRejected, "network", "caisson-test-nowhere")
	cfg.EgressNetwork = "bridge"
	p := newProvider(t, cfg)
	if got := inspect(t, p, create(t, p, spec)).HostConfig.NetworkMode; got != "bridge" {
		t.Errorf("%s", got)
	}
}

func TestPUL02_AbsentImageUnderNever(t *testing.T) {
	t.Parallel()
	p := provider(t)
	_, err := tryCreate(t, p, specOf("caisson-test-absent:1"))
	wantError(t, err, sandbox.KindImageNotFound, "", "caisson-test-absent:1")
	_, err = tryCreate(t, p, specOf("UPPER:case"))
	wantError(t, err, sandbox.KindInvalid, "image")
}
