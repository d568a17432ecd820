package e2e_test

import (
	"strings"
	"testing"
)

// The built server with the probe on, and the deployment's firewall: off, on, too tight, on
// through a restart of the engine, off again.
func TestPRB02_PRB03_PRB04_NET04_AttackT35_TheServerBelievesTheFirewallThatItSees(t *testing.T) {
	t.Parallel()
	e := privateEngine(t, "proof")
	w := surround(t, e)
	v, a := e.serve(t, "SANDBOX_DOCKER_READINESS_PROBE_ENABLED=true", "SANDBOX_DOCKER_PULL_POLICY=never")
	refused := func(when string, words ...string) {
		t.Helper()
		r := a.fails("egress_firewall_not_in_force", "session_create", args{"network": "egress"})
		for _, word := range append(words, "docs/firewall.md") {
			if !strings.Contains(r.text(), word) {
				t.Errorf("%s: %q lacks %q", when, r.text(), word)
			}
		}
	}
	// works makes sessions of these tiers, and sees that the resolver answers on egress.
	works := func(when string, tiers ...string) {
		t.Helper()
		w.forget()
		for _, tier := range tiers {
			made := into[listed](t, a.ok("session_create", args{"network": tier}))
			if tier == "egress" {
				a.exec(made.SessionID, "nslookup works.test")
			}
			a.ok("session_destroy", args{"session_id": made.SessionID})
		}
		if len(w.lookups(w.resolver+" works.test")) == 0 {
			t.Errorf("%s: the resolver is not reached from egress", when)
		}
	}
	control := strings.TrimPrefix(e.vars["SANDBOX_DOCKER_HOST"], "tcp://")
	refused("no firewall", "reaches the engine's control port at "+control)
	for _, form := range firewallForms {
		e.firewall(t, "load", "FORM="+form)
		works(form, "internal", "egress")
		e.firewall(t, "load", "FORM="+form, "RESOLVERS=192.0.2.99")
		w.in(w.engine, "iptables -w -I OUTPUT -p udp --dport 53 -j REJECT") // a newer engine asks for its containers
		refused(form+" without the engine's resolver", "blocks too much")
		w.in(w.engine, "iptables -w -D OUTPUT -p udp --dport 53 -j REJECT")
		e.firewall(t, "reload", "FORM="+form)
		e.script("bounce")
		ready(t, v, callLimit/2)
		works(form+", loaded again, and after the engine's restart", "egress")
		e.firewall(t, "remove", "FORM="+form)
		refused(form+" taken away", "reaches the engine's control port at "+control)
	}
}
