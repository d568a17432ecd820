package principal

import (
	"net"
	"net/http"
	"net/netip"
	"sync"
	"time"
)

// The bounds on guessing: after this many wrong tokens within this time, an
// address is locked out for the rest of it (T46).
const (
	mostFailures  = 10
	failureWindow = 5 * time.Minute
	// mostAddresses bounds the table; when it is full, the address that failed
	// first is forgotten first.
	mostAddresses = 4096
	// mostTrusted bounds how many principals of one address are remembered.
	mostTrusted = 64
)

// lockout counts the wrong tokens of each address. Whoever has shown a right one
// from an address before stays in, whatever others do behind the same address: a
// proxy's or a company's is shared by many.
type lockout struct {
	now func() time.Time

	mu        sync.Mutex
	addresses map[string]*address
}

type address struct {
	began    time.Time // of the window
	failures int
	known    map[string]struct{} // names of principals that have shown a right token
}

func newLockout(now func() time.Time) *lockout {
	return &lockout{now: now, addresses: map[string]*address{}}
}

// locked says for how long an address is locked out still; 0: it is not.
func (l *lockout) locked(at string) time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	a := l.addresses[at]
	if a == nil || a.failures < mostFailures {
		return 0
	}
	return max(0, a.began.Add(failureWindow).Sub(l.now()))
}

// trusts says whether a principal has shown a right token from an address.
func (l *lockout) trusts(at, name string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	a := l.addresses[at]
	if a == nil {
		return false
	}
	_, ok := a.known[name]
	return ok
}

// trusted says whether anybody has shown a right token from an address.
func (l *lockout) trusted(at string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	a := l.addresses[at]
	return a != nil && len(a.known) > 0
}

// failed counts a wrong token; now says that the address is locked out with it.
func (l *lockout) failed(at string) (now bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	a := l.of(at)
	if at := l.now(); at.Sub(a.began) >= failureWindow {
		a.began, a.failures = at, 0
	}
	a.failures++
	return a.failures == mostFailures
}

// succeeded remembers who has shown a right token from where.
func (l *lockout) succeeded(at, name string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	a := l.of(at)
	if len(a.known) >= mostTrusted {
		clear(a.known)
	}
	a.known[name] = struct{}{}
}

// of returns the record of an address, made when there is none. l.mu is held.
func (l *lockout) of(at string) *address {
	if a := l.addresses[at]; a != nil {
		return a
	}
	if len(l.addresses) >= mostAddresses {
		var oldest string
		for other, a := range l.addresses {
			if oldest == "" || a.began.Before(l.addresses[oldest].began) {
				oldest = other
			}
		}
		delete(l.addresses, oldest)
	}
	a := &address{began: l.now(), known: map[string]struct{}{}}
	l.addresses[at] = a
	return a
}

// addressOf is where a request comes from: a host, or the network that one host
// gets to itself with IPv6.
func addressOf(r *http.Request) string {
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		return r.RemoteAddr
	}
	ip, err := netip.ParseAddr(host)
	if err != nil {
		return host
	}
	if ip = ip.Unmap().WithZone(""); ip.Is6() && !ip.IsLoopback() {
		if network, err := ip.Prefix(64); err == nil {
			return network.String()
		}
	}
	return ip.String()
}
