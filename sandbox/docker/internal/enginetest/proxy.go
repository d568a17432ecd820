package enginetest

import (
	"bufio"
	"context"
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/docker/docker/pkg/stdcopy"
)

// Proxy stands between a client and an engine, sees every call and breaks the ones
// that its faults and rules say. It ends TLS with certificates of its own. All of
// its methods may be called concurrently.
type Proxy struct {
	PKI    *PKI
	Addr   string
	tls    *tls.Config
	listen net.Listener
	dial   func() (net.Conn, error)
	life   context.Context
	end    context.CancelFunc
	work   sync.WaitGroup

	mu     sync.Mutex
	faults []*Fault
	rules  []*Rule
	calls  []*Call
	conns  map[*link]bool // callers'
	behind map[net.Conn]bool
	thawed chan struct{} // nil while the link moves; else closed when it does again
}

// NewProxy starts a proxy to the engine that dial reaches; it ends with the test.
func NewProxy(t *testing.T, dial func() (net.Conn, error)) *Proxy {
	t.Helper()
	p, err := StartProxy(t.TempDir(), "127.0.0.1:0", dial)
	must(t, err)
	t.Cleanup(p.Close)
	return p
}

// StartProxy starts a proxy that listens at an address of loopback and keeps its
// certificates in a folder: ca.pem, client-cert.pem and client-key.pem are its
// callers'. Close ends it.
func StartProxy(dir, addr string, dial func() (net.Conn, error)) (*Proxy, error) {
	pki, err := MakePKI(dir)
	if err != nil {
		return nil, err
	}
	if _, err := pki.valid("client"); err != nil {
		return nil, err
	}
	pair, err := pki.valid("server")
	if err != nil {
		return nil, err
	}
	listen, err := new(net.ListenConfig).Listen(context.Background(), "tcp", addr) // as long as the proxy
	if err != nil {
		return nil, err
	}
	p := &Proxy{
		PKI: pki, Addr: listen.Addr().String(), tls: pki.Server(pair), listen: listen, dial: dial,
		conns: map[*link]bool{}, behind: map[net.Conn]bool{},
	}
	p.life, p.end = context.WithCancel(context.Background()) // until Close
	p.work.Go(p.accept)
	return p, nil
}

// Open is how many connections there are now, on both sides.
func (p *Proxy) Open() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.conns) + len(p.behind)
}

// Close breaks every connection and waits for the proxy's goroutines.
func (p *Proxy) Close() {
	p.end()
	_ = p.listen.Close()
	p.Break()
	p.work.Wait()
}

// Break resets every connection, of callers and of the engine, and returns how many
// callers had.
func (p *Proxy) Break() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	for c := range p.conns {
		c.reset()
	}
	for c := range p.behind {
		_ = c.Close()
	}
	return len(p.conns)
}

func (p *Proxy) accept() {
	for {
		conn, err := p.listen.Accept()
		if err != nil {
			return
		}
		l := &link{Conn: conn, p: p}
		p.mu.Lock()
		p.conns[l] = true
		closing := p.life.Err() != nil
		p.mu.Unlock()
		if closing {
			_ = conn.Close()
		}
		p.work.Go(func() {
			defer p.drop(l)
			p.serve(tls.Server(l, p.tls), l)
		})
	}
}

func (p *Proxy) drop(l *link) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.conns, l)
	_ = l.Close()
}

// serve answers one connection's calls, one after another.
func (p *Proxy) serve(conn *tls.Conn, l *link) {
	reader := bufio.NewReader(conn)
	for {
		req, err := http.ReadRequest(reader)
		if err != nil {
			return
		}
		f, call := p.match(req)
		if f.Done != nil {
			close(f.Done)
		}
		if f.Delay > 0 && !p.wait(f.Delay) {
			return
		}
		switch {
		case f.Hang:
			_, _ = io.Copy(io.Discard, reader) // until the caller or the proxy ends it
			return
		case f.Reset:
			l.reset()
			return
		case f.Say != "":
			_, _ = io.Copy(io.Discard, req.Body)
			say(conn, f.Say)
			return
		case f.Status != 0:
			_, _ = io.Copy(io.Discard, req.Body)
			if answer(f.Status, f.Message).Write(conn) != nil { //nolint:bodyclose // an answer of our own, whose body is a text in memory
				return
			}
		default:
			if !p.forward(conn, reader, req, f, call) {
				return
			}
		}
	}
}

// wait lets time pass; false: the proxy ends.
func (p *Proxy) wait(d time.Duration) bool {
	select {
	case <-time.After(d):
		return true
	case <-p.life.Done():
		return false
	}
}

var versionForm = regexp.MustCompile(`^/v[0-9.]+`)

// match notes the call and returns what to do with it: the first fault that is for
// it, or else the first rule's.
func (p *Proxy) match(req *http.Request) (Fault, *Call) {
	path := versionForm.ReplaceAllString(req.URL.Path, "")
	call := &Call{Method: req.Method, Path: path, At: time.Now()}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.calls = append(p.calls, call)
	for _, f := range p.faults {
		if f.Times < 0 || f.Method != "" && f.Method != req.Method || !f.Path.MatchString(path) {
			continue
		}
		found := *f
		f.Done = nil
		if f.Times == 1 {
			f.Times = -1
		} else if f.Times > 1 {
			f.Times--
		}
		call.Done = "fault"
		return found, call
	}
	for _, r := range p.rules {
		if r.matches(req.Method, path) {
			var f Fault
			f, call.Done = r.next()
			return f, call
		}
	}
	return Fault{}, call
}

// say plays an engine that writes its own words in place of a command's output.
func say(conn net.Conn, text string) {
	resp := &http.Response{StatusCode: http.StatusSwitchingProtocols, ProtoMajor: 1, ProtoMinor: 1, Header: http.Header{"Connection": {"Upgrade"}, "Upgrade": {"tcp"}}}
	if resp.Write(conn) == nil {
		_, _ = stdcopy.NewStdWriter(conn, stdcopy.Stdout).Write([]byte(text))
	}
}

func answer(status int, message string) *http.Response {
	body := `{"message":"` + message + `"}`
	return &http.Response{
		StatusCode: status, ProtoMajor: 1, ProtoMinor: 1, ContentLength: int64(len(body)),
		Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(strings.NewReader(body)),
	}
}
