package mcp

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"slices"
	"sync"
	"time"

	"caisson/sandbox"
)

// Bounds of the client sessions there may be at a time.
const (
	maxSessionsPerOwner = 1_000
	maxClientSessions   = 10_000
)

// clientSessions are the clients that keep a session with the server over one
// transport. They bound what clients leave behind that never say goodbye: a silent
// one is forgotten after its idle time, and before that when its owner begins too
// many (MT-05, T53).
type clientSessions struct {
	s         *Server
	transport transport
	idle      time.Duration

	mu  sync.Mutex
	ids map[string]*clientSession
}

// clientSession is one client. users counts what goes on in it.
type clientSession struct {
	*peer
	work  sync.WaitGroup
	used  time.Time
	users int
	calls int  // requests after the first
	out   sink // of an SSE client: its stream; under the peer's lock
}

func newClientSessions(s *Server, t transport, idle time.Duration) *clientSessions {
	return &clientSessions{s: s, transport: t, idle: idle, ids: map[string]*clientSession{}}
}

// begin makes a session of 128 random bits for an owner, in use until release. When
// its owner has too many, the one goes that has been silent for the longest, first of
// all those that were never used; only the owner's own, so that nobody can push out
// another.
func (c *clientSessions) begin(ctx context.Context, owner sandbox.Owner) (_ *clientSession, release func(), _ error) {
	var raw [16]byte
	_, _ = rand.Read(raw[:]) // crypto/rand never fails: it ends the process instead
	session := &clientSession{peer: newPeer(ctx, hex.EncodeToString(raw[:]), owner), used: time.Now(), users: 1}
	session.work.Add(1)
	c.mu.Lock()
	mine, victim := 0, (*clientSession)(nil)
	for _, other := range c.ids {
		if other.owner != owner {
			continue
		}
		mine++
		if other.users == 0 && (victim == nil || other.before(victim)) {
			victim = other
		}
	}
	full := mine >= maxSessionsPerOwner
	if full && victim == nil || !full && len(c.ids) >= maxClientSessions {
		c.mu.Unlock()
		session.end()
		return nil, nil, sandbox.Errorf("begin client session", sandbox.KindBusy, "too many clients are connected; close one, or try again later")
	}
	if full {
		delete(c.ids, victim.id)
	}
	c.ids[session.id] = session
	c.mu.Unlock()
	if full {
		c.over(victim)
	}
	return session, func() { c.release(session) }, nil
}

// setOut notes the stream of an SSE client, before its id is told.
func (c *clientSession) setOut(out sink) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.out = out
}

func (c *clientSession) getOut() sink {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.out
}

// before says which of two silent sessions goes first.
func (c *clientSession) before(other *clientSession) bool {
	if (c.calls == 0) != (other.calls == 0) {
		return c.calls == 0
	}
	return c.used.Before(other.used)
}

// find returns a live session, in use until release. Another owner's looks as if it
// had never been (T48).
func (c *clientSessions) find(id string, owner sandbox.Owner) (_ *clientSession, release func(), _ bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	session := c.ids[id]
	if session == nil || session.owner != owner {
		return nil, nil, false
	}
	session.users++
	session.calls++
	session.used = time.Now()
	session.work.Add(1)
	return session, func() { c.release(session) }, true
}

func (c *clientSessions) release(session *clientSession) {
	c.mu.Lock()
	session.users--
	session.used = time.Now()
	c.mu.Unlock()
	session.work.Done()
}

// remove ends a session: its client has said so or has gone.
func (c *clientSessions) remove(session *clientSession) {
	c.mu.Lock()
	known := c.ids[session.id] == session
	delete(c.ids, session.id)
	c.mu.Unlock()
	if known {
		c.over(session)
	}
}

// cut ends the sessions of some principals.
func (c *clientSessions) cut(names []string) {
	c.mu.Lock()
	var gone []*clientSession
	for id, session := range c.ids {
		if session.owner.Principal && slices.Contains(names, session.owner.Name) {
			delete(c.ids, id)
			gone = append(gone, session)
		}
	}
	c.mu.Unlock()
	for _, session := range gone {
		c.over(session)
	}
}

// over lets go of what a session had that is no longer listed.
func (c *clientSessions) over(session *clientSession) {
	c.s.clientLeft(clientKey(c.transport, session.id))
	session.end()
}

// sweep forgets the sessions that are silent for too long, until ctx ends; then it
// ends all there are.
func (c *clientSessions) sweep(ctx context.Context) {
	ticker := time.NewTicker(max(c.idle/4, time.Millisecond))
	defer ticker.Stop()
	for ctx.Err() == nil {
		select {
		case <-ctx.Done():
		case <-ticker.C:
		}
		c.mu.Lock()
		var gone []*clientSession
		for id, session := range c.ids {
			if ctx.Err() != nil || session.users == 0 && time.Since(session.used) > c.idle {
				delete(c.ids, id)
				gone = append(gone, session)
			}
		}
		c.mu.Unlock()
		for _, session := range gone {
			c.over(session)
		}
	}
}

// count is how many sessions there are.
func (c *clientSessions) count() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.ids)
}
