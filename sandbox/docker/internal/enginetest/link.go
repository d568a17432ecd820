package enginetest

import (
	"net"
	"time"
)

// link is a caller's connection below TLS. While the proxy is frozen nothing gets
// through it, though it stays open: the caller's kernel sees a peer that lives.
type link struct {
	net.Conn
	p *Proxy
}

// Freeze stops every byte, in both directions and of connections made from now on,
// their handshakes included.
func (p *Proxy) Freeze() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.thawed == nil {
		p.thawed = make(chan struct{})
	}
}

// Thaw lets go on what Freeze has stopped; nothing of it is lost.
func (p *Proxy) Thaw() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.thawed != nil {
		close(p.thawed)
		p.thawed = nil
	}
}

// flow waits while the proxy is frozen.
func (p *Proxy) flow() error {
	for {
		p.mu.Lock()
		thawed := p.thawed
		p.mu.Unlock()
		if thawed == nil {
			return nil
		}
		select {
		case <-thawed:
		case <-p.life.Done():
			return net.ErrClosed
		}
	}
}

func (l *link) Read(b []byte) (int, error) {
	n, err := l.Conn.Read(b)
	if frozen := l.p.flow(); frozen != nil {
		return 0, frozen
	}
	return n, err
}

func (l *link) Write(b []byte) (int, error) {
	if err := l.p.flow(); err != nil {
		return 0, err
	}
	return l.Conn.Write(b)
}

// reset ends the connection with an RST.
func (l *link) reset() {
	if tcp, ok := l.Conn.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0)
	}
	_ = l.Conn.Close()
}

// paced writes, and takes time over it as a slow link does.
type paced struct {
	net.Conn
	p    *Proxy
	step int // bytes that are written at once
	rate int // bytes a second; 0: any
	due  time.Time
}

// catchUp is how much a link may be ahead of its rate after it was behind.
const catchUp = 500 * time.Millisecond

func (w *paced) Write(b []byte) (int, error) {
	if w.due.IsZero() {
		w.due = time.Now()
	}
	written := 0
	for len(b) > 0 {
		n, err := w.Conn.Write(b[:min(len(b), w.step)])
		written += n
		if err != nil {
			return written, err
		}
		b = b[n:]
		if w.rate == 0 {
			continue
		}
		// What sleeping too long has lost is made up for, else a busy machine makes every
		// link slower than it is said to be.
		if latest := time.Now().Add(-catchUp); w.due.Before(latest) {
			w.due = latest
		}
		w.due = w.due.Add(time.Duration(n) * time.Second / time.Duration(w.rate))
		if !w.p.wait(time.Until(w.due)) {
			return written, net.ErrClosed
		}
	}
	return written, nil
}

// as is how a fault lets bytes through to a connection.
func (p *Proxy) as(conn net.Conn, f Fault) net.Conn {
	switch {
	case f.Bytes:
		return &paced{Conn: conn, p: p, step: 1, rate: f.Rate}
	case f.Rate > 0:
		return &paced{Conn: conn, p: p, step: 2 << 10, rate: f.Rate}
	}
	return conn
}
