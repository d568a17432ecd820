package docker

import (
	"context"
	"net/http"
	"strings"
	"sync/atomic"

	"github.com/docker/docker/api"
	"github.com/docker/docker/api/types/versions"

	"caisson/sandbox"
)

// apiVersion is the API's version that the engine and we have settled on. The
// client library settles once and only ever downwards, and must not be told again
// while calls are under way; so what is settled later, with an engine that took the
// place of the first one, is put into the requests that the client makes.
type apiVersion struct {
	client string                 // what the client's requests say
	now    atomic.Pointer[string] // what the engine is told; nil: what the client says
}

// versionedTransport makes requests in the version that was settled last.
type versionedTransport struct {
	version *apiVersion
	next    http.RoundTripper
}

func (t versionedTransport) RoundTrip(req *http.Request) (*http.Response, error) {
	now := t.version.now.Load()
	if now == nil {
		return t.next.RoundTrip(req)
	}
	own := "/v" + t.version.client + "/"
	if rest, ok := strings.CutPrefix(req.URL.Path, own); ok {
		other, u := *req, *req.URL // a RoundTripper leaves its request as it is
		u.Path, u.RawPath = "/v"+*now+"/"+rest, ""
		other.URL = &u
		req = &other
	}
	return t.next.RoundTrip(req)
}

// apiVersion is the version that requests are made in.
func (p *Provider) apiVersion() string {
	if now := p.version.now.Load(); now != nil {
		return *now
	}
	return p.api.ClientVersion()
}

// negotiate settles the API's version. It is called by one goroutine at a time,
// and the first time before any other call.
func (p *Provider) negotiate(ctx context.Context) error {
	const op = "connect to the engine"
	ping, err := p.api.Ping(ctx)
	if err != nil {
		return p.failed(op, err)
	}
	if ping.APIVersion == "" || versions.LessThan(ping.APIVersion, oldestAPI) {
		return sandbox.Errorf(op, sandbox.KindUnavailable,
			"the engine at %s speaks API version %s at most, and this server needs %s (Docker 20.10) or newer", p.host, ping.APIVersion, oldestAPI)
	}
	if p.version.client == "" {
		p.api.NegotiateAPIVersionPing(ping)
		p.version.client = p.api.ClientVersion()
		return nil
	}
	now := ping.APIVersion
	if versions.GreaterThan(now, api.DefaultVersion) {
		now = api.DefaultVersion
	}
	if old := p.apiVersion(); old != now {
		p.log.Warn("the engine was replaced by one of another version", "api", now, "before", old)
		p.version.now.Store(&now)
	}
	// What was seen of it may have been another engine's.
	p.networks.forget()
	return nil
}

// unsettle makes the next call ask for the engine's version again: behind a broken
// connection may be another engine.
func (p *Provider) unsettle() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.connected = false
}
