package enginetest

import (
	"bufio"
	"bytes"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"sync"
	"time"
)

// forward passes a call on and its answer back; false ends the connection.
func (p *Proxy) forward(conn *tls.Conn, reader *bufio.Reader, req *http.Request, f Fault, call *Call) bool {
	engine, err := p.dial()
	if err != nil {
		return false
	}
	defer p.keep(engine)()
	if f.Rate > 0 || f.Pause != nil {
		takeLittle(engine)
	}
	req.URL.Scheme, req.URL.Host = "http", "engine"
	if req.Write(p.as(engine, Fault{Rate: f.Rate})) != nil {
		return false
	}
	from := bufio.NewReader(engine)
	watched := p.watch(conn, reader, engine)
	resp, err := http.ReadResponse(from, req) //nolint:bodyclose // resp.Write reads it to its end, and the connection is closed behind it
	if gone := watched(); gone || err != nil {
		return false
	}
	p.mu.Lock()
	call.Status = resp.StatusCode
	p.mu.Unlock()
	if f.Swallow {
		return false
	}
	to := p.as(conn, f)
	if resp.StatusCode == http.StatusSwitchingProtocols {
		if resp.Write(to) == nil {
			p.attach(conn, to, reader, engine, from, f)
		}
		return false
	}
	if f.Truncate > 0 || f.CutAt > 0 {
		return p.short(to, resp, f)
	}
	// The caller may go away in the midst of a long answer.
	watched = p.watch(conn, reader, engine)
	err = resp.Write(to)
	return !watched() && err == nil
}

// keep notes a connection to the engine; what it returns ends it.
func (p *Proxy) keep(engine net.Conn) func() {
	p.mu.Lock()
	p.behind[engine] = true
	closing := p.life.Err() != nil
	p.mu.Unlock()
	if closing {
		_ = engine.Close()
	}
	return func() {
		p.mu.Lock()
		delete(p.behind, engine)
		p.mu.Unlock()
		_ = engine.Close()
	}
}

// watch hangs up on the engine when the caller does, as a link without a proxy would.
// What it returns ends the watch and says whether the caller is gone.
func (p *Proxy) watch(conn *tls.Conn, reader *bufio.Reader, engine net.Conn) func() bool {
	done := make(chan bool, 1)
	p.work.Go(func() {
		_, err := reader.Peek(1) // a caller that waits for an answer sends nothing
		gone := err != nil && !errors.Is(err, os.ErrDeadlineExceeded)
		if gone {
			_ = engine.Close()
		}
		done <- gone
	})
	return func() bool {
		_ = conn.SetReadDeadline(time.Unix(1, 0))
		gone := <-done
		_ = conn.SetReadDeadline(time.Time{})
		return gone
	}
}

// short passes on the beginning of an answer, either as if that were all or with the
// connection's end in its midst.
func (p *Proxy) short(to net.Conn, resp *http.Response, f Fault) bool {
	body, err := io.ReadAll(io.LimitReader(resp.Body, int64(max(f.Truncate, f.CutAt))+1))
	if err != nil {
		return false
	}
	cut := f.CutAt > 0 && len(body) > f.CutAt
	if n := max(f.Truncate, f.CutAt); len(body) > n {
		body = body[:n]
	}
	resp.TransferEncoding, resp.ContentLength = nil, int64(len(body))
	if cut {
		resp.ContentLength++ // never comes
	}
	resp.Body = io.NopCloser(bytes.NewReader(body))
	return resp.Write(to) == nil && !cut
}

// attach joins two connections until the engine's side ends.
func (p *Proxy) attach(conn, to net.Conn, reader io.Reader, engine net.Conn, from io.Reader, f Fault) {
	var input sync.WaitGroup
	input.Go(func() {
		_, _ = io.Copy(p.as(engine, Fault{Rate: f.Rate}), reader)
		if half, ok := engine.(interface{ CloseWrite() error }); ok {
			_ = half.CloseWrite()
		}
	})
	if f.Pause != nil {
		select {
		case <-f.Pause:
		case <-p.life.Done():
		}
	}
	if f.CutAt > 0 {
		_, _ = io.CopyN(to, from, int64(f.CutAt))
	} else if p.wait(f.Stall) {
		// A small buffer: what is taken from the engine at once is what its pace is.
		_, _ = io.CopyBuffer(struct{ io.Writer }{to}, struct{ io.Reader }{from}, make([]byte, p.chunk(f)))
	}
	_ = conn.Close()
	_ = engine.Close()
	input.Wait()
}

func (p *Proxy) chunk(f Fault) int {
	if f.Rate > 0 {
		return 2 << 10
	}
	return 32 << 10
}

// takeLittle makes the kernel take in little ahead of us: else it would take at once
// what is to come slowly.
func takeLittle(conn net.Conn) {
	if over, ok := conn.(*tls.Conn); ok {
		conn = over.NetConn()
	}
	if tcp, ok := conn.(*net.TCPConn); ok {
		_ = tcp.SetReadBuffer(8 << 10)
	}
}
