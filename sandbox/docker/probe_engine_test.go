package docker

import (
	"context"
	"errors"
	"io"
	"net"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/events"
	"github.com/docker/docker/api/types/filters"

	"caisson/sandbox"
)

// command runs a program of the host, which plays the engine's surroundings.
func command(ctx context.Context, t *testing.T, argv ...string) string {
	t.Helper()
	out, err := exec.CommandContext(ctx, argv[0], argv[1:]...).CombinedOutput()
	if err != nil {
		t.Errorf("%s: %v\n%s", strings.Join(argv, " "), err, out)
	}
	return string(out)
}

// rule puts an iptables rule into the engine's namespace until undo is called, at the
// latest by the test's end.
func rule(t *testing.T, chain string, match ...string) (undo func()) {
	t.Helper()
	vars, err := engineVars()
	if err != nil {
		t.Fatal(err)
	}
	change := func(ctx context.Context, what string) {
		argv := []string{"nsenter", "--net=" + vars["CAISSON_ENGINE_NETNS"], "iptables", "-w", what, chain}
		command(ctx, t, append(argv, match...)...)
	}
	change(t.Context(), "-I")
	undo = sync.OnceFunc(func() { change(context.Background(), "-D") })
	t.Cleanup(undo)
	return undo
}

// resolver plays the resolver that the engine was told of, an address of the link that
// nobody else has: it knows no name. It answers for as long as the test runs.
func resolver(t *testing.T, p *Provider) {
	t.Helper()
	name, _, err := net.SplitHostPort(p.host.addr)
	if err != nil {
		t.Fatal(err)
	}
	address := name[:strings.LastIndex(name, ".")] + ".53"
	fields := strings.Fields(command(t.Context(), t, "ip", "-o", "route", "get", name))
	link := ""
	for i, word := range fields {
		if word == "dev" {
			link = fields[i+1]
		}
	}
	command(t.Context(), t, "ip", "address", "add", address+"/32", "dev", link)
	t.Cleanup(func() { command(context.Background(), t, "ip", "address", "del", address+"/32", "dev", link) })
	conn, err := net.ListenPacket("udp", address+":53")
	if err != nil {
		t.Fatal(err)
	}
	var serving sync.WaitGroup
	serving.Go(func() {
		buf := make([]byte, 1500)
		for {
			n, from, err := conn.ReadFrom(buf)
			if err != nil {
				return
			}
			if n < 12 {
				continue
			}
			buf[2] |= 0x80           // an answer
			buf[3] = buf[3]&0xf0 | 3 // no such name
			_, _ = conn.WriteTo(buf[:n], from)
		}
	})
	t.Cleanup(func() {
		_ = conn.Close()
		serving.Wait()
	})
}

func probing(t *testing.T) *Provider {
	t.Helper()
	cfg := engine(t)
	cfg.Probe = ProbeConfig{Enabled: true, Image: busybox, Timeout: 30 * time.Second}
	p := newProvider(t, cfg)
	if err := p.connect(t.Context()); err != nil {
		t.Fatal(err)
	}
	return p
}

// helpersLeft waits until no probe's container is left.
func helpersLeft(t *testing.T, p *Provider) {
	t.Helper()
	var found []container.Summary
	for deadline := time.Now().Add(10 * time.Second); time.Now().Before(deadline); time.Sleep(100 * time.Millisecond) {
		var err error
		found, err = p.api.ContainerList(t.Context(), container.ListOptions{All: true, Filters: filters.NewArgs(
			filters.Arg("label", labelRole+"="+roleProbe), filters.Arg("label", labelInstance+"="+p.cfg.Instance))})
		if err != nil {
			t.Fatal(err)
		}
		if len(found) == 0 {
			return
		}
	}
	t.Errorf("%d containers of probes are left", len(found))
}

// rejecting are the rules of a firewall that is in force: nothing that comes from a
// network of sandboxes reaches the engine's control port.
func rejecting(t *testing.T, verdict ...string) (off func()) {
	t.Helper()
	var undo []func()
	for _, bridge := range []string{egressBridge, internalBridge} {
		undo = append(undo, rule(t, "INPUT", append([]string{"-i", bridge, "-p", "tcp", "--dport", "2376", "-j"}, verdict...)...))
	}
	return func() {
		for _, f := range undo {
			f()
		}
	}
}

// TestPRB02_... plays a firewall that is off, on, off again and too tight. It is one test,
// not parallel to itself, since the engine has one firewall.
func TestPRB02_PRB03_PRB04_PRB10_PRB12_PRB14_PRB15_PRB16_D01_D21_AttackT35_TheFirewallIsProvedBeforeEachCreate(t *testing.T) {
	t.Parallel()
	p := probing(t)
	resolver(t, p)
	spec := specOf("")
	spec.Network = sandbox.NetworkEgress
	refused := func(want string) {
		t.Helper()
		_, err := tryCreate(t, p, spec)
		if sandbox.KindOf(err) != sandbox.KindFirewall || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
		helpersLeft(t, p)
	}
	refused("reaches the engine's control port at " + p.host.addr)
	off := rejecting(t, "REJECT", "--reject-with", "tcp-reset")
	destroy(t, p, create(t, p, spec).info.ID)
	for _, tier := range []sandbox.Network{sandbox.NetworkNone, sandbox.NetworkInternal} {
		other := specOf("")
		other.Network = tier
		create(t, p, other)
	}
	cost(t, p, spec)
	simultaneous(t, p, spec)
	off()
	refused("control port")
	rejecting(t, "DROP")
	began := time.Now()
	create(t, p, spec)
	t.Logf("behind a firewall that drops: %v", time.Since(began))
	rule(t, "FORWARD", "-i", egressBridge, "-p", "udp", "--dport", "53", "-j", "DROP")
	rule(t, "OUTPUT", "-p", "udp", "--dport", "53", "-j", "DROP")
	refused("blocks too much")
}

// cost tells what the probe adds to a create. It asserts nothing: a busy machine may be any
// slow.
func cost(t *testing.T, proving *Provider, spec sandbox.Spec) {
	t.Helper()
	const rounds = 7
	var with, without []time.Duration
	plain := provider(t)
	for range rounds {
		for _, side := range []struct {
			p     *Provider
			times *[]time.Duration
		}{{proving, &with}, {plain, &without}} {
			began := time.Now()
			id := create(t, side.p, spec).info.ID
			*side.times = append(*side.times, time.Since(began))
			destroy(t, side.p, id)
		}
	}
	slices.Sort(with)
	slices.Sort(without)
	a, b := with[rounds/2], without[rounds/2]
	t.Logf("a create behind a firewall that rejects: p50 %v with the probe, %v without, ratio %.2f", a, b, float64(a)/float64(b))
}

// simultaneous makes 20 sessions at once, and sees on the engine that a probe began after
// each of them was asked for and ended before it was started (D1).
func simultaneous(t *testing.T, p *Provider, spec sandbox.Spec) {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	stream, failed := p.api.Events(ctx, events.ListOptions{Filters: filters.NewArgs(
		filters.Arg("type", "container"), filters.Arg("label", labelInstance+"="+p.cfg.Instance))})
	const many = 20
	asked := make([]time.Time, many)
	ids := make([]string, many)
	var all sync.WaitGroup
	for i := range many {
		all.Go(func() {
			<-time.After(time.Duration(i) * 50 * time.Millisecond) // while probes run
			ids[i], asked[i] = sandbox.NewSessionID(), time.Now()
			if _, err := p.Create(t.Context(), ids[i], spec, nil); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	type life struct{ created, died time.Time }
	probes, started := map[string]*life{}, map[string]time.Time{}
	for seen := 0; seen < many; {
		select {
		case e := <-stream:
			at := time.Unix(0, e.TimeNano)
			switch role := e.Actor.Attributes[labelRole]; {
			case role == roleProbe && e.Action == events.ActionCreate:
				probes[e.Actor.ID] = &life{created: at}
			case role == roleProbe && e.Action == events.ActionDie:
				probes[e.Actor.ID].died = at
			case role == roleSession && e.Action == events.ActionStart:
				started[e.Actor.Attributes[labelID]] = at
				seen++
			}
		case err := <-failed:
			t.Fatal(err)
		case <-time.After(20 * time.Second):
			t.Fatalf("%d of %d starts were seen", seen, many)
		}
	}
	for i, id := range ids {
		proved := false
		for _, probe := range probes {
			proved = proved || probe.created.After(asked[i]) && !probe.died.IsZero() && probe.died.Before(started[id])
		}
		if !proved {
			t.Errorf("session %d was started without a probe of its own time", i)
		}
		destroy(t, p, id)
	}
	if len(probes) > many/2 {
		t.Errorf("%d probes for %d creates: they are not shared", len(probes), many)
	}
	helpersLeft(t, p)
}

func TestPRB01_WithoutTheProbeNoneRuns(t *testing.T) {
	t.Parallel()
	p := provider(t)
	began := time.Now()
	create(t, p, specOf(""))
	ctx, stop := context.WithTimeout(t.Context(), 20*time.Second)
	defer stop()
	stream, failed := p.api.Events(ctx, events.ListOptions{
		Since: began.Add(-time.Second).Format(time.RFC3339Nano), Until: time.Now().Add(time.Second).Format(time.RFC3339Nano),
		Filters: filters.NewArgs(filters.Arg("label", labelInstance+"="+p.cfg.Instance), filters.Arg("event", "create")),
	})
	seen := 0
	for {
		select {
		case e := <-stream:
			if seen++; e.Actor.Attributes[labelRole] == roleProbe {
				t.Error("a probe ran")
			}
			continue
		case err := <-failed:
			if err != nil && !errors.Is(err, io.EOF) {
				t.Error(err)
			}
		}
		break
	}
	if seen == 0 {
		t.Error("the control: the session's own create was not seen")
	}
}

func TestPRB11_PRB13_AProbeThatCannotRunRefuses(t *testing.T) {
	t.Parallel()
	p := probing(t)
	p.cfg.Probe.Timeout = time.Millisecond
	_, err := tryCreate(t, p, specOf(""))
	wantError(t, err, sandbox.KindFirewall, "", "did not complete")
	p.cfg.Probe.Timeout, p.cfg.Probe.Image = 30*time.Second, "caisson-test-nowhere:latest"
	_, err = tryCreate(t, p, specOf(""))
	wantError(t, err, sandbox.KindImageNotFound, "", "caisson-test-nowhere")
	p.cfg.Probe.Image = "caisson-test-contract:latest"
	_, err = tryCreate(t, p, specOf(""))
	wantError(t, err, sandbox.KindImageUnusable, "", "nc")
	helpersLeft(t, p)
}
