package docker

import (
	"context"
	"net/http"
	"sync"
	"time"

	"caisson/sandbox"
)

// fence keeps a server that has lost its lease from changing anything on the engine (D14,
// T71). One that stood still (a suspended machine, a stopped process) goes on in the midst
// of what it was doing, and knows of nothing that has happened since: so each request that
// changes something looks at the lease first, and renews it where it has run out. A
// provider that has taken no lease has no fence.
type fence struct {
	turn chan struct{} // one token: two renewals of a lease that was removed would outrank each other

	mu       sync.Mutex
	held     sandbox.Lease // zero: none
	length   time.Duration
	until    time.Time                // by this machine's clock, before the engine's end of it
	lost     bool                     // another server has taken it
	replaced map[string]sandbox.Lease // what was made in the place of ours that were removed, by their Ref
}

// hold notes a lease that was taken or renewed by a request that began then. One of no
// length is on its way out: what follows it is the end of this server's work.
func (f *fence) hold(l sandbox.Lease, length time.Duration, began time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if length <= 0 {
		f.held = sandbox.Lease{}
		return
	}
	f.held, f.length, f.until, f.lost = l, length, began.Add(length), false
}

// drop forgets a lease that was given back.
func (f *fence) drop(l sandbox.Lease) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.held.Ref == l.Ref {
		f.held = sandbox.Lease{}
	}
}

// lose notes that another server has taken the lease.
func (f *fence) lose(l sandbox.Lease) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.lost = f.lost || f.held.Ref == l.Ref
}

// replace notes that a lease of ours was removed and made again.
func (f *fence) replace(old, l sandbox.Lease) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.replaced == nil {
		f.replaced = map[string]sandbox.Lease{}
	}
	f.replaced[old.Ref] = l
}

// newest is the lease that has taken the place of one that this server holds.
func (f *fence) newest(held sandbox.Lease) sandbox.Lease {
	f.mu.Lock()
	defer f.mu.Unlock()
	for {
		next, ok := f.replaced[held.Ref]
		if !ok {
			return held
		}
		held = next
	}
}

// state is the lease, and whether it may have run out. The wall clock counts too: the
// other one stands still while a machine is suspended.
func (f *fence) state() (held sandbox.Lease, length time.Duration, stale, lost bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	now := time.Now()
	stale = f.held.Epoch != 0 && (now.After(f.until) || now.Round(0).After(f.until.Round(0)))
	return f.held, f.length, stale, f.lost
}

type leaseWork struct{}

// ofLease marks the requests by which a lease itself is kept: they pass the fence.
func ofLease(ctx context.Context) context.Context { return context.WithValue(ctx, leaseWork{}, true) }

// stand returns once this server holds its lease, or why it does not. ctx bounds it.
func (p *Provider) stand(ctx context.Context) error {
	for tried := false; ; tried = true {
		held, length, stale, lost := p.fence.state()
		switch {
		case lost:
			return fenced(held.Instance)
		case !stale || tried:
			return nil
		}
		if err := p.renewStale(ctx, held, length); err != nil {
			return err
		}
	}
}

func (p *Provider) renewStale(ctx context.Context, held sandbox.Lease, length time.Duration) error {
	_, err := p.renew(ctx, held, length, func() bool {
		_, _, stale, lost := p.fence.state()
		return stale && !lost // else somebody else has just done it
	})
	return err
}

// enter waits for the turn to renew, or for ctx: a stop has less time than a renewal that
// the engine does not answer.
func (f *fence) enter(ctx context.Context) error {
	select {
	case f.turn <- struct{}{}:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (f *fence) leave() { <-f.turn }

// fencedTransport holds what changes the engine back until this server's lease stands.
type fencedTransport struct {
	stand func(context.Context) error
	next  http.RoundTripper
}

func (t fencedTransport) RoundTrip(req *http.Request) (*http.Response, error) {
	reads := req.Method == http.MethodGet || req.Method == http.MethodHead
	if ctx := req.Context(); !reads && ctx.Value(leaseWork{}) == nil {
		if err := t.stand(ctx); err != nil {
			if req.Body != nil {
				_ = req.Body.Close() // a RoundTripper closes it whatever happens
			}
			return nil, err
		}
	}
	return t.next.RoundTrip(req)
}
