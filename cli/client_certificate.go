package cli

import (
	"context"
	"crypto/x509"
	"net/http"
	"slices"
	"sync"
	"time"
)

// The bounds of the answer to a connection that is not taken any more.
const (
	refusalTime = 10 * time.Second       // for its client to read it
	refusalRest = 250 * time.Millisecond // for what the request has sent already
)

// guard judges the client's certificate at each request, where one is asked for: a
// connection is kept for long after the handshake that let it in. Past the certificate's
// end, or once its authority is none of ours any more, a request is refused and its
// connection closed, so that the next handshake judges; like one that fails, it leaves no
// record but a line in the log at debug. What is under way is cut when the authority has
// gone. The chains that next sees are those that stand now.
func (c *certificate) guard(next http.Handler) http.Handler {
	if c == nil || c.clientCA == "" {
		return next
	}
	return http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		state := *r.TLS
		state.VerifiedChains = standing(state.VerifiedChains, c.current().ClientCAs, time.Now())
		if len(state.VerifiedChains) == 0 {
			c.log.Debug("a request was refused: its client certificate has ended or is of no authority of ours any more", "address", r.RemoteAddr)
			ctl := http.NewResponseController(rw)
			_ = ctl.SetReadDeadline(time.Now().Add(refusalRest)) // net/http would wait for its whole body
			_ = ctl.SetWriteDeadline(time.Now().Add(refusalTime))
			rw.Header().Set("Connection", "close")
			http.Error(rw, "the client certificate of this connection has ended, or its authority is not taken any more: connect again with one that is valid", http.StatusForbidden)
			return
		}
		ctx, cancel := context.WithCancel(r.Context())
		r = r.WithContext(ctx)
		r.TLS = &state
		var watch sync.WaitGroup
		defer watch.Wait()
		defer cancel()
		watch.Go(func() {
			defer cancel()
			c.untilFallen(r)
		})
		next.ServeHTTP(rw, r)
	})
}

// untilFallen returns when the request's certificate has no authority of ours any more,
// or the request has ended. That the certificate ends meanwhile is no matter here: a call
// that was begun in time may go on, and streams end with their principal's Until.
func (c *certificate) untilFallen(r *http.Request) {
	ticker := time.NewTicker(certificateEvery)
	defer ticker.Stop()
	for began := time.Now(); len(standing(r.TLS.VerifiedChains, c.current().ClientCAs, began)) > 0; {
		select {
		case <-r.Context().Done():
			return
		case <-ticker.C:
		}
	}
}

// standing are the chains by which a certificate would be verified now, made of those by
// which it was verified in the handshake: as far as they have not ended, to an authority
// of ours. Signatures within them do not change, and are not looked at again.
func standing(chains [][]*x509.Certificate, ours *x509.CertPool, now time.Time) (stand [][]*x509.Certificate) {
	o := x509.VerifyOptions{Roots: ours, CurrentTime: now, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageAny}}
	for _, chain := range chains {
		ended := slices.IndexFunc(chain, func(c *x509.Certificate) bool { return now.Before(c.NotBefore) || now.After(c.NotAfter) })
		if ended >= 0 {
			chain = chain[:ended]
		}
		for i, cert := range slices.Backward(chain) { // the old end is mostly still one of ours, which costs nothing
			if ends, err := cert.Verify(o); err == nil {
				for _, end := range ends {
					stand = append(stand, slices.Concat(chain[:i], end))
				}
				break
			}
		}
	}
	return stand
}
