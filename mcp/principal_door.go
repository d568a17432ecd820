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
func (w *web) admit(rw http.ResponseWriter, r *http.Request) (*http.Request, bool) {
	if w.s.options.Authenticator == nil || r.Method == http.MethodOptions {
		return r, true
	}
	p, err := w.s.options.Authenticator.Authenticate(r)
	if err != nil {
		w.refuse(rw, err)
		return nil, false
	}
	return r.WithContext(withPrincipal(r.Context(), &p)), true
}

// refuse answers a request that has no principal. An error that is no Refusal
// stays here: nobody foresaw it.
func (w *web) refuse(rw http.ResponseWriter, err error) {
	var refusal *principal.Refusal
	if !errors.As(err, &refusal) {
		ref := newReference()
		w.s.log.Error("a caller could not be checked", "ref", ref, "error", err)
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
