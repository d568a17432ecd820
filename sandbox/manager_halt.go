package sandbox

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"
)

const (
	// HaltLimit is how long Halt takes at most (T57).
	HaltLimit = 10 * time.Second
	// haltLook is between two looks at what is left; what could not be ended is tried again.
	haltLook = 250 * time.Millisecond
)

const wasHalted = "the operator stopped all sessions"

// ErrHalted is the cause of every refusal after Halt: it lasts until the server is started
// again.
var ErrHalted = errors.New("halted")

func stoppedByOperator(op string) *Error {
	return Errorf(op, KindUnavailable, "stopped by the operator: this server makes no sessions and runs no commands until it is started again").Because(ErrHalted)
}

// refusing is why no new work is taken; nil while it is. m.mu is held.
func (m *Manager) refusing(op string) *Error {
	switch {
	case m.halted:
		return stoppedByOperator(op)
	case m.closed:
		return shuttingDown()
	}
	return nil
}

// Killer is a Provider that can end all that runs in a session sooner than Destroy does,
// which is needed all the same. It may be called concurrently, is unblocked by its context,
// and a session that is not there is success.
type Killer interface {
	Kill(ctx context.Context, id string) error
}

// Halt is the operator's kill switch: from now on every create and every command is
// KindUnavailable, and every session of this instance is ended, side by side, those that run
// tools and those that the engine has and the books have not included. Creates under way are
// cut off. Persistent workspaces stay. First all that runs is killed, then what is left of it
// removed. It returns after HaltLimit at the latest, also when the engine does not answer,
// with how many sessions it ended: nothing runs in them any more. The error names those that
// may be left. What is left is tried again with every sweep and by Close. A manager that was
// fenced has no sessions: KindFenced.
func (m *Manager) Halt(ctx context.Context) (ended int, err error) {
	ctx, cancel := context.WithTimeout(ctx, HaltLimit)
	defer cancel()
	m.mu.Lock()
	if m.tenure.fenced {
		m.mu.Unlock()
		return 0, fencedError("stop all sessions")
	}
	m.halted = true
	m.mu.Unlock()
	m.stop()
	m.log.Warn("all sessions are being stopped by the operator")
	h := &halting{m: m, dead: map[string]bool{}}
	looked := make(chan error, 1)
	m.work.Go(func() { looked <- h.strays(ctx) })
	left := h.known(ctx)
	err = <-looked // bounded by ctx
	left = append(left, h.failed...)
	if len(left) > 0 || err != nil {
		failure := Errorf("stop all sessions", KindUnknownOutcome, "%d sessions were ended, and not all could be: %s", h.count(), leftText(left)).Because(err)
		m.log.Error("not all sessions could be stopped", "ended", h.count(), "left", len(left), "error", failure)
		return h.count(), failure
	}
	m.log.Warn("all sessions were stopped by the operator", "ended", h.count())
	return h.count(), nil
}

func leftText(left []string) string {
	if len(left) == 0 {
		return "the engine did not say what else it has"
	}
	short := make([]string, len(left))
	for i, id := range left {
		short[i] = ShortID(id)
	}
	slices.Sort(short)
	return "these may be left: " + strings.Join(short, ", ")
}

// halting is one Halt.
type halting struct {
	m *Manager

	mu     sync.Mutex
	dead   map[string]bool // nothing runs in them any more
	failed []string        // that no books have and that could not be ended
}

func (h *halting) isDead(id string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.dead[id] = true
}

func (h *halting) count() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.dead)
}

// known ends what is on the books, and returns what may run on when ctx ends.
func (h *halting) known(ctx context.Context) (left []string) {
	for {
		onBooks := h.round()
		if len(onBooks) == 0 || waitFor(ctx, haltLook) != nil {
			break
		}
	}
	h.m.mu.Lock()
	defer h.m.mu.Unlock()
	h.mu.Lock()
	defer h.mu.Unlock()
	for id := range h.m.sessions {
		if !h.dead[id] {
			left = append(left, id)
		}
	}
	return left
}

// round begins the end of every session that is not being ended yet, and returns all that
// are on the books: those that are being made are cut off and go by themselves.
func (h *halting) round() (onBooks []string) {
	m := h.m
	m.mu.Lock()
	defer m.mu.Unlock()
	batch := map[string]*entry{}
	for id, e := range m.sessions {
		onBooks = append(onBooks, id)
		if e.session != nil && !e.leaving {
			e.leaving, e.why = true, wasHalted
			batch[id] = e
		}
	}
	if len(batch) > 0 {
		m.work.Go(func() { h.end(batch) }) // goes on when Halt has returned
	}
	return onBooks
}

// end kills all that runs in a batch of sessions and then removes them. Their commands are
// given up before: each would ask the engine how it ended, which has enough to do.
func (h *halting) end(batch map[string]*entry) {
	each := func(f func(id string, e *entry)) {
		var all sync.WaitGroup
		for id, e := range batch {
			all.Go(func() { f(id, e) })
		}
		all.Wait()
	}
	if killer, ok := h.m.provider.(Killer); ok {
		ctx, cancel := context.WithTimeout(context.Background(), HaltLimit) // a kill outlives nobody who asked for it
		defer cancel()
		each(func(id string, _ *entry) {
			h.m.loseExecs(id, wasHalted)
			if killer.Kill(ctx, id) == nil { // else its removal says why
				h.isDead(id)
			}
		})
	}
	each(func(id string, e *entry) { // bounded by destroyLimit
		if h.m.remove(id, e, wasHalted) == nil {
			h.isDead(id)
		}
	})
}

// strays ends what the engine has of this instance and the books have not: sessions of the
// server before that were not recovered yet, remains of creates whose answer never came.
func (h *halting) strays(ctx context.Context) error {
	seen, err := h.m.provider.List(ctx)
	if err != nil {
		return err
	}
	var all sync.WaitGroup
	for _, info := range seen {
		if info.Instance != h.m.instance || h.m.knows(info.ID) {
			continue
		}
		all.Go(func() {
			_, err := h.m.provider.Destroy(ctx, info.ID)
			h.mu.Lock()
			defer h.mu.Unlock()
			if err != nil {
				h.m.log.Warn("session not destroyed", "session", ShortID(info.ID), "error", err)
				h.failed = append(h.failed, info.ID)
				return
			}
			h.dead[info.ID] = true
		})
	}
	all.Wait()
	return nil
}

func waitFor(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return ctx.Err() // both may be due
	case <-ctx.Done():
		return ctx.Err()
	}
}
