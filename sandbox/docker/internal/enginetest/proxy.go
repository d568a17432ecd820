package enginetest

import (
	"bufio"
	"crypto/tls"
	"io"
	"log"
	"net"
	"net/http"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/docker/docker/pkg/stdcopy"
)

// Fault is what a proxy does to a call.
type Fault struct {
	Method string         // empty: any
	Path   *regexp.Regexp // of the path, without the API's version
	Times  int            // how many calls it is for; 0: all

	Status  int           // answered in the engine's place, with Message
	Message string        //
	Say     string        // an attach is answered by this as the command's stdout, and its end
	Swallow bool          // the engine gets the call, the caller no answer: the connection breaks
	Hang    bool          // the engine gets nothing and the caller no answer, until the proxy closes
	CutAt   int           // an attached stream breaks after so many bytes of output
	Bytes   bool          // an attached stream's output comes byte by byte
	Stall   time.Duration // an attached stream's output is not taken from the engine before
	Rate    int           // an attached stream's output comes at so many bytes a second
	Done    chan struct{} // closed at the first call, where it is not nil

	// Pause, where it is not nil: nothing of an attached stream's output is taken from
	// the engine before it is closed.
	Pause <-chan struct{}
}

// Proxy stands between a client and an engine and sees every call. It ends TLS
// with certificates of its own.
type Proxy struct {
	PKI    *PKI
	Addr   string
	listen net.Listener
	dial   func() (net.Conn, error)
	closed chan struct{}
	work   sync.WaitGroup

	mu     sync.Mutex
	faults []*Fault
	calls  []string
	conns  map[net.Conn]bool
}

// NewProxy starts a proxy to the engine that dial reaches; it ends with the test.
func NewProxy(t *testing.T, dial func() (net.Conn, error)) *Proxy {
	t.Helper()
	pki := NewPKI(t)
	pki.Valid(t, "client")
	listen, err := tls.Listen("tcp", "127.0.0.1:0", pki.Server(pki.Valid(t, "server")))
	must(t, err)
	p := &Proxy{PKI: pki, Addr: listen.Addr().String(), listen: listen, dial: dial, closed: make(chan struct{}), conns: map[net.Conn]bool{}}
	p.work.Go(p.accept)
	t.Cleanup(p.Close)
	return p
}

// Inject adds a fault.
func (p *Proxy) Inject(f Fault) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.faults = append(p.faults, &f)
}

// Clear takes all faults away.
func (p *Proxy) Clear() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.faults = nil
}

// Calls are the calls so far, as "METHOD /path".
func (p *Proxy) Calls() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]string(nil), p.calls...)
}

// Forget empties Calls.
func (p *Proxy) Forget() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.calls = nil
}

// Open is how many connections there are now.
func (p *Proxy) Open() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.conns)
}

// Close breaks every connection and waits for the proxy's goroutines.
func (p *Proxy) Close() {
	p.mu.Lock()
	select {
	case <-p.closed:
		p.mu.Unlock()
		return
	default:
	}
	close(p.closed)
	_ = p.listen.Close()
	for c := range p.conns {
		_ = c.Close()
	}
	p.mu.Unlock()
	p.work.Wait()
}

func (p *Proxy) accept() {
	for {
		conn, err := p.listen.Accept()
		if err != nil {
			return
		}
		p.track(conn, true)
		p.work.Go(func() {
			defer p.track(conn, false)
			p.serve(conn)
		})
	}
}

func (p *Proxy) track(conn net.Conn, open bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if open {
		p.conns[conn] = true
		return
	}
	delete(p.conns, conn)
	_ = conn.Close()
}

// serve forwards one connection's calls, one after another.
func (p *Proxy) serve(conn net.Conn) {
	reader := bufio.NewReader(conn)
	for {
		req, err := http.ReadRequest(reader)
		if err != nil {
			return
		}
		f := p.match(req)
		if f.Done != nil {
			close(f.Done)
		}
		switch {
		case f.Hang:
			<-p.closed
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
			if !p.forward(conn, reader, req, f) {
				return
			}
		}
	}
}

var versionForm = regexp.MustCompile(`^/v[0-9.]+`)

// match notes the call and returns what to do with it.
func (p *Proxy) match(req *http.Request) Fault {
	path := versionForm.ReplaceAllString(req.URL.Path, "")
	p.mu.Lock()
	defer p.mu.Unlock()
	p.calls = append(p.calls, req.Method+" "+path)
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
		return found
	}
	return Fault{}
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

// forward passes a call on and its answer back; false ends the connection.
func (p *Proxy) forward(conn net.Conn, reader *bufio.Reader, req *http.Request, f Fault) bool {
	engine, err := p.dial()
	if err != nil {
		return false
	}
	p.track(engine, true)
	defer p.track(engine, false)
	if f.Rate > 0 || f.Pause != nil {
		takeLittle(engine)
	}
	req.URL.Scheme, req.URL.Host = "http", "engine"
	if req.Write(engine) != nil {
		return false
	}
	from := bufio.NewReader(engine)
	resp, err := http.ReadResponse(from, req) //nolint:bodyclose // resp.Write reads it to its end, and the connection is closed behind it
	if err != nil || f.Swallow {
		return false
	}
	if resp.StatusCode != http.StatusSwitchingProtocols {
		return resp.Write(conn) == nil
	}
	if resp.Write(conn) == nil {
		p.attach(conn, reader, engine, from, f)
	}
	return false
}

// attach joins two connections until the engine's side ends.
func (p *Proxy) attach(conn net.Conn, reader io.Reader, engine net.Conn, from io.Reader, f Fault) {
	var input sync.WaitGroup
	input.Go(func() {
		_, _ = io.Copy(engine, reader)
		if half, ok := engine.(interface{ CloseWrite() error }); ok {
			_ = half.CloseWrite()
		}
	})
	if f.Pause != nil {
		select {
		case <-f.Pause:
		case <-p.closed:
		}
	}
	switch {
	case f.CutAt > 0:
		_, _ = io.CopyN(conn, from, int64(f.CutAt))
	case f.Stall > 0:
		select {
		case <-time.After(f.Stall):
			_, _ = io.Copy(conn, from)
		case <-p.closed:
		}
	case f.Rate > 0:
		_ = p.slowly(conn, from, f.Rate)
	case f.Bytes:
		_, _ = io.Copy(byteByByte{conn}, from)
	default:
		_, _ = io.Copy(conn, from)
	}
	_ = conn.Close()
	_ = engine.Close()
	input.Wait()
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

// slowly copies at a rate of bytes a second.
func (p *Proxy) slowly(to io.Writer, from io.Reader, rate int) error {
	buf := make([]byte, 2<<10)
	due := time.Now()
	for {
		n, err := from.Read(buf)
		if n > 0 {
			if _, err := to.Write(buf[:n]); err != nil {
				return err
			}
			due = due.Add(time.Duration(n) * time.Second / time.Duration(rate))
			select {
			case <-time.After(time.Until(due)):
			case <-p.closed:
				return net.ErrClosed
			}
		}
		if err != nil {
			return err
		}
	}
}

// byteByByte writes each byte by itself.
type byteByByte struct{ net.Conn }

func (b byteByByte) Write(p []byte) (int, error) {
	for i := range p {
		if _, err := b.Conn.Write(p[i : i+1]); err != nil {
			return i, err
		}
	}
	return len(p), nil
}

// Serve answers with handler behind this configuration of TLS, until the test
// ends; a nil one is plain. It returns the address.
func Serve(t *testing.T, config *tls.Config, handler http.Handler) string {
	t.Helper()
	listen, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	must(t, err)
	addr := listen.Addr().String()
	if config != nil {
		listen = tls.NewListener(listen, config)
	}
	server := &http.Server{Handler: handler, ReadHeaderTimeout: 10 * time.Second, ErrorLog: log.New(io.Discard, "", 0)}
	var work sync.WaitGroup
	work.Go(func() { _ = server.Serve(listen) })
	t.Cleanup(func() {
		_ = server.Close()
		work.Wait()
	})
	return addr
}

// Ping answers a ping like an engine of this API version, and nothing else.
func Ping(version string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Api-Version", version)
		if !strings.HasSuffix(r.URL.Path, "/_ping") {
			http.Error(w, "no such thing", http.StatusNotFound)
		}
	})
}
