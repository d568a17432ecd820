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
	// mostAddresses bounds each of the two tables; when one is full, the address whose
	// window began first, or that was used least recently, is forgotten.
	mostAddresses = 4096
)

// lockout counts the wrong tokens of each address. Whoever has shown a right one
// from an address before stays in, whatever others do behind the same address: a
// proxy's or a company's is shared by many. The tables are two so that wrong tokens,
// from however many addresses, make nobody forgotten who has shown a right one. It
// may be used concurrently.
type lockout struct {
	now func() time.Time

	mu      sync.Mutex
	guesses map[string]*guesses
	friends map[string]*friends
}

// guesses are the wrong tokens of one address.
type guesses struct {
	began    time.Time // of the window
	failures int
}

// friends are those who have shown a right token from one address. Their names are the
// operator's, so there are no more of them than the file of principals has had.
type friends struct {
	last  time.Time // that one of them came
	names map[string]struct{}
}

func newLockout(now func() time.Time) *lockout {
	return &lockout{now: now, guesses: map[string]*guesses{}, friends: map[string]*friends{}}
}

// locked says for how long an address is locked out still; 0: it is not.
func (l *lockout) locked(at string) time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	g := l.guesses[at]
	if g == nil || g.failures < mostFailures {
		return 0
	}
	return max(0, g.began.Add(failureWindow).Sub(l.now()))
}

// trusts says whether a principal has shown a right token from an address.
func (l *lockout) trusts(at, name string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	f := l.friends[at]
	if f == nil {
		return false
	}
	_, ok := f.names[name]
	return ok
}

// trusted says whether anybody has shown a right token from an address.
func (l *lockout) trusted(at string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.friends[at] != nil
}

// failed counts a wrong token; now says that the address is locked out with it.
func (l *lockout) failed(at string) (now bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	g := l.guesses[at]
	if g == nil {
		makeRoom(l.guesses, func(g *guesses) time.Time { return g.began })
		g = &guesses{}
		l.guesses[at] = g
	}
	if at := l.now(); at.Sub(g.began) >= failureWindow {
		g.began, g.failures = at, 0
	}
	g.failures++
	return g.failures == mostFailures
}

// succeeded remembers who has shown a right token from where.
func (l *lockout) succeeded(at, name string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	f := l.friends[at]
	if f == nil {
		makeRoom(l.friends, func(f *friends) time.Time { return f.last })
		f = &friends{names: map[string]struct{}{}}
		l.friends[at] = f
	}
	f.last, f.names[name] = l.now(), struct{}{}
}

// makeRoom takes the oldest address out of a full table.
func makeRoom[T any](table map[string]T, age func(T) time.Time) {
	if len(table) < mostAddresses {
		return
	}
	var oldest string
	for at, v := range table {
		if oldest == "" || age(v).Before(age(table[oldest])) {
			oldest = at
		}
	}
	delete(table, oldest)
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
