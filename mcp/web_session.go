package mcp

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"net/http"
	"sync"

	"github.com/mark3labs/mcp-go/server"

	"caisson/sandbox"
)

// clientSessions issues and checks the session ids of Streamable HTTP. mcp-go's
// own manager of known ids keeps every ended one for ever; its default one
// takes any id that looks right, and a made-up one would then key somebody's
// default session.
type clientSessions struct {
	s *Server

	mu  sync.Mutex
	ids map[string]string // whose they are
}

// ResolveSessionIdManager gives mcp-go the manager for one request: the session
// that it begins belongs to whoever makes it.
func (c *clientSessions) ResolveSessionIdManager(r *http.Request) server.SessionIdManager {
	mine := principalSessions{clientSessions: c}
	if r != nil {
		mine.owner = sessionOwner(r.Context())
	}
	return mine
}

// principalSessions are the client sessions as one principal sees them.
type principalSessions struct {
	*clientSessions
	owner string
}

// sessionOwner is whom a request's client session is bound to; empty without
// principals.
func sessionOwner(ctx context.Context) string {
	if p := principalOf(ctx); p != nil {
		return p.Name
	}
	return ""
}

func newClientSessions(s *Server) *clientSessions {
	return &clientSessions{s: s, ids: map[string]string{}}
}

// Generate makes the id of a new client session: 128 random bits.
func (c principalSessions) Generate() string { return c.begin(c.owner) }

func (c *clientSessions) begin(owner string) string {
	var raw [16]byte
	_, _ = rand.Read(raw[:]) // crypto/rand never fails: it ends the process instead
	id := hex.EncodeToString(raw[:])
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ids[id] = owner
	return id
}

// sseSlot is where a stream's context keeps the id of its session.
type sseSlot struct{}

// beginSSE makes the id of an SSE client's session.
func (c *clientSessions) beginSSE(ctx context.Context, _ *http.Request) (string, error) {
	id := c.begin(sessionOwner(ctx))
	if slot, ok := ctx.Value(sseSlot{}).(*string); ok {
		*slot = id
	}
	return id, nil
}

// forget drops a session that has ended by itself.
func (c *clientSessions) forget(id string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.ids, id)
}

// Validate refuses ids that are not of a live session.
func (c principalSessions) Validate(id string) (terminated bool, err error) {
	if !c.known(id, c.owner) {
		return false, sandbox.Errorf("find client session", sandbox.KindSessionNotFound, "no such client session")
	}
	return false, nil
}

// Terminate ends a session: its client has said so, or has been silent for too
// long, or the server ends.
func (c *clientSessions) Terminate(id string) (notAllowed bool, err error) {
	c.mu.Lock()
	_, known := c.ids[id]
	delete(c.ids, id)
	c.mu.Unlock()
	if known {
		c.s.clientLeft(clientKey(overHTTP, id))
	}
	return false, nil
}

// known says whether a session lives that an owner has begun. Another's looks as
// if it had never been (T48).
func (c *clientSessions) known(id, owner string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	whose, ok := c.ids[id]
	return ok && whose == owner
}
