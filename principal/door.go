package principal

import (
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"
)

const (
	// longestToken is how long an Authorization header may be, in bytes.
	longestToken = 16 << 10
	realm        = `Bearer realm="caisson"`
)

// tokenForm is what a bearer token may be (RFC 6750).
var tokenForm = regexp.MustCompile(`^[A-Za-z0-9._~+/-]+=*$`)

// DoorOptions is what a Door is made of.
type DoorOptions struct {
	Keeper    *Keeper // required
	Issuer    *Issuer // nil: tokens of an issuer are not taken
	PublicURL string  // how clients reach the server, without a path; empty: as each request says
	Log       *slog.Logger
	Now       func() time.Time // nil: the clock
}

// Door tells who makes a request: by its bearer token, one of the file or one of
// the issuer, or by the certificate that its connection was verified with. It
// may be used concurrently.
type Door struct {
	o       DoorOptions
	lockout *lockout
}

// NewDoor makes a Door.
func NewDoor(o DoorOptions) *Door {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	return &Door{o: o, lockout: newLockout(o.Now)}
}

// Close lets go of what the Door holds; it has no goroutines.
func (d *Door) Close() {
	if d.o.Issuer != nil {
		d.o.Issuer.close()
	}
}

// Authenticate returns who makes a request, or a *Refusal. What the principal has shown
// ends with the first of its token and its connection's certificate. It waits for the
// issuer alone, and no longer than a few seconds.
func (d *Door) Authenticate(r *http.Request) (Principal, error) {
	if hasQuery(r) {
		return Principal{}, &Refusal{Status: http.StatusBadRequest, Challenge: d.challenge(r, "invalid_request"), Text: "no parameter is taken in this address: credentials do not belong there, where logs keep them. Send them as Authorization: Bearer"}
	}
	ends, ok := certificateEnd(r)
	if ok && !d.o.Now().Before(ends) {
		return Principal{}, &Refusal{Status: http.StatusForbidden, Text: "the client certificate has ended"}
	}
	p, err := d.caller(r)
	switch {
	case err != nil:
		return Principal{}, err
	case ok && (p.Until.IsZero() || ends.Before(p.Until)):
		p = p.until(ends)
	}
	return *p, nil
}

// caller is who makes a request, by what it shows; its Until is that of its token.
func (d *Door) caller(r *http.Request) (*Principal, error) {
	byCertificate, shown := d.certificate(r)
	headers := r.Header.Values("Authorization")
	if len(headers) == 0 {
		switch {
		case byCertificate != nil:
			return byCertificate, nil
		case shown:
			return nil, &Refusal{Status: http.StatusForbidden, Text: "the client certificate is no principal's"}
		}
		return nil, &Refusal{Status: http.StatusUnauthorized, Challenge: d.challenge(r, ""), Text: "who calls? Send Authorization: Bearer with a token"}
	}
	token, ok := bearer(headers)
	if !ok {
		return nil, d.failed(r, "invalid_request", "one Authorization header is taken, with Bearer and a token", nil)
	}
	p, err := d.byToken(r, token)
	switch {
	case err != nil:
		return nil, err
	case byCertificate != nil && byCertificate.Name != p.Name:
		return nil, &Refusal{Status: http.StatusForbidden, Text: "the token and the client certificate are of different principals"}
	}
	return p, nil
}

// byToken finds a token's principal. A locked-out address is told so whether its
// token is right or not, unless that principal was there before.
func (d *Door) byToken(r *http.Request, token string) (*Principal, error) {
	at := addressOf(r)
	left := d.lockout.locked(at)
	book := d.o.Keeper.Book()
	p := book.byToken(token)
	if p == nil && d.o.Issuer != nil && strings.Count(token, ".") == 2 && (left == 0 || d.lockout.trusted(at)) {
		subject, until, err := d.o.Issuer.subject(r.Context(), token)
		var away unreachable
		switch {
		case errors.As(err, &away):
			return nil, &Refusal{Status: http.StatusServiceUnavailable, Text: "the token cannot be checked: its issuer does not answer", RetryAfter: away.after, Err: err}
		case err != nil:
			return nil, d.failed(r, "invalid_token", "the token is not valid here: its issuer, audience, time or signature is wrong", err)
		}
		if p = book.bySubject(subject).until(until); p == nil {
			return nil, &Refusal{Status: http.StatusForbidden, Challenge: d.challenge(r, "insufficient_scope"), Text: "the token is valid, and its subject is no principal's"}
		}
	}
	switch {
	case left > 0 && (p == nil || !d.lockout.trusts(at, p.Name)):
		return nil, &Refusal{Status: http.StatusTooManyRequests, Text: "too many wrong tokens came from this address", RetryAfter: left}
	case p == nil:
		return nil, d.failed(r, "invalid_token", "the token is nobody's", nil)
	}
	d.lockout.succeeded(at, p.Name)
	return p, nil
}

// failed counts a wrong token and says so.
func (d *Door) failed(r *http.Request, code, text string, err error) *Refusal {
	at := addressOf(r)
	if left := d.lockout.locked(at); left > 0 {
		return &Refusal{Status: http.StatusTooManyRequests, Text: "too many wrong tokens came from this address", RetryAfter: left, Err: err}
	}
	if d.lockout.failed(at) {
		d.o.Log.Warn("an address is locked out for wrong tokens", "address", at, "for", failureWindow)
	}
	return &Refusal{Status: http.StatusUnauthorized, Challenge: d.challenge(r, code), Text: text, Err: err}
}

// certificate finds the principal of a verified client certificate; shown says
// that there was one.
func (d *Door) certificate(r *http.Request) (p *Principal, shown bool) {
	if r.TLS == nil || len(r.TLS.VerifiedChains) == 0 || len(r.TLS.VerifiedChains[0]) == 0 {
		return nil, false
	}
	return d.o.Keeper.Book().byCertificate(r.TLS.VerifiedChains[0][0].Subject.CommonName), true
}

// certificateEnd is when the client certificate ends that a connection was verified
// with: its best chain, which ends with the first certificate in it that does. ok says
// that there is one.
func certificateEnd(r *http.Request) (end time.Time, ok bool) {
	if r.TLS == nil {
		return end, false
	}
	for _, chain := range r.TLS.VerifiedChains {
		if len(chain) == 0 {
			continue
		}
		first := slices.MinFunc(chain, func(a, b *x509.Certificate) int { return a.NotAfter.Compare(b.NotAfter) }).NotAfter
		if !ok || first.After(end) {
			end, ok = first, true
		}
	}
	return end, ok
}

// bearer reads the token of the only Authorization header that there may be.
func bearer(headers []string) (string, bool) {
	if len(headers) != 1 || len(headers[0]) > longestToken {
		return "", false
	}
	scheme, token, found := strings.Cut(strings.TrimSpace(headers[0]), " ")
	token = strings.TrimSpace(token)
	return token, found && strings.EqualFold(scheme, "Bearer") && tokenForm.MatchString(token)
}

// leastToken is how long a token must be that is not guessed: 128 random bits in
// base64 have 22 characters.
const leastToken = 22

// CheckToken refuses a token that could not be sent, or that somebody could
// guess.
func CheckToken(token string) error {
	switch {
	case len(token) < leastToken:
		return fmt.Errorf("a token has at least %d characters, at random", leastToken)
	case len(token)+len("Bearer ") > longestToken || !tokenForm.MatchString(token):
		return errors.New("a token is letters, digits and - . _ ~ + /, perhaps with = at its end")
	}
	return nil
}

// hasQuery says whether an address has a parameter beside the one that an SSE client's
// has. Any other could be a credential under a name of its sender's.
func hasQuery(r *http.Request) bool {
	values, err := url.ParseQuery(r.URL.RawQuery)
	if r.URL.Path == "/message" {
		delete(values, "sessionId")
	}
	return err != nil || len(values) > 0
}

// challenge is the WWW-Authenticate of a refusal.
func (d *Door) challenge(r *http.Request, code string) string {
	text := realm
	if code != "" {
		text += `, error="` + code + `"`
	}
	if d.o.Issuer != nil {
		text += `, resource_metadata="` + d.base(r) + metadataPath + resource(r.URL.Path) + `"`
	}
	return text
}
