package docker

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"caisson/sandbox"
)

// goodReport is what a probe behind a closed firewall says.
const goodReport = `42 dial 10.0.0.2,2376 1 100.00 102.00
42 dial 172.17.0.1,2376 1 100.00 100.01
42 self 0 100.00 100.02
42 resolver 127.0.0.11
42 dns Server:		127.0.0.11
42 dns Address:	127.0.0.11:53
42 dns
42 dns ** server can't find 42.invalid: NXDOMAIN
42 end
`

func TestPRB03_PRB04_PRB09_PRB10_AttackT35_AReportIsBelievedOnlyWhereItProves(t *testing.T) {
	targets := []string{"10.0.0.2,2376", "172.17.0.1,2376"}
	swap := func(old, with string) string {
		if !strings.Contains(goodReport, old) {
			t.Fatalf("no %q", old)
		}
		return strings.Replace(goodReport, old, with, 1)
	}
	if err := judgeProbe(goodReport, 42, targets, true); err != nil {
		t.Fatalf("a good one: %v", err)
	}
	if err := judgeProbe(swap("127.0.0.11\n", "127.0.0.11\n42 nonsense\n"), 42, targets, true); err != nil {
		t.Errorf("a line of something else: %v", err)
	}
	for name, c := range map[string]struct {
		report string
		say    string // empty: undecided
	}{
		"reached":              {swap("172.17.0.1,2376 1", "172.17.0.1,2376 0"), "172.17.0.1:2376"},
		"reached and quiet":    {swap("10.0.0.2,2376 1", "10.0.0.2,2376 143"), "10.0.0.2:2376"},
		"no nc":                {"42 lacks nc\n", "has no \"nc\""},
		"no resolver":          {swap("42 resolver 127.0.0.11\n", ""), "no nameserver"},
		"resolver is silent":   {swap("** server can't find 42.invalid: NXDOMAIN", ";; connection timed out; no servers could be reached"), "timed out"},
		"resolver fails":       {swap("NXDOMAIN", "SERVFAIL"), "SERVFAIL"},
		"resolver refuses":     {swap("** server can't find 42.invalid: NXDOMAIN", "nslookup: write to '10.0.0.1': Connection refused"), "Connection refused"},
		"a dial is missing":    {swap("42 dial 10.0.0.2,2376 1 100.00 102.00\n", ""), ""},
		"a dial is garbled":    {swap("10.0.0.2,2376 1 100", "10.0.0.2,2376 x 100"), ""},
		"another sum":          {strings.ReplaceAll(goodReport, "42 ", "41 "), ""},
		"cut off":              {swap("42 end\n", ""), ""},
		"nothing":              {"", ""},
		"no dial of itself":    {swap("42 self 0 100.00 100.02\n", ""), ""},
		"cannot dial itself":   {swap("self 0", "self 1"), ""},
		"slow to dial itself":  {swap("self 0 100.00 100.02", "self 0 100.00 101.50"), ""},
		"a clock running back": {swap("self 0 100.00 100.02", "self 0 100.00 99.00"), ""},
	} {
		err := judgeProbe(c.report, 42, targets, true)
		var undecided *undecidedError
		switch {
		case err == nil:
			t.Errorf("%s: believed", name)
		case (c.say == "") != errors.As(err, &undecided):
			t.Errorf("%s: %v", name, err)
		case c.say != "" && !strings.Contains(fmt.Sprint(err), c.say):
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := judgeProbe(swap("NXDOMAIN", "SERVFAIL"), 42, targets, false); err != nil {
		t.Errorf("a tier without a resolver: %v", err)
	}
}

func TestPRB06_PRB07_AProbeWithNothingToProveRefuses(t *testing.T) {
	for _, host := range []string{"unix:///run/docker.sock", "tcp://127.0.0.1:2376", "tcp://[::1]:2376", "tcp://localhost", "tcp://0.0.0.0:2376", "tcp://name.invalid:2376"} {
		p, err := New(Config{Host: host, TLSVerify: true, Probe: ProbeConfig{Enabled: true, Image: "i", Timeout: 1}})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := p.probeTargets(t.Context()); sandbox.KindOf(err) != sandbox.KindFirewall {
			t.Errorf("%s: %v", host, err)
		}
	}
}

// TestPRB05_...: the engine's own address, at the port that is dialled, and all its bridges.
func TestPRB05_PRB08_TargetsAreDerived(t *testing.T) {
	for host, port := range map[string]string{"tcp://192.0.2.7": "2376", "https://192.0.2.7": "2376", "tcp://192.0.2.7:4000": "4000"} {
		h, err := parseHost(host, true)
		if err != nil || h.addr != "192.0.2.7:"+port {
			t.Errorf("%s: %v %v", host, h, err)
		}
	}
	plain, err := parseHost("tcp://192.0.2.7", false)
	if err != nil || plain.addr != "192.0.2.7:2375" {
		t.Errorf("plain: %v %v", plain, err)
	}
	p := provider(t)
	got, err := p.probeTargets(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	all := strings.Join(got, " ")
	for _, want := range []string{strings.Replace(p.host.addr, ":", ",", 1), "172.17.0.1,2376"} {
		if !strings.Contains(all, want) {
			t.Errorf("no %s in %s", want, all)
		}
	}
}
