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
	body, ok := w.readBody(rw, r)
	if !ok {
		return
	}
	m, fault := readMessage(body)
	if r, ok = w.pace(rw, r, &m); !ok {
		return
	}
	if fault != nil {
		refuse(rw, &m, http.StatusBadRequest, fault.code, fault.text)
		return
	}
	ids := r.URL.Query()["sessionId"]
	if len(ids) != 1 {
		refuse(rw, &m, http.StatusBadRequest, mcpgo.INVALID_PARAMS, "one sessionId is needed, that of the stream")
		return
	}
	session, release, ok := w.sse.find(ids[0], w.s.callerOf(r.Context()).owner)
	if !ok {
		refuse(rw, &m, http.StatusBadRequest, mcpgo.INVALID_PARAMS, "no such sessionId (any more): open /sse again")
		return
	}
	defer release()
	if !m.isRequest() {
		w.s.notice(session.peer, m)
		rw.WriteHeader(http.StatusAccepted)
		return
	}
	w.serveRequestOf(rw, r, session, m)
}

// serveRequestOf takes a request of an SSE client, which its stream answers.
func (w *web) serveRequestOf(rw http.ResponseWriter, r *http.Request, session *clientSession, m message) {
	ctx, leave := context.WithoutCancel(r.Context()), func() {} // the POST is answered at once
	if m.opensStream() {
		var ok bool
		if ctx, leave, ok = w.asStream(ctx, rw, r, &m); !ok {
			return
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
		return
	}
	out := session.getOut()
	session.work.Go(func() {
		defer leave()
		defer stop()
		defer cancel(nil)
		defer done()
		if answer, _ := w.s.answer(ctx, newExchange(session.peer, out), m); answer != nil {
			_ = out.send(answer) // a failure ends the session
		}
	})
	rw.WriteHeader(http.StatusAccepted)
}
