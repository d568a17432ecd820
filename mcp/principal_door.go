package mcp

import (
	"context"
	"errors"
	"math"
	"net/http"
	"strconv"

	mcpgo "github.com/mark3labs/mcp-go/mcp"

	"caisson/principal"
)

// admit finds who makes a request and puts the principal into its context. What
// it does not let in is answered here, before any of it has been looked at. A
// browser's preflight carries no credentials and reaches nothing.
func (w *web) admit(rw http.ResponseWriter, r *http.Request) (_ *http.Request, leave func(), in bool) {
	if w.s.options.Authenticator == nil || r.Method == http.MethodOptions {
		return r, func() {}, true
	}
	p, err := w.s.options.Authenticator.Authenticate(r)
	if err != nil {
		w.refuseCaller(rw, err)
		return nil, nil, false
	}
	if inbound := inboundOf(r.Context()); inbound != nil {
		inbound.principal.Store(&p.Name)
	}
	ctx, over, _ := w.s.principals.enter(r.Context(), &p, false)
	r = r.WithContext(withPrincipal(ctx, &p))
	if r.Method != http.MethodGet {
		return r, over, true
	}
	ctx, end, in := w.asStream(r.Context(), rw, r, nil)
	if !in {
		over()
		return nil, nil, false
	}
	return r.WithContext(ctx), func() { end(); over() }, true
}

// asStream holds a request to the rules for streams: there are so many of one
// principal, and each ends with the right to call. The context is ctx, which must be
// of the request, with that end; leave must be called at the stream's end. What is
// not let in has been answered; m is the message that asks for the stream, or nil.
func (w *web) asStream(ctx context.Context, rw http.ResponseWriter, r *http.Request, m *message) (_ context.Context, leave func(), in bool) {
	p := principalOf(ctx)
	if p == nil {
		return ctx, func() {}, true
	}
	ctx, leave, in = w.s.principals.enter(ctx, p, true)
	if !in {
		rw.Header().Set("Retry-After", "30")
		refuse(rw, m, http.StatusTooManyRequests, rpcBusy, strconv.Itoa(maxStreams)+" streams of this principal are open, the most that may be")
		return nil, nil, false
	}
	// A principal that was taken out between the two has not been seen by cut: a
	// call is over soon, a stream would stay.
	if _, err := w.s.options.Authenticator.Authenticate(r); err != nil {
		leave()
		w.refuseCaller(rw, err)
		return nil, nil, false
	}
	return ctx, leave, true
}

// refuseCaller answers a request that has no principal. An error that is no Refusal
// stays here: nobody foresaw it.
func (w *web) refuseCaller(rw http.ResponseWriter, err error) {
	var refusal *principal.Refusal
	if !errors.As(err, &refusal) {
		ref := rw.Header().Get(headerRequestID)
		w.s.log.Error("a caller could not be checked", "request_id", ref, "error", err)
		writeRPCError(rw, http.StatusInternalServerError, nil, mcpgo.INTERNAL_ERROR, "internal error, reference "+ref)
		return
	}
	w.s.log.Debug("a request was refused", "status", refusal.Status, "error", err)
	if refusal.Challenge != "" {
		rw.Header().Set("WWW-Authenticate", refusal.Challenge)
	}
	if refusal.RetryAfter > 0 {
		rw.Header().Set("Retry-After", strconv.Itoa(int(math.Ceil(refusal.RetryAfter.Seconds()))))
	}
	writeRPCError(rw, refusal.Status, nil, mcpgo.INVALID_REQUEST, refusal.Text)
}
