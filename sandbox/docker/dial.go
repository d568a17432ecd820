package docker

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/http"
	"time"

	"github.com/docker/docker/client"
)

const (
	// dialLimit bounds a connection's making, TLS included.
	dialLimit = 10 * time.Second
	// A dead link is known after aliveAfter + aliveProbes*aliveEvery = 20 s;
	// Go's own default takes 150 s.
	aliveAfter  = 5 * time.Second
	aliveEvery  = 5 * time.Second
	aliveProbes = 3
	// ackLimit is how long what was sent may stay unacknowledged, and with it how
	// long probes may stay unanswered: so a dead link is known 20 s after its last
	// sign of life at the latest (attack T66).
	ackLimit = 15 * time.Second
	// mostHeader bounds the header of an answer.
	mostHeader = 1 << 20
	// idleConns is how many connections are kept for the next calls.
	idleConns = 16
	idleAfter = 30 * time.Second
)

// dialer connects to the engine. All of our connections come from here, API
// calls and attached streams alike, so that every one of them honours its
// context and verifies the server in the same way.
type dialer struct {
	host     host
	identity *identity // nil when dialled plain
}

// dial has the signature of http.Transport.DialContext; the address that it is
// given there is a made-up one.
func (d *dialer) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, dialLimit)
	defer cancel()
	nd := &net.Dialer{Control: giveUp, KeepAliveConfig: net.KeepAliveConfig{
		Enable: true, Idle: aliveAfter, Interval: aliveEvery, Count: aliveProbes,
	}}
	if d.identity == nil {
		conn, err := nd.DialContext(ctx, d.host.network, d.host.addr)
		if err != nil {
			return nil, d.failure(ctx, err)
		}
		return conn, nil
	}
	config, err := d.identity.config()
	if err != nil {
		return nil, d.failure(ctx, err)
	}
	td := &tls.Dialer{NetDialer: nd, Config: config}
	conn, err := td.DialContext(ctx, d.host.network, d.host.addr)
	if err != nil {
		return nil, d.failure(ctx, err)
	}
	return conn, nil
}

// newClient makes the engine's client on d. The client reads no environment: no
// DOCKER_* variable and no proxy setting changes where our requests go. The
// caller settles the API's version before the first request. stand is asked before each
// request that changes something.
func newClient(d *dialer, userAgent string, version *apiVersion, stand func(context.Context) error) (*client.Client, error) {
	tr := &http.Transport{}
	requests := &http.Client{Transport: tr, CheckRedirect: client.CheckRedirect}
	addr := d.host.addr
	if d.host.network == "unix" {
		addr = "engine" // never resolved or dialled; a path would make no URL
	}
	c, err := client.NewClientWithOpts(
		client.WithHTTPClient(requests),
		client.WithHost("tcp://"+addr),
		// After WithHost, which sets a dialer of its own. The transport has no
		// TLS configuration: with one, the client would attach through a dial
		// without a context. TLS is the dialer's.
		client.WithDialContext(d.dial),
		client.WithScheme("http"),
		client.WithUserAgent(userAgent),
	)
	if err != nil {
		return nil, badHost("is not usable").Because(err)
	}
	tr.Proxy = nil // WithHost set the environment's
	tr.DisableCompression = true
	tr.MaxResponseHeaderBytes = mostHeader
	tr.MaxIdleConns, tr.MaxIdleConnsPerHost, tr.IdleConnTimeout = idleConns, idleConns, idleAfter
	requests.Transport = fencedTransport{stand, versionedTransport{version, requests.Transport}} // over the client's own
	return c, nil
}

// dialError is a connection that was not made, in words for whoever configured
// the host (CON-7). It has no Timeout method, and its text has none of the
// phrases that the engine's client looks for: where it finds one, it throws the
// cause away.
type dialError struct {
	text string
	err  error
}

func (e *dialError) Error() string { return e.text }
func (e *dialError) Unwrap() error { return e.err }

func (d *dialer) failure(ctx context.Context, err error) error {
	if errors.Is(context.Cause(ctx), context.Canceled) {
		return context.Canceled
	}
	var id *identityError
	if errors.As(err, &id) {
		return &dialError{text: id.text, err: err}
	}
	return &dialError{text: "cannot reach the engine at " + d.host.String() + ": " + failureClass(err), err: err}
}
