package mcp

import (
	"context"
	"net/http"
	"sync"
	"time"

	mcpgo "github.com/mark3labs/mcp-go/mcp"
)

// The clocks of the HTTP side.
const (
	sessionIdle   = 30 * time.Minute       // of a client session; three times the longest call
	heartbeat     = 20 * time.Second       // on streams that are open and quiet
	bodyTime      = 60 * time.Second       // for a request's body to arrive
	needlessTime  = 2 * time.Second        // likewise, where none is needed
	restTime      = 250 * time.Millisecond // for what a refused request has sent already
	headerSession = "Mcp-Session-Id"
)

// web serves the HTTP transports. mcp-go knows what the methods do; sessions,
// streams, cancellation and what a request may be are ours. Its own transports let
// calls of one session have each other's progress, lose some of it, answer what was
// cancelled and keep clients for ever.
type web struct {
	s          *Server
	mux        *http.ServeMux
	streamable *clientSessions // of Streamable HTTP
	sse        *clientSessions
	bodies     *bodies

	ctx  context.Context // ends with the server
	end  context.CancelFunc
	work sync.WaitGroup // the sweepers
}

func newWeb(s *Server) *web {
	w := &web{
		s: s, mux: http.NewServeMux(), bodies: newBodies(s.options.MaxBody),
		streamable: newClientSessions(s, overHTTP, s.sessionIdle),
		sse:        newClientSessions(s, overSSE, s.sessionIdle),
	}
	w.ctx, w.end = context.WithCancel(context.Background()) // close ends it
	w.work.Go(func() { w.streamable.sweep(w.ctx) })
	w.work.Go(func() { w.sse.sweep(w.ctx) })
	w.mux.Handle("/mcp", w.guard(overHTTP, http.HandlerFunc(w.serveMCP)))
	w.mux.Handle("/sse", w.guard(overSSE, http.HandlerFunc(w.serveSSE)))
	w.mux.Handle("/message", w.guard(overSSE, http.HandlerFunc(w.serveMessage)))
	if metadata := s.options.Metadata; metadata != nil {
		w.mux.Handle("GET /.well-known/oauth-protected-resource", w.screen(metadata))
		w.mux.Handle("GET /.well-known/oauth-protected-resource/", w.screen(metadata))
	}
	w.mux.HandleFunc("GET /healthz", func(rw http.ResponseWriter, _ *http.Request) { writeStatus(rw, http.StatusOK, "alive") })
	w.mux.Handle("GET /readyz", &readiness{s: s})
	if s.options.OpenMetrics && s.options.Authenticator == nil {
		w.mux.Handle("GET /metrics", w.ownPages(s.metrics.page()))
	}
	return w
}

// ServeHTTP serves every path of the server. A body has bodyTime to arrive, whoever
// reads it. Of a request that is refused nobody waits for the rest of it: net/http
// would, before it sends the answer.
func (w *web) ServeHTTP(rw http.ResponseWriter, r *http.Request) { w.seen(rw, r, w.serve) }

func (w *web) serve(rw *watchedAnswer, r *http.Request) {
	ctl := http.NewResponseController(rw)
	rw.patience() // the connection's last answer had another deadline
	if r.Body != nil && r.Body != http.NoBody {
		limit := w.s.bodyTime
		if r.Method != http.MethodPost {
			limit = min(limit, needlessTime)
		}
		_ = ctl.SetReadDeadline(time.Now().Add(limit))
		rw.body = &watchedBody{ReadCloser: r.Body, expected: r.Header.Get("Expect") != ""}
		r.Body = rw.body
		if r.Method != http.MethodPost && !w.dropBody(rw, r) {
			return
		}
	}
	w.mux.ServeHTTP(rw, r)
}

// close disconnects the clients, and has waited for the sweepers when it returns.
func (w *web) close() {
	w.end()
	w.work.Wait()
}

// serveMCP is the Streamable HTTP endpoint.
func (w *web) serveMCP(rw http.ResponseWriter, r *http.Request) {
	version := r.Header.Get(mcpgo.HeaderProtocolVersion)
	switch {
	case len(r.Header.Values(headerSession)) > 1:
		refuse(rw, nil, http.StatusBadRequest, mcpgo.INVALID_REQUEST, headerSession+" header is there twice") // a proxy could have judged the other
	case r.Method == http.MethodPost:
		w.servePost(rw, r)
	case r.Method != http.MethodGet && r.Method != http.MethodDelete:
		refuseMethod(rw, "GET, POST, DELETE")
	case mcpgo.IsModernProtocol(version):
		refuseMethod(rw, http.MethodPost) // that version has neither
	case version != "" && !mcpgo.IsValidProtocolVersion(version):
		refuseVersion(rw, nil, version)
	case r.Header.Get(headerSession) == "":
		refuseNoSession(rw, nil)
	default:
		if _, ok := w.pace(rw, r, nil); !ok {
			return
		}
		session, release, ok := w.streamable.find(r.Header.Get(headerSession), w.s.callerOf(r.Context()).owner)
		if !ok {
			refuseSession(rw, nil)
			return
		}
		defer release()
		if r.Method == http.MethodGet {
			w.serveStream(rw, r, session)
			return
		}
		w.endSession(r, session)
		rw.WriteHeader(http.StatusOK)
	}
}

// endSession does what a client's explicit end asks for: its calls are stopped,
// and its default session, which nobody else was told of, is destroyed (MT-05).
func (w *web) endSession(r *http.Request, session *clientSession) {
	client := clientKey(overHTTP, session.id)
	id := w.s.defaults.end(client)
	w.streamable.remove(session)
	if id != "" {
		ctx := context.WithoutCancel(r.Context()) // the answer does not wait for the engine
		w.s.work.Go(func() { w.s.discard(ctx, session.owner, id) })
	}
}

// serveStream is a client's stream for what no request of its own has caused.
func (w *web) serveStream(rw http.ResponseWriter, r *http.Request, session *clientSession) {
	w.stream(rw, r, session, (*flow).begin)
}

// stream keeps a stream open until its client or the session ends, or the client
// does not read any more. begin sends its head.
func (w *web) stream(rw http.ResponseWriter, r *http.Request, session *clientSession, begin func(*flow) error) {
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	defer context.AfterFunc(session.ctx, cancel)()
	f := newFlow(rw, cancel)
	defer f.close()
	x := newExchange(session.peer, f)
	defer x.close(true)
	if begin(f) != nil {
		return
	}
	defer w.s.listen(ctx, x)()
	ticker := time.NewTicker(w.s.heartbeat)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			_ = f.breathe() // a failure ends ctx
		}
	}
}
