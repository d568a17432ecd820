package mcp

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"sync/atomic"

	"caisson/sandbox"
)

// inbound is one HTTP request on its way through the server. It is in the
// request's context, and in that of the call which it carries.
type inbound struct {
	id        string
	claimed   atomic.Bool            // a call has taken the id: it keeps its own record
	principal atomic.Pointer[string] // who makes it, once that is known
}

type inboundKey struct{}

func inboundOf(ctx context.Context) *inbound {
	in, _ := ctx.Value(inboundKey{}).(*inbound)
	return in
}

// newRequestID names one request or call: 96 random bits, of nothing that the
// client says, so that no client can choose or foresee another's.
func newRequestID() string {
	var raw [12]byte
	_, _ = rand.Read(raw[:]) // crypto/rand never fails: it ends the process instead
	return hex.EncodeToString(raw[:])
}

// callID is the id of the call that a context belongs to: that of its HTTP
// request, which the client has in the header X-Request-Id, or a new one on
// stdio. No two calls share one.
func callID(ctx context.Context) string {
	if in := inboundOf(ctx); in != nil && in.claimed.CompareAndSwap(false, true) {
		return in.id
	}
	return newRequestID()
}

// requestID is the id of the HTTP request that a context belongs to, or empty.
func requestID(ctx context.Context) string {
	if in := inboundOf(ctx); in != nil {
		return in.id
	}
	return ""
}

// shownSession is as much of a session's handle as the log may have. What a
// client sends in the place of a handle is its own, and none of the log's.
func shownSession(id string) string {
	if !sandbox.ValidSessionID(id) {
		return ""
	}
	return sandbox.ShortID(id)
}
