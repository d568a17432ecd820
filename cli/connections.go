package cli

import (
	"net"
	"net/netip"
	"sync"
)

// connections is a listener that bounds how many connections there are, of one
// address and of all. One too many is closed at once: a queue would be filled by
// whoever opens the most (T53).
type connections struct {
	net.Listener
	most, mostOfOne int

	mu  sync.Mutex
	all int
	of  map[string]int
}

func newConnections(l net.Listener, most, mostOfOne int) *connections {
	return &connections{Listener: l, most: most, mostOfOne: mostOfOne, of: map[string]int{}}
}

// Accept returns the next connection that there is room for.
func (c *connections) Accept() (net.Conn, error) {
	for {
		conn, err := c.Listener.Accept()
		if err != nil {
			return nil, err
		}
		from := hostOf(conn.RemoteAddr())
		if c.enter(from) {
			return &counted{Conn: conn, leave: sync.OnceFunc(func() { c.leave(from) })}, nil
		}
		if tcp, ok := conn.(*net.TCPConn); ok {
			_ = tcp.SetLinger(0) // nothing is left of it in the kernel either
		}
		_ = conn.Close()
	}
}

func (c *connections) enter(from string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.all >= c.most || c.of[from] >= c.mostOfOne {
		return false
	}
	c.all++
	c.of[from]++
	return true
}

func (c *connections) leave(from string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.all--
	if c.of[from]--; c.of[from] == 0 {
		delete(c.of, from)
	}
}

// counted is a connection that is counted until it is closed.
type counted struct {
	net.Conn
	leave func()
}

// Close closes the connection.
func (c *counted) Close() error {
	defer c.leave()
	return c.Conn.Close()
}

// hostOf is who an address belongs to: one IPv4 host, or the network that one
// host gets to itself with IPv6.
func hostOf(addr net.Addr) string {
	at, err := netip.ParseAddrPort(addr.String())
	if err != nil {
		return addr.String()
	}
	ip := at.Addr().Unmap().WithZone("")
	if ip.Is6() && !ip.IsLoopback() {
		if network, err := ip.Prefix(64); err == nil {
			return network.String()
		}
	}
	return ip.String()
}
