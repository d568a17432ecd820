package mcp

import (
	"maps"
	"slices"
	"sync"

	"caisson/sandbox"
)

// Bounds of what one client may watch.
const (
	maxWatched  = 100
	maxWatchURI = 4096
)

// watched are the addresses that a client has subscribed to.
type watched struct {
	mu   sync.Mutex
	uris map[string]string // to the session that each is in; empty: in none
}

func (w *watched) add(uri string) error {
	session, _, err := parseResource(uri)
	if err != nil {
		session = "" // it can come to be by no call, and is never told of
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case len(uri) > maxWatchURI:
		return sandbox.Invalid("uri", "the address is longer than %d bytes", maxWatchURI)
	case len(w.uris) >= maxWatched:
		return sandbox.Errorf("subscribe", sandbox.KindLimit, "%d resources are watched, the most that may be; unsubscribe from one", maxWatched)
	case w.uris == nil:
		w.uris = map[string]string{}
	}
	w.uris[uri] = session
	return nil
}

func (w *watched) remove(uri string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.uris, uri)
}

func (w *watched) all() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Sorted(maps.Keys(w.uris))
}

// of lists the addresses in a session.
func (w *watched) of(session string) []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	var uris []string
	for uri, in := range w.uris {
		if in == session {
			uris = append(uris, uri)
		}
	}
	return uris
}

// subscriptions are those that an exchange works on: a subscription of the
// stateless protocol has its own, every other request its client's.
func (x *exchange) subscriptions() *watched {
	if x.tag != nil {
		return &x.own
	}
	return &x.watched
}

// SubscribeToResourceErr subscribes the client to a resource. Whether it is there,
// and whose it is, makes no difference to the answer: nobody learns of a handle by
// asking (T47). Only its owner is ever told of a change.
func (x *exchange) SubscribeToResourceErr(uri string) error { return x.subscriptions().add(uri) }

// SubscribeToResource does the same, and drops what is too much.
func (x *exchange) SubscribeToResource(uri string) { _ = x.SubscribeToResourceErr(uri) }

// UnsubscribeFromResource ends a subscription.
func (x *exchange) UnsubscribeFromResource(uri string) { x.subscriptions().remove(uri) }

// SubscribedResources lists the subscriptions.
func (x *exchange) SubscribedResources() []string { return x.subscriptions().all() }

// IsSubscribedToResource says whether there is one for a resource.
func (x *exchange) IsSubscribedToResource(uri string) bool {
	return slices.Contains(x.subscriptions().all(), uri)
}
