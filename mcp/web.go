package mcp

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"mime"
	"net/http"
	"os"
	"time"

	mcpgo "github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"
)

// The clocks of the HTTP side.
const (
	sessionIdle   = 30 * time.Minute // of a client session; three times the longest call
	heartbeat     = 20 * time.Second // on streams that are open and quiet
	sseHeartbeat  = 10 * time.Second
	bodyTime      = 60 * time.Second // for a request's body to arrive
	headerSession = "Mcp-Session-Id"
)

// noOrigin stands for an empty list of origins: with one, mcp-go sends no
// Access-Control-Allow-Origin; without any, its SSE side sends a wildcard.
const noOrigin = "https://none.invalid"

// web serves the HTTP transports. mcp-go speaks the protocol; what it leaves
// open is closed here: who may call from a browser, how large a request may be,
// and what a session id is worth.
type web struct {
	s          *Server
	mux        *http.ServeMux
	sessions   *clientSessions
	streamable *server.StreamableHTTPServer
	sse        *server.SSEServer
}

func newWeb(s *Server) *web {
	w := &web{s: s, mux: http.NewServeMux(), sessions: newClientSessions(s)}
	cors := []server.CORSOption{
		server.WithCORSAllowedOrigins(exactOrigins(s.options.AllowedOrigins)...),
		server.WithCORSAllowedHeaders("Content-Type", "Authorization", headerSession, "Last-Event-ID",
			mcpgo.HeaderProtocolVersion, "Mcp-Method", "Mcp-Name"),
	}
	w.streamable = server.NewStreamableHTTPServer(s.mcp,
		server.WithSessionIdManagerResolver(w.sessions),
		server.WithSessionIdleTTL(s.sessionIdle),
		server.WithHeartbeatInterval(heartbeat),
		server.WithDisableLocalhostProtection(true), // our own check covers every path
		server.WithStreamableHTTPLogger(warningsOf(s.log)),
		server.WithStreamableHTTPCORS(cors...),
	)
	w.sse = server.NewSSEServer(s.mcp,
		server.WithKeepAliveInterval(sseHeartbeat),
		server.WithSessionIDGenerator(w.sessions.beginSSE),
		server.WithSSEDisableLocalhostProtection(true),
		server.WithSSECORS(cors...),
	)
	w.mux.Handle("/mcp", w.guard(overHTTP, http.HandlerFunc(w.serveMCP)))
	w.mux.Handle("/sse", w.guard(overSSE, http.HandlerFunc(w.serveSSE)))
	w.mux.Handle("/message", w.guard(overSSE, http.HandlerFunc(w.serveMessage)))
	w.mux.HandleFunc("GET /healthz", func(rw http.ResponseWriter, _ *http.Request) { writeStatus(rw, http.StatusOK, "alive") })
	w.mux.Handle("GET /readyz", &readiness{s: s})
	return w
}

// ServeHTTP serves every path of the server. A body has bodyTime to arrive,
// whoever reads it: also net/http, which reads what a handler has left before it
// sends the handler's answer.
func (w *web) ServeHTTP(rw http.ResponseWriter, r *http.Request) {
	if r.Body != nil && r.Body != http.NoBody {
		_ = http.NewResponseController(rw).SetReadDeadline(time.Now().Add(w.s.bodyTime)) // not supported: then there is none
		if r.Method != http.MethodPost && !w.dropBody(rw, r) {
			return
		}
	}
	w.mux.ServeHTTP(rw, r)
}

// maxUnread is how large a body may be that nothing here reads.
const maxUnread = 64 << 10

// dropBody takes in the body of a request that needs none, before the request
// is served: the time for it must be over before a stream begins.
func (w *web) dropBody(rw http.ResponseWriter, r *http.Request) bool {
	n, err := io.Copy(io.Discard, io.LimitReader(r.Body, maxUnread+1))
	if err != nil || n > maxUnread {
		rw.Header().Set("Connection", "close")
		status, text := http.StatusRequestTimeout, "the request body did not arrive in time"
		if err == nil {
			status, text = http.StatusRequestEntityTooLarge, "such a request needs no body"
		}
		writeRPCError(rw, status, nil, mcpgo.INVALID_REQUEST, text)
		return false
	}
	_ = http.NewResponseController(rw).SetReadDeadline(time.Time{})
	r.Body = http.NoBody
	return true
}

// close disconnects the clients and ends mcp-go's sweeper.
func (w *web) close(ctx context.Context) error {
	w.sse.CloseSessions()
	return w.streamable.Shutdown(ctx)
}

// envelope is what decides how a message is treated. It is read the way mcp-go
// reads it, duplicate and odd-cased names included, so that both see the same.
type envelope struct {
	ID     any    `json:"id"`
	Method string `json:"method"`
	Params struct {
		Meta *mcpgo.Meta `json:"_meta"`
	} `json:"params"`
}

func modern(r *http.Request, e *envelope) bool {
	return mcpgo.IsModernProtocol(r.Header.Get(mcpgo.HeaderProtocolVersion)) ||
		mcpgo.IsModernProtocol(e.Params.Meta.ProtocolVersion())
}

// serveMCP is the Streamable HTTP endpoint.
func (w *web) serveMCP(rw http.ResponseWriter, r *http.Request) {
	var e envelope
	switch r.Method {
	case http.MethodPost:
		body, ok := w.readBody(rw, r)
		if !ok {
			return
		}
		_ = json.Unmarshal(body, &e) // mcp-go answers what is not JSON
	case http.MethodGet, http.MethodDelete:
	default:
		w.streamable.ServeHTTP(rw, r)
		return
	}
	session := r.Header.Get(headerSession)
	switch {
	case modern(r, &e):
		// Requests of this version share one empty session inside mcp-go, so one
		// client could cancel another's by its id. Its way to cancel over HTTP
		// is to close the stream, and the notice has no further use.
		if e.Method == "notifications/cancelled" {
			rw.WriteHeader(http.StatusAccepted)
			return
		}
	case e.Method == string(mcpgo.MethodInitialize):
	case session == "":
		writeRPCError(rw, http.StatusBadRequest, e.ID, mcpgo.INVALID_REQUEST, headerSession+" header is missing: call initialize first")
		return
	case !w.sessions.known(session, sessionOwner(r.Context())):
		writeRPCError(rw, http.StatusNotFound, e.ID, mcpgo.INVALID_REQUEST, "no such client session (any more): call initialize again")
		return
	}
	if r.Method == http.MethodDelete {
		w.endSession(r, session)
	}
	w.streamable.ServeHTTP(rw, r)
}

// endSession does what a client's explicit end asks for: its calls are stopped,
// and its default session, which nobody else was told of, is destroyed (MT-05).
func (w *web) endSession(r *http.Request, session string) {
	client := clientKey(overHTTP, session)
	owner := w.s.callerOf(r.Context()).owner
	id := w.s.defaults.end(client)
	w.s.calls.endClient(client)
	if id != "" {
		ctx := context.WithoutCancel(r.Context()) // the answer does not wait for the engine
		w.s.work.Go(func() { w.s.discard(ctx, owner, id) })
	}
}

// serveSSE is a stream of an SSE client; its session lives as long.
func (w *web) serveSSE(rw http.ResponseWriter, r *http.Request) {
	slot := new(string)
	defer func() { w.sessions.forget(*slot) }()
	w.sse.ServeHTTP(rw, r.WithContext(context.WithValue(r.Context(), sseSlot{}, slot)))
}

// serveMessage takes the messages of SSE clients.
func (w *web) serveMessage(rw http.ResponseWriter, r *http.Request) {
	if r.Method == http.MethodPost {
		if _, ok := w.readBody(rw, r); !ok {
			return
		}
		if !w.sessions.known(r.URL.Query().Get("sessionId"), sessionOwner(r.Context())) {
			writeRPCError(rw, http.StatusBadRequest, nil, mcpgo.INVALID_PARAMS, "no such client session (any more): open the stream again")
			return
		}
	}
	w.sse.ServeHTTP(rw, r)
}

// readBody reads a message within the limits and puts it back for mcp-go, which
// would read without any. What is too large or no JSON by its own account is
// answered here.
func (w *web) readBody(rw http.ResponseWriter, r *http.Request) ([]byte, bool) {
	kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if err != nil || kind != "application/json" {
		// A page can post text and forms to any address without asking (T50).
		writeRPCError(rw, http.StatusUnsupportedMediaType, nil, mcpgo.INVALID_REQUEST, "Content-Type must be application/json")
		return nil, false
	}
	limit := w.s.options.MaxBody
	if r.ContentLength > limit {
		w.tooLarge(rw)
		return nil, false
	}
	body, err := io.ReadAll(http.MaxBytesReader(rw, r.Body, limit))
	var over *http.MaxBytesError
	switch {
	case errors.As(err, &over):
		w.tooLarge(rw)
		return nil, false
	case errors.Is(err, os.ErrDeadlineExceeded):
		rw.Header().Set("Connection", "close")
		writeRPCError(rw, http.StatusRequestTimeout, nil, mcpgo.INVALID_REQUEST, "the request body did not arrive in time")
		return nil, false
	case err != nil:
		writeRPCError(rw, http.StatusBadRequest, nil, mcpgo.PARSE_ERROR, "the request body did not arrive whole")
		return nil, false
	}
	_ = http.NewResponseController(rw).SetReadDeadline(time.Time{}) // the call itself may take longer
	r.Body = io.NopCloser(bytes.NewReader(body))
	return body, true
}

func (w *web) tooLarge(rw http.ResponseWriter) {
	rw.Header().Set("Connection", "close")
	writeRPCError(rw, http.StatusRequestEntityTooLarge, nil, mcpgo.INVALID_REQUEST,
		"the request body is larger than "+mebibytes(w.s.options.MaxBody)+": send large files in pieces (upload with append)")
}
