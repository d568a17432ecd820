package e2e_test

import (
	"encoding/base64"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/docker/docker/api/types/network"
)

// firewallForms are the two forms of the deployment's firewall.
var firewallForms = []string{"nft", "iptables"}

// firewall runs a command line of the firewall's unit as the engine's host would: with its
// network, and with its resolv.conf.
func (e *ownEngine) firewall(t *testing.T, action string, conf ...string) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "firewall.conf")
	if err := os.WriteFile(file, []byte(strings.Join(conf, "\n")+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	line := unitLine(t, "caisson-engine-firewall.service", map[string]string{"load": "ExecStart", "reload": "ExecReload", "remove": "ExecStop"}[action])
	argv := []string{
		"nsenter", "--net=" + e.vars["CAISSON_ENGINE_NETNS"], "unshare", "--mount", "env", "CAISSON_FIREWALL_CONF=" + file,
		"sh", "-c", `mount --bind "$0" /etc/resolv.conf && exec "$@"`, e.resolvConf(),
	}
	out(t, append(argv, strings.Fields(line)...)...)
}

// resolvConf is the file that the engine has as its /etc/resolv.conf.
func (e *ownEngine) resolvConf() string {
	return filepath.Join(filepath.Dir(e.vars["CAISSON_ENGINE_SOCKET"]), "resolv.conf")
}

// boot restarts the engine's host: no rule is there, then the firewall's, then the engine's,
// which it puts in front of what it finds.
func (r *arena) boot(t *testing.T, form string) {
	t.Helper()
	r.script("stop")
	r.world.in(r.world.engine, "nft flush ruleset")
	r.firewall(t, "load", "FORM="+form)
	r.script("start")
	r.well(callLimit/2, r.egress)
}

// unitLine is a command line of a unit in deploy/, with the program where it is here.
func unitLine(t *testing.T, unit, key string) string {
	t.Helper()
	deploy, err := filepath.Abs("../deploy")
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(deploy, unit))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if value, found := strings.CutPrefix(line, key+"="); found && key != "" {
			return strings.NewReplacer("/usr/local/lib/caisson/", deploy+"/", "/usr/local/bin/caisson", the.plain).Replace(strings.TrimSpace(value))
		}
	}
	t.Fatalf("%s has no %s", unit, key)
	return ""
}

// dialerOnce builds what sessions dial with.
var dialerOnce = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "caisson-dialer-")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(dir)
	cmd := exec.Command("go", "build", "-ldflags", "-s -w", "-o", dir+"/dialer", "./testdata/dialer")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if text, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("%w: %s", err, text)
	}
	program, err := os.ReadFile(dir + "/dialer")
	return base64.StdEncoding.EncodeToString(program), err
})

// dialing makes a session of a tier that has the dialer.
func (a *actor) dialing(tier string) string {
	a.t.Helper()
	program, err := dialerOnce()
	if err != nil {
		a.t.Fatal(err)
	}
	s := a.session(args{"network": tier})
	a.ok("upload", args{"session_id": s, "path": "dialer", "content": program, "encoding": "base64", "mode": "0755"})
	return s
}

// dial returns which of the targets a session has reached.
func (a *actor) dial(session string, targets ...string) []string {
	a.t.Helper()
	x := a.exec(session, "", args{"command": nil, "shell": nil, "argv": append([]string{"./dialer"}, targets...)})
	lines := strings.Split(strings.TrimSpace(x.Stdout), "\n")
	if !x.exited(0) || !strings.HasPrefix(lines[len(lines)-1], "tried ") {
		a.t.Fatalf("dialer: %v", x)
	}
	var open []string
	for _, line := range lines[:len(lines)-1] {
		open = append(open, strings.TrimPrefix(line, "open "))
	}
	slices.Sort(open)
	return open
}

// doubleStack makes the egress network as the server would, with IPv6 beside IPv4.
func (e *ownEngine) doubleStack(t *testing.T) {
	t.Helper()
	six := true
	_, err := e.api.NetworkCreate(t.Context(), "tai-sbx-egress", network.CreateOptions{
		Driver: "bridge", EnableIPv6: &six, IPAM: &network.IPAM{Config: []network.IPAMConfig{{Subnet: sessions6}}},
		Options: map[string]string{"com.docker.network.bridge.name": "tai-sbx-egress", "com.docker.network.bridge.enable_icc": "false"},
	})
	if err != nil {
		t.Fatal(err)
	}
}

// gateways are the engine's own addresses on a network: none on one that a newer engine
// isolates.
func (e *ownEngine) gateways(t *testing.T, name string) []string {
	t.Helper()
	n, err := e.api.NetworkInspect(t.Context(), name, network.InspectOptions{})
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, config := range n.IPAM.Config {
		if strings.Contains(config.Gateway, ".") {
			all = append(all, config.Gateway)
		}
	}
	return all
}

// arena is an engine with the world around it and sessions on every tier.
type arena struct {
	*ownEngine
	*actor
	world                  *world
	egress, internal, none string
	host                   []string // every port that is open on the engine's host, at each of its addresses
	reserved               []string // metadata services and private ranges, however spelled
	public                 []string
}

func newArena(t *testing.T, name string) *arena {
	t.Helper()
	e := privateEngine(t, name)
	e.doubleStack(t)
	r := &arena{ownEngine: e, world: surround(t, e)}
	_, r.actor = e.serve(t)
	r.egress, r.internal, r.none = r.dialing("egress"), r.dialing("internal"), r.dialing("none")
	control := strings.TrimPrefix(e.vars["SANDBOX_DOCKER_HOST"], "tcp://")
	for _, address := range slices.Concat(
		[]string{strings.TrimSuffix(control, ":2376"), engineSide, "172.17.0.1", "[" + engineSide6 + "]", "[2001:db8:5e55::1]"},
		e.gateways(t, "tai-sbx-egress"), e.gateways(t, "tai-sbx-internal"),
	) {
		for _, port := range []int{22, 53, 80, 443, 2375, 2376, 8811, 9090, 18080} {
			if port != 2376 || !strings.Contains(address, ":") && address+":2376" == control {
				r.host = append(r.host, fmt.Sprintf("tcp://%s:%d", address, port))
			}
		}
	}
	for _, address := range []string{
		"169.254.169.254", "169.254.170.2", "100.100.100.200", "168.63.129.16", "[fd00:ec2::254]", // metadata
		"10.1.2.3", "172.31.7.7", "192.168.1.1", "100.64.0.1", "198.18.0.1", "[fd12::1]",
		"[::ffff:169.254.169.254]", "[64:ff9b::a9fe:a9fe]", "[2002:a9fe:a9fe::1]",
	} {
		r.reserved = append(r.reserved, "tcp://"+address+":80", "tcp://"+address+":443")
	}
	for _, address := range []string{publicHost, "[" + publicHost6 + "]"} {
		r.public = append(r.public, "tcp://"+address+":80", "tcp://"+address+":443")
	}
	return r
}

// addresses strips the targets' scheme, as the dialer prints them.
func addresses(targets ...[]string) []string {
	var all []string
	for _, target := range slices.Concat(targets...) {
		_, address, _ := strings.Cut(target, "://")
		all = append(all, address)
	}
	slices.Sort(all)
	return all
}

func same(t *testing.T, what string, got, want []string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("%s: reached %v, want %v", what, got, want)
	}
}

// The world is played: see world. Without the rules everything in it is reached from
// egress, and the engine's host from the internal tier too where the engine is an old one.
func TestNET04_AttackT26_AttackT27_AttackT28_AttackT29_AttackT30_BugNW02_BugNW04_TheDeploymentsFirewallHolds(t *testing.T) {
	t.Parallel()
	r := newArena(t, "firewall")
	udp := []string{"udp://" + publicHost + ":53", "udp://10.1.2.3:53", "udp://192.168.1.1:5353", "udp://169.254.169.254:123", "udp://[fd12::1]:443", "udp://224.0.0.251:5353"}
	all := slices.Concat(r.host, r.reserved, r.public, udp)
	var scan []string
	for _, gateway := range r.gateways(t, "tai-sbx-internal") {
		scan = append(scan, "scan://"+gateway)
	}

	same(t, "the control: egress without a firewall", r.dial(r.egress, all...), addresses(r.host, r.reserved, r.public))
	if n := r.world.forbidden(); n < len(r.reserved) {
		t.Errorf("the control: only %d packets to reserved addresses were counted", n)
	}
	n, err := r.api.NetworkInspect(t.Context(), "tai-sbx-internal", network.InspectOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if open := r.dial(r.internal, r.host...); len(open) == 0 && n.Options["com.docker.network.bridge.gateway_mode_ipv4"] == "" {
		t.Error("the control: the internal tier does not reach the engine's host even without a firewall")
	}
	for _, form := range firewallForms {
		r.firewall(t, "load", "FORM="+form)
		r.firewall(t, "reload", "FORM="+form) // again does no harm
		r.world.forget()
		same(t, form+": egress", r.dial(r.egress, all...), addresses(r.public))
		same(t, form+": internal", r.dial(r.internal, append(all, scan...)...), nil)
		same(t, form+": none", r.dial(r.none, all...), nil)
		for _, spelled := range []string{"2852039166", "0xa9fea9fe", "0251.0376.0251.0376", "10.66051"} {
			r.exec(r.egress, "nc -w 2 "+spelled+" 80 </dev/null")
		}
		r.exec(r.egress, "nslookup metadata.invalid")
		if n, reached := r.world.forbidden(), r.world.reached(); n != 0 || len(reached) != len(r.public) {
			t.Errorf("%s: %d packets came to reserved addresses; accepted: %v", form, n, reached)
		}
		if got := r.world.lookups("metadata.invalid"); len(got) == 0 {
			t.Errorf("%s: the resolver is not reached", form)
		}
		r.boot(t, form)
		r.world.forget()
		same(t, form+", host restarted: egress", r.dial(r.egress, all...), addresses(r.public))
		if n := r.world.forbidden(); n != 0 {
			t.Errorf("%s, host restarted: %d packets came to reserved addresses", form, n)
		}
		r.firewall(t, "remove", "FORM="+form)
		r.firewall(t, "remove", "FORM="+form)
		same(t, form+": taken away", r.dial(r.egress, all...), addresses(r.host, r.reserved, r.public))
	}
}
