package mcp

import (
	"context"
	"errors"
	"sync"

	"caisson/sandbox"
)

// defaults keeps each client's default session: the one that is used, and made
// on first use, where a call names none.
type defaults struct {
	mu      sync.Mutex
	clients map[string]*defaultSession
}

// defaultSession is one client's. turn holds a token while the session is looked
// up or made, so that two first calls at once make one session.
type defaultSession struct {
	turn chan struct{}
	id   string
}

// use returns the client's default session, made by create when there is none.
// ctx unblocks the wait for another call that is making it.
func (d *defaults) use(ctx context.Context, client string, create func() (string, error)) (id string, created bool, err error) {
	d.mu.Lock()
	if d.clients == nil {
		d.clients = map[string]*defaultSession{}
	}
	mine := d.clients[client]
	if mine == nil {
		mine = &defaultSession{turn: make(chan struct{}, 1)}
		d.clients[client] = mine
	}
	d.mu.Unlock()

	select {
	case mine.turn <- struct{}{}:
		defer func() { <-mine.turn }()
	case <-ctx.Done():
		return "", false, ctx.Err()
	}
	d.mu.Lock()
	id = mine.id
	d.mu.Unlock()
	if id != "" {
		return id, false, nil
	}
	if id, err = create(); err != nil {
		return "", false, err
	}
	d.mu.Lock()
	mine.id = id
	d.mu.Unlock()
	return id, true, nil
}

// forget drops a session as anybody's default: it was destroyed, or found lost.
func (d *defaults) forget(id string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, other := range d.clients {
		if other.id == id {
			other.id = ""
		}
	}
}

// end drops a client that has left and returns its default session, if it had
// one.
func (d *defaults) end(client string) (id string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if mine := d.clients[client]; mine != nil {
		id = mine.id
		delete(d.clients, client)
	}
	return id
}

// target is the session that a call works in.
type target struct {
	id        string
	created   bool // by this call
	byDefault bool
}

// target finds the session that a call means: the one it names, or its client's
// default one. An empty id never stands for the default (it would let a slip
// run a command in the wrong place), and a client without a session of its own
// has none to share with strangers.
func (s *Server) target(ctx context.Context, c *call, named *string) (target, error) {
	if named != nil {
		return target{id: *named}, nil
	}
	if c.client == "" {
		return target{}, sandbox.Invalid("session_id", "session_id is required here: this client keeps no session with the server, so it has no default one; session_create makes a session and returns its session_id")
	}
	id, created, err := s.defaults.use(ctx, c.client, func() (string, error) {
		info, err := s.manager.Create(ctx, sandbox.Spec{Owner: c.owner, Ceilings: c.ceilings()}, c.stage)
		return info.ID, err
	})
	return target{id, created, true}, err
}

// lost makes sense of an error from a session. A default one that has gone is
// said so once; the call after it makes a new one.
func (s *Server) lost(t target, err error) error {
	kind := sandbox.KindOf(err)
	if err == nil || !t.byDefault || kind != sandbox.KindSessionLost && kind != sandbox.KindSessionNotFound {
		return err
	}
	s.defaults.forget(t.id)
	reason := "the default session is gone, with its files and processes"
	var e *sandbox.Error
	if errors.As(err, &e) && kind == sandbox.KindSessionLost && e.Text != "" {
		reason = e.Text
	}
	row := codes[sandbox.KindSessionLost]
	return &failure{code: row.code, text: reason + "; the next call without session_id makes a new default session", retriable: true}
}
