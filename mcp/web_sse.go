package mcp

import (
	"context"
	"net/http"

	mcpgo "github.com/mark3labs/mcp-go/mcp"
)

// serveSSE is the stream of a client of the older HTTP transport: everything that is
// said to it goes there. Its end ends the client: its calls are cancelled, and have
// ended when this returns.
func (w *web) serveSSE(rw http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodGet {
		refuseMethod(rw, http.MethodGet)
		return
	}
	if _, ok := w.pace(rw, r, nil); !ok {
		return
	}
	session, release, err := w.sse.begin(w.ctx, w.s.callerOf(r.Context()).owner)
	if err != nil {
		refuseBusy(rw, nil, err)
		return
	}
	w.stream(rw, r, session, func(f *flow) error {
		session.setOut(f)
		if err := f.begin(); err != nil {
			return err
		}
		return f.write([]byte("event: endpoint\ndata: /message?sessionId=" + session.id + "\n\n"))
	})
	w.sse.remove(session)
	release()
	session.work.Wait()
}

// serveMessage takes the messages of SSE clients. A call goes on when its message has
// been taken (MT-02), and ends with the stream.
func (w *web) serveMessage(rw http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodPost {
		refuseMethod(rw, http.MethodPost)
		return
	}
	r, m, release, ok := w.takeMessage(rw, r)
	if !ok {
		return
	}
	goesOn := false // a request has been taken, and holds what its message does
	defer func() {
		if !goesOn {
			release()
		}
	}()
	ids := r.URL.Query()["sessionId"]
	if len(ids) != 1 {
		refuse(rw, &m, http.StatusBadRequest, mcpgo.INVALID_PARAMS, "one sessionId is needed, that of the stream")
		return
	}
	session, leave, ok := w.sse.find(ids[0], w.s.callerOf(r.Context()).owner)
	if !ok {
		refuse(rw, &m, http.StatusBadRequest, mcpgo.INVALID_PARAMS, "no such sessionId (any more): open /sse again")
		return
	}
	defer leave()
	if !m.isRequest() {
		w.s.notice(session.peer, m)
		rw.WriteHeader(http.StatusAccepted)
		return
	}
	goesOn = w.serveRequestOf(rw, r, session, m, release)
}

// serveRequestOf takes a request of an SSE client, which its stream answers, and calls
// release when that is done. One that it does not take has been refused.
func (w *web) serveRequestOf(rw http.ResponseWriter, r *http.Request, session *clientSession, m message, release func()) bool {
	ctx, leave := context.WithoutCancel(r.Context()), func() {} // the POST is answered at once
	if m.opensStream() {
		var ok bool
		if ctx, leave, ok = w.asStream(ctx, rw, r, &m); !ok {
			return false
		}
	}
	ctx, cancel := context.WithCancelCause(ctx)
	stop := context.AfterFunc(session.ctx, func() { cancel(errClientGone) })
	ctx, done, fault := session.requests.begin(ctx, m.id)
	if fault != nil {
		cancel(nil)
		stop()
		leave()
		refuse(rw, &m, http.StatusBadRequest, fault.code, fault.text)
		return false
	}
	out := session.getOut()
	session.work.Go(func() {
		defer release()
		defer leave()
		defer stop()
		defer cancel(nil)
		defer done()
		if answer, _ := w.s.answer(ctx, newExchange(session.peer, out), m); answer != nil {
			_ = out.send(answer) // a failure ends the session
		}
	})
	rw.WriteHeader(http.StatusAccepted)
	return true
}
