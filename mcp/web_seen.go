package mcp

import (
	"context"
	"net/http"
	"strconv"
	"time"
)

// headerRequestID names the request in the answer, for a client's own log: the
// audit records and the log's lines of the request have the same id. What a
// client sends under that name is not read.
const headerRequestID = "X-Request-Id"

// seen gives a request its id, and records the refusal of one that came to
// nothing: every call has a record of its own, and every request that was turned
// away before one was read from it has one here.
func (w *web) seen(rw http.ResponseWriter, r *http.Request, serve func(*watchedAnswer, *http.Request)) {
	in := &inbound{id: newRequestID()}
	rw.Header().Set(headerRequestID, in.id)
	answer := &watchedAnswer{ResponseWriter: rw, limit: w.s.writeTime}
	serve(answer, r.WithContext(context.WithValue(r.Context(), inboundKey{}, in)))
	answer.patience() // for what net/http has not sent yet
	t := endpointOf(r)
	if answer.status < http.StatusBadRequest || t == "" || in.claimed.Load() {
		return
	}
	principal := ""
	if p := in.principal.Load(); p != nil {
		principal = *p
	}
	w.s.turnedAway(in.id, principal, t, refusalCode(answer.status))
}

// endpointOf is the transport whose endpoint a request is for; empty for any
// other path, where nothing can be called.
func endpointOf(r *http.Request) transport {
	switch r.URL.Path {
	case "/mcp":
		return overHTTP
	case "/sse", "/message":
		return overSSE
	}
	return ""
}

// refusalCode is a word for the status of a refusal.
func refusalCode(status int) string {
	switch status {
	case http.StatusBadRequest:
		return "bad_request"
	case http.StatusUnauthorized:
		return "unauthenticated"
	case http.StatusForbidden:
		return "forbidden"
	case http.StatusNotFound:
		return "client_session_not_found"
	case http.StatusMethodNotAllowed:
		return "method_not_allowed"
	case http.StatusRequestTimeout:
		return "body_too_slow"
	case http.StatusRequestEntityTooLarge:
		return "body_too_large"
	case http.StatusUnsupportedMediaType:
		return "media_type"
	case http.StatusTooManyRequests:
		return "rate_limited"
	case http.StatusServiceUnavailable:
		return "unavailable"
	case http.StatusInternalServerError:
		return "internal"
	}
	return "http_" + strconv.Itoa(status) // of the few that Go's and mcp-go's servers send
}

// writePiece is how much of an answer goes out under one deadline.
const writePiece = 32 << 10

// watchedAnswer keeps the status of an answer, and lets none wait for ever: a refusal
// not for a body that nobody reads, and no piece of any answer for a client that takes
// in nothing (T53).
type watchedAnswer struct {
	http.ResponseWriter
	limit  time.Duration // for a piece to go out
	status int
	body   *watchedBody // nil when the request has none
}

// patience begins the time for a piece. A writer that knows no deadlines has none.
func (a *watchedAnswer) patience() {
	_ = http.NewResponseController(a.ResponseWriter).SetWriteDeadline(time.Now().Add(a.limit))
}

// WriteHeader sends the head, and keeps the first status that is a final one.
func (a *watchedAnswer) WriteHeader(status int) {
	if a.status == 0 && status >= http.StatusOK {
		a.status = status
		if status >= http.StatusBadRequest {
			a.body.leave(a.ResponseWriter)
		}
	}
	a.patience()
	a.ResponseWriter.WriteHeader(status)
}

// Write sends a part of the body, each piece of it within the limit.
func (a *watchedAnswer) Write(p []byte) (n int, err error) {
	if a.status == 0 {
		a.status = http.StatusOK
	}
	for {
		a.patience()
		wrote, err := a.ResponseWriter.Write(p[n:min(len(p), n+writePiece)])
		n += wrote
		if err != nil || n == len(p) {
			return n, err
		}
	}
}

// Flush makes streams possible.
func (a *watchedAnswer) Flush() {
	a.patience()
	_ = http.NewResponseController(a.ResponseWriter).Flush() // a writer that cannot has nothing to hold back
}

// Unwrap lets http.ResponseController reach the connection.
func (a *watchedAnswer) Unwrap() http.ResponseWriter { return a.ResponseWriter }
