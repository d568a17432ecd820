package mcp

import (
	"crypto/rand"
	"encoding/hex"
	"sync"

	"caisson/sandbox"
)

// clientSessions issues and checks the session ids of Streamable HTTP. mcp-go's
// own manager of known ids keeps every ended one for ever; its default one
// takes any id that looks right, and a made-up one would then key somebody's
// default session.
type clientSessions struct {
	s *Server

	mu  sync.Mutex
	ids map[string]struct{}
}

func newClientSessions(s *Server) *clientSessions {
	return &clientSessions{s: s, ids: map[string]struct{}{}}
}

// Generate makes the id of a new client session: 128 random bits.
func (c *clientSessions) Generate() string {
	var raw [16]byte
	_, _ = rand.Read(raw[:]) // crypto/rand never fails: it ends the process instead
	id := hex.EncodeToString(raw[:])
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ids[id] = struct{}{}
	return id
}

// Validate refuses ids that are not of a live session.
func (c *clientSessions) Validate(id string) (terminated bool, err error) {
	if !c.known(id) {
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

func (c *clientSessions) known(id string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	_, ok := c.ids[id]
	return ok
}
