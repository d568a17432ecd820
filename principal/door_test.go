package principal_test

import (
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"log/slog"
	"math"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"caisson/principal"
)

func refused(t *testing.T, d *principal.Door, r *http.Request) *principal.Refusal {
	t.Helper()
	p, err := d.Authenticate(r)
	var refusal *principal.Refusal
	if !errors.As(err, &refusal) {
		t.Fatalf("%s %v: %q, %v", r.URL, r.Header, p.Name, err)
	}
	return refusal
}

func TestAttackT46_TokensOfEveryKind(t *testing.T) {
	k, _, log := kept(t, twoOf())
	for _, good := range []string{"Bearer " + tokenA, "bearer " + tokenA, "BEARER   " + tokenA + " "} {
		if p, err := principal.NewDoor(principal.DoorOptions{Keeper: k}).Authenticate(request(t, "/mcp", good)); err != nil || p.Name != "a" {
			t.Errorf("%q: %q %v", good, p.Name, err)
		}
	}
	for _, row := range []struct {
		name          string
		target        string
		authorization []string
		status        int
	}{
		{"none", "/mcp", nil, 401},
		{"empty", "/mcp", []string{""}, 401},
		{"scheme alone", "/mcp", []string{"Bearer"}, 401},
		{"no token", "/mcp", []string{"Bearer "}, 401},
		{"no scheme", "/mcp", []string{tokenA}, 401},
		{"another scheme", "/mcp", []string{"Basic " + tokenA}, 401},
		{"two headers", "/mcp", []string{"Bearer " + tokenA, "Bearer " + tokenA}, 401},
		{"two tokens", "/mcp", []string{"Bearer " + tokenA + " " + tokenB}, 401},
		{"two in one", "/mcp", []string{"Bearer " + tokenA + "," + tokenB}, 401},
		{"cut", "/mcp", []string{"Bearer " + tokenA[:len(tokenA)-1]}, 401},
		{"longer", "/mcp", []string{"Bearer " + tokenA + "0"}, 401},
		{"other case", "/mcp", []string{"Bearer " + strings.ToUpper(tokenA)}, 401},
		{"its hash", "/mcp", []string{"Bearer " + hashOf(tokenA)}, 401},
		{"NUL", "/mcp", []string{"Bearer " + tokenA + "\x00"}, 401},
		{"1 MiB", "/mcp", []string{"Bearer " + strings.Repeat("a", 1<<20)}, 401},
		{"no algorithm", "/mcp", []string{"Bearer eyJhbGciOiJub25lIn0.e30."}, 401},
		{"in the address", "/mcp?access_token=" + tokenA, nil, 400},
		{"in the address under another name", "/mcp?key=" + tokenA, []string{"Bearer " + tokenA}, 400},
		{"in a session's place", "/mcp?sessionId=" + tokenA, []string{"Bearer " + tokenA}, 400},
		{"beside the session", "/message?sessionId=x&k=" + tokenA, []string{"Bearer " + tokenA}, 400},
		{"in a broken query", "/mcp?a;" + tokenA, []string{"Bearer " + tokenA}, 400},
		{"in the address too", "/mcp?Api-Key=" + tokenA, []string{"Bearer " + tokenA}, 400},
	} {
		d := principal.NewDoor(principal.DoorOptions{Keeper: k, Log: slog.New(slog.NewTextHandler(log, nil))})
		r := refused(t, d, request(t, row.target, row.authorization...))
		if r.Status != row.status || !strings.HasPrefix(r.Challenge, "Bearer realm=") || strings.Contains(r.Challenge, "resource_metadata") {
			t.Errorf("%s: %+v", row.name, r)
		}
		secretless(t, r.Error()+r.Challenge+log.String(), tokenA, tokenB, hashOf(tokenA))
	}
}

// Ten wrong tokens lock an address out; who has been in from there stays in.
func TestAttackT46_GuessingIsLockedOut(t *testing.T) {
	k, _, log := kept(t, twoOf())
	now := time.Now()
	d := principal.NewDoor(principal.DoorOptions{Keeper: k, Now: func() time.Time { return now }, Log: slog.New(slog.NewTextHandler(log, nil))})
	in := func(token string) *principal.Refusal {
		var refusal *principal.Refusal
		_, err := d.Authenticate(request(t, "/mcp", "Bearer "+token))
		_ = errors.As(err, &refusal)
		return refusal
	}
	if r := in(tokenA); r != nil {
		t.Fatal(r)
	}
	for i := range 10 {
		if r := in("wrong"); r == nil || r.Status != 401 {
			t.Errorf("%d: %v", i, r)
		}
	}
	for _, token := range []string{"wrong", tokenB, ""} { // b has not been here: its token is not even said to be right
		if r := in(token); r == nil || r.Status != 429 || r.RetryAfter <= 0 || r.RetryAfter > 5*time.Minute {
			t.Errorf("%q: %+v", token, r)
		}
	}
	if r := in(tokenA); r != nil {
		t.Errorf("a was here before: %v", r)
	}
	other := request(t, "/mcp", "Bearer "+tokenB)
	other.RemoteAddr = "192.0.2.2:1"
	if _, err := d.Authenticate(other); err != nil {
		t.Errorf("another address: %v", err)
	}
	if strings.Count(log.String(), "locked out") != 1 {
		t.Error(log)
	}
	now = now.Add(5*time.Minute + time.Second)
	if r := in(tokenB); r != nil {
		t.Errorf("after the time: %v", r)
	}
	// Hosts of one IPv6 network are one guesser, and the table is bounded.
	for i := range 11 {
		r := request(t, "/mcp", "Bearer wrong")
		r.RemoteAddr = "[2001:db8::" + string(rune('1'+i%9)) + "]:1"
		if got := refused(t, d, r).Status; got != 401 && i < 10 || got != 429 && i == 10 {
			t.Errorf("%d: %d", i, got)
		}
	}
}

// The time of a refusal does not tell a token that shares a beginning with a
// right one's from another: what is compared are digests, all of them.
func TestAttackT46_TheTimeOfARefusalTellsNothing(t *testing.T) {
	k, _, _ := kept(t, twoOf())
	near, far := tokenA[:len(tokenA)-1]+"X", strings.Repeat("z", len(tokenA))
	var at [2][]float64
	for i := range 20_000 {
		for which, token := range []string{near, far} {
			began := time.Now()
			if k.Book().HasToken(token) {
				t.Fatal("a wrong token is taken")
			}
			if i >= 1000 {
				at[which] = append(at[which], float64(time.Since(began)))
			}
		}
	}
	for i := range at {
		slices.Sort(at[i])
		at[i] = at[i][:len(at[i])*9/10] // without the scheduler's moments
	}
	mean := func(x []float64) (m, v float64) {
		for _, y := range x {
			m += y / float64(len(x))
		}
		for _, y := range x {
			v += (y - m) * (y - m) / float64(len(x)-1)
		}
		return m, v
	}
	m1, v1 := mean(at[0])
	m2, v2 := mean(at[1])
	// Welch's t grows with any difference, however small: a difference that could
	// be of use would be a large part of the time itself.
	welch := (m1 - m2) / math.Sqrt(v1/float64(len(at[0]))+v2/float64(len(at[1])))
	if math.Abs(welch) > 4.5 && math.Abs(m1-m2) > 0.2*max(m1, m2) {
		t.Errorf("%.0f ns and %.0f ns, t = %.1f", m1, m2, welch)
	}
}

func TestClientCertificatesAreAThirdWay(t *testing.T) {
	k, _, _ := kept(t, twoOf())
	d := principal.NewDoor(principal.DoorOptions{Keeper: k})
	with := func(cn string, authorization ...string) *http.Request {
		r := request(t, "/mcp", authorization...)
		cert := &x509.Certificate{Subject: pkix.Name{CommonName: cn}, NotAfter: time.Now().Add(time.Hour)}
		r.TLS = &tls.ConnectionState{PeerCertificates: []*x509.Certificate{cert}, VerifiedChains: [][]*x509.Certificate{{cert}}}
		return r
	}
	if p, err := d.Authenticate(with("cn-b")); err != nil || p.Name != "b" {
		t.Errorf("%q %v", p.Name, err)
	}
	if p, err := d.Authenticate(with("cn-b", "Bearer "+tokenB)); err != nil || p.Name != "b" {
		t.Errorf("with a token too: %q %v", p.Name, err)
	}
	if p, err := d.Authenticate(with("nobody", "Bearer "+tokenA)); err != nil || p.Name != "a" {
		t.Errorf("the token counts: %q %v", p.Name, err)
	}
	for _, r := range []*http.Request{with("nobody"), with(""), with("cn-b", "Bearer "+tokenA)} {
		if got := refused(t, d, r); got.Status != http.StatusForbidden {
			t.Errorf("%+v", got)
		}
	}
	unverified := with("cn-b")
	unverified.TLS.VerifiedChains = nil
	if got := refused(t, d, unverified); got.Status != http.StatusUnauthorized {
		t.Errorf("a certificate that nobody verified: %+v", got)
	}
}

// What a certificate has shown ends with it, and with whatever signed it, also where a
// token says who it is.
func TestAttackT46_ACertificateIsNoneAfterItsEnd(t *testing.T) {
	k, _, _ := kept(t, twoOf())
	now := time.Now()
	d := principal.NewDoor(principal.DoorOptions{Keeper: k, Now: func() time.Time { return now }})
	chain := func(hours ...int) (chain []*x509.Certificate) {
		for _, h := range hours {
			chain = append(chain, &x509.Certificate{Subject: pkix.Name{CommonName: "cn-b"}, NotAfter: now.Add(time.Duration(h) * time.Hour)})
		}
		return chain
	}
	for _, row := range []struct {
		name   string
		chains [][]*x509.Certificate
		hours  int
	}{
		{"the leaf first", [][]*x509.Certificate{chain(2, 5, 9)}, 2},
		{"an authority first", [][]*x509.Certificate{chain(5, 2, 9)}, 2},
		{"the best of several", [][]*x509.Certificate{chain(5, 2, 9), chain(5, 9), chain(5, 1)}, 5},
	} {
		began := now
		for _, authorization := range [][]string{nil, {"Bearer " + tokenB}} {
			now = began
			r := request(t, "/mcp", authorization...)
			r.TLS = &tls.ConnectionState{VerifiedChains: row.chains}
			end := began.Add(time.Duration(row.hours) * time.Hour)
			if p, err := d.Authenticate(r); err != nil || p.Name != "b" || !p.Until.Equal(end) {
				t.Errorf("%s %v: %q until %v, %v", row.name, authorization, p.Name, p.Until, err)
			}
			now = end.Add(-time.Second)
			if _, err := d.Authenticate(r); err != nil {
				t.Errorf("%s %v: before its end: %v", row.name, authorization, err)
			}
			now = end
			if got := refused(t, d, r); got.Status != http.StatusForbidden || !strings.Contains(got.Text, "ended") {
				t.Errorf("%s %v: %+v", row.name, authorization, got)
			}
		}
		now = began
	}
	if p, err := d.Authenticate(request(t, "/mcp", "Bearer "+tokenB)); err != nil || !p.Until.IsZero() {
		t.Errorf("without one: until %v, %v", p.Until, err)
	}
}
