package mcp

import (
	"context"

	"github.com/mark3labs/mcp-go/server"

	"caisson/sandbox"
)

// caller is who makes a call: whose sessions it reaches, and which client of
// that owner it is.
type caller struct {
	owner     sandbox.Owner
	client    string     // one connection or client session, or all stateless clients of one principal; empty for a stateless client without one
	principal *Principal // nil on stdio, and where the server has no principals
}

// key is what a caller's calls and read positions are kept under. Clients
// without a session of their own share their owner's: never a key that clients
// of different owners could share.
func (c caller) key() string {
	if c.client != "" {
		return c.client
	}
	return "owner:" + c.owner.Name
}

// transport tells apart clients that connect in different ways; the value is in
// the context of every request that came over it.
type transport string

const (
	overStdio transport = "stdio"
	overHTTP  transport = "http"
	overSSE   transport = "sse"
)

type transportKey struct{}

func withTransport(ctx context.Context, t transport) context.Context {
	return context.WithValue(ctx, transportKey{}, t)
}

// callerOf reads the caller from a request's context. A request of protocol
// 2026-07-28 over HTTP has a client session with an empty id, which names
// nobody.
func (s *Server) callerOf(ctx context.Context) caller {
	c := caller{owner: sandbox.Owner{Name: s.owner}, principal: principalOf(ctx)}
	if c.principal != nil {
		// A stateless client of a principal shares its default session with the
		// others of that principal, and with nobody else.
		c.owner, c.client = c.principal.Owner(), "principal:"+c.principal.Name
	}
	if session := server.ClientSessionFromContext(ctx); session != nil && session.SessionID() != "" {
		c.client = clientKey(transportOf(ctx), session.SessionID())
	}
	return c
}

func transportOf(ctx context.Context) transport {
	t, _ := ctx.Value(transportKey{}).(transport)
	return t
}

func clientKey(t transport, session string) string { return string(t) + ":" + session }
