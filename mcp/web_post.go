package mcp

import (
	"context"
	"net/http"

	mcpgo "github.com/mark3labs/mcp-go/mcp"
)

// servePost takes one message of a Streamable HTTP client.
func (w *web) servePost(rw http.ResponseWriter, r *http.Request) {
	r, m, release, ok := w.takeMessage(rw, r)
	if !ok {
		return
	}
	defer release()
	version := r.Header.Get(mcpgo.HeaderProtocolVersion)
	if m.modern() || mcpgo.IsModernProtocol(version) {
		w.serveModern(rw, r, m)
		return
	}
	switch {
	case m.method == string(mcpgo.MethodInitialize):
		w.serveInitialize(rw, r, m)
		return
	case version != "" && !mcpgo.IsValidProtocolVersion(version):
		refuseVersion(rw, &m, version)
		return
	case r.Header.Get(headerSession) == "":
		refuseNoSession(rw, &m)
		return
	}
	session, leave, ok := w.streamable.find(r.Header.Get(headerSession), w.s.callerOf(r.Context()).owner)
	if !ok {
		refuseSession(rw, &m)
		return
	}
	defer leave()
	w.serveMessageOf(rw, r, session.peer, m, false)
}

// serveInitialize begins a client session.
func (w *web) serveInitialize(rw http.ResponseWriter, r *http.Request, m message) {
	session, release, err := w.streamable.begin(w.ctx, w.s.callerOf(r.Context()).owner)
	if err != nil {
		refuseBusy(rw, &m, err)
		return
	}
	defer release()
	if !m.isRequest() {
		w.streamable.remove(session)
		writeRPC(rw, http.StatusBadRequest, rpcError(nil, mcpgo.INVALID_REQUEST, "initialize is a request and needs an id"))
		return
	}
	x := newExchange(session.peer, nobody{})
	answer, code := w.s.answer(r.Context(), x, m)
	if code != 0 {
		w.streamable.remove(session)
	} else {
		rw.Header().Set(headerSession, session.id)
	}
	writeRPC(rw, statusOf(code, false), answer)
}

// serveModern serves a message of the stateless protocol: a client of its own, for
// as long as it takes. Its way to cancel is to close the stream; a notice would name
// a request of nobody knows whom, and is dropped.
func (w *web) serveModern(rw http.ResponseWriter, r *http.Request, m message) {
	if m.method == "" {
		writeRPC(rw, http.StatusBadRequest, rpcError(m.id, mcpgo.INVALID_REQUEST, "this version of the protocol has no requests of the server that could be responded to"))
		return
	}
	if fault := w.headersAgree(r.Header, m); fault != nil && m.isRequest() {
		writeRPC(rw, http.StatusBadRequest, fault)
		return
	}
	p := newPeer(w.ctx, "", w.s.callerOf(r.Context()).owner)
	defer p.end()
	w.serveMessageOf(rw, r, p, m, true)
}

// serveMessageOf serves a message of a known client on the response of its POST.
func (w *web) serveMessageOf(rw http.ResponseWriter, r *http.Request, p *peer, m message, modern bool) {
	if !m.isRequest() {
		if !modern {
			w.s.notice(p, m)
		}
		rw.WriteHeader(http.StatusAccepted)
		return
	}
	ctx := r.Context()
	if m.opensStream() {
		streaming, leave, ok := w.asStream(ctx, rw, r, &m)
		if !ok {
			return
		}
		defer leave()
		ctx = streaming
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(p.ctx, func() { cancel(errClientGone) })()
	ctx, done, fault := p.requests.begin(ctx, m.id)
	if fault != nil {
		writeRPC(rw, http.StatusBadRequest, rpcError(m.id, fault.code, fault.text))
		return
	}
	defer done()
	reply := &postReply{flow: newFlow(rw, func() { cancel(errClientGone) }), plain: !takesStream(r)}
	defer reply.close()
	x := newExchange(p, reply)
	stop := reply.quiet(w.s.heartbeat)
	answer, code := w.s.answer(ctx, x, m)
	stop()
	reply.finish(answer, statusOf(code, modern))
}

// nobody takes what is said before anybody could listen.
type nobody struct{}

func (nobody) send([]byte) error { return errOver }
