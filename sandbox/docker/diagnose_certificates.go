package docker

import (
	"context"
	"crypto/tls"
	"time"
)

// renewSoon is how long before its end a certificate is worth a warning.
const renewSoon = 14 * 24 * time.Hour

// checkCertificates tells until when each side's certificate is valid: ours, the
// engine's and that of the authority that signed it. It is for after a first
// connection, which has read our files.
func (p *Provider) checkCertificates(ctx context.Context) []Check {
	var checks []Check
	if p.dialer.identity != nil {
		if until, ok := p.dialer.identity.expiry(); ok {
			checks = append(checks, validUntil("client certificate", until, "renew it; a new one is read without a restart"))
		}
	}
	conn, err := p.dialer.dial(ctx, "", "")
	if err != nil {
		return append(checks, failedCheck("engine's certificate", p.failed("connect", err), "see that the engine runs"))
	}
	defer func() { _ = conn.Close() }()
	secure, ok := conn.(*tls.Conn)
	if !ok {
		return checks // a socket, or plain: nobody shows a certificate
	}
	state := secure.ConnectionState()
	if n := len(state.PeerCertificates); n > 0 {
		checks = append(checks, validUntil("engine's certificate", state.PeerCertificates[0].NotAfter, "renew it on the engine's host"))
	}
	if n := len(state.VerifiedChains); n > 0 {
		chain := state.VerifiedChains[0]
		checks = append(checks, validUntil("authority's certificate", chain[len(chain)-1].NotAfter, "renew the CA, and with it both certificates"))
	}
	return checks
}

func validUntil(name string, until time.Time, mend string) Check {
	c := Check{Name: name, OK: time.Now().Before(until), Detail: "valid until " + day(until)}
	if time.Until(until) < renewSoon {
		c.Warn, c.Mend = true, mend
	}
	return c
}
