package principal

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"golang.org/x/time/rate"
)

// The bounds on what an issuer is asked for. A token names the key that it is
// signed with, and an unknown one makes us ask for the keys again: whoever sends
// made-up tokens must not have the issuer asked for each.
const (
	issuerTime   = 5 * time.Second
	issuerEvery  = 5 * time.Second // between two questions, once the burst is used up
	issuerBurst  = 5
	mostAnswer   = 1 << 20 // bytes
	firstRetry   = 2 * time.Second
	longestRetry = time.Minute
	issuerSchema = "https://"
)

// algorithms are the signatures that a token may have: those that only the
// issuer can make. None and those with a shared secret are not among them (T46).
func algorithms() []string {
	return []string{
		oidc.RS256, oidc.RS384, oidc.RS512, oidc.ES256, oidc.ES384, oidc.ES512, oidc.PS256, oidc.PS384, oidc.PS512, oidc.EdDSA,
	}
}

// IssuerOptions is what an Issuer is made of.
type IssuerOptions struct {
	URL      string       // https://…, as tokens name it
	Audience string       // that tokens must name
	Client   *http.Client // nil: one of its own; its transport is wrapped
}

// Issuer checks the tokens of an OpenID Connect issuer. It asks the issuer for
// its keys when the first token comes, so that one that is down is no reason not
// to start. It may be used concurrently.
type Issuer struct {
	o      IssuerOptions
	client *http.Client

	mu       sync.Mutex // one discovery at a time
	verifier *oidc.IDTokenVerifier
	retryAt  time.Time
	wait     time.Duration
	err      error
}

// NewIssuer makes an Issuer; it asks nobody yet.
func NewIssuer(o IssuerOptions) *Issuer {
	client := &http.Client{}
	if o.Client != nil {
		*client = *o.Client
	}
	if client.Transport == nil {
		client.Transport = http.DefaultTransport
	}
	client.Transport = &bounded{next: client.Transport, pace: rate.NewLimiter(rate.Every(issuerEvery), issuerBurst)}
	client.Timeout = issuerTime
	client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return &Issuer{o: o, client: client}
}

// errPace is why the issuer is not asked: it has been, only just.
var errPace = errors.New("the issuer was asked only just")

// bounded is a transport that asks at a pace and reads so much and no more.
type bounded struct {
	next http.RoundTripper
	pace *rate.Limiter
}

func (b *bounded) RoundTrip(r *http.Request) (*http.Response, error) {
	if !b.pace.Allow() {
		return nil, errPace
	}
	response, err := b.next.RoundTrip(r)
	if err == nil {
		response.Body = struct {
			io.Reader
			io.Closer
		}{io.LimitReader(response.Body, mostAnswer), response.Body}
	}
	return response, err
}

// subject returns whose a token is and when it ends. The error says what is wrong with it, or is
// unreachable. ctx unblocks it.
func (i *Issuer) subject(ctx context.Context, token string) (name string, until time.Time, err error) {
	verifier, err := i.discover(ctx)
	if err != nil {
		return "", until, err
	}
	look := &lookup{}
	verified, err := verifier.Verify(context.WithValue(ctx, lookupKey{}, look), token)
	switch {
	case look.err != nil && !errors.Is(look.err, errPace):
		return "", until, unreachable{look.err, firstRetry}
	case err != nil:
		return "", until, err
	case verified.Subject == "":
		return "", until, errors.New("the token names no subject")
	}
	return verified.Subject, verified.Expiry, nil
}

// discover finds the issuer's keys, once. After a failure it waits before it
// asks again, longer each time, and says so meanwhile.
func (i *Issuer) discover(ctx context.Context) (*oidc.IDTokenVerifier, error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.verifier != nil {
		return i.verifier, nil
	}
	if left := time.Until(i.retryAt); left > 0 {
		return nil, unreachable{i.err, left}
	}
	// A caller that goes away does not take the answer from those who wait.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), issuerTime)
	defer cancel()
	keys, err := i.keys(oidc.ClientContext(ctx, i.client))
	if err != nil {
		i.wait = min(max(firstRetry, 2*i.wait), longestRetry)
		i.err, i.retryAt = err, time.Now().Add(i.wait)
		return nil, unreachable{err, i.wait}
	}
	i.verifier = oidc.NewVerifier(i.o.URL, keys, &oidc.Config{ClientID: i.o.Audience, SupportedSigningAlgs: algorithms()})
	return i.verifier, nil
}

func (i *Issuer) keys(ctx context.Context) (oidc.KeySet, error) {
	provider, err := oidc.NewProvider(ctx, i.o.URL)
	if err != nil {
		return nil, err
	}
	var found struct {
		Keys string `json:"jwks_uri"`
	}
	if err := provider.Claims(&found); err != nil {
		return nil, err
	}
	if !strings.HasPrefix(found.Keys, issuerSchema) {
		return nil, errors.New("the issuer's keys are not at an https:// address")
	}
	return watchedKeys{oidc.NewRemoteKeySet(ctx, found.Keys)}, nil
}

// close lets go of idle connections.
func (i *Issuer) close() { i.client.CloseIdleConnections() }

// lookup is how the fetch of keys went that a token made necessary: the library
// tells it from a wrong signature by its text alone.
type lookup struct{ err error }

type lookupKey struct{}

type watchedKeys struct{ *oidc.RemoteKeySet }

// VerifySignature verifies as the library does, and notes why keys are missing.
func (k watchedKeys) VerifySignature(ctx context.Context, jwt string) ([]byte, error) {
	payload, err := k.RemoteKeySet.VerifySignature(ctx, jwt)
	if look, ok := ctx.Value(lookupKey{}).(*lookup); ok && err != nil && strings.HasPrefix(err.Error(), "fetching keys ") {
		look.err = err
	}
	return payload, err
}

// unreachable says that a token could not be checked.
type unreachable struct {
	err   error
	after time.Duration
}

func (u unreachable) Error() string { return fmt.Sprintf("the issuer does not answer: %v", u.err) }
func (u unreachable) Unwrap() error { return u.err }
