package mcp

import (
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
	stream := r.Method == http.MethodGet
	ctx, leave, in := w.s.principals.enter(r.Context(), &p, stream)
	if !in {
		rw.Header().Set("Retry-After", "30")
		writeRPCError(rw, http.StatusTooManyRequests, nil, rpcBusy, strconv.Itoa(maxStreams)+" streams of this principal are open, the most that may be")
		return nil, nil, false
	}
	// A principal that was taken out between the two has not been seen by cut: a
	// call is over soon, a stream would stay.
	if stream {
		if _, err := w.s.options.Authenticator.Authenticate(r); err != nil {
			leave()
			w.refuseCaller(rw, err)
			return nil, nil, false
		}
	}
	return r.WithContext(withPrincipal(ctx, &p)), leave, true
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
