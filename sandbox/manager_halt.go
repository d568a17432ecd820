package sandbox

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// HaltLimit is how long Halt takes at most (T57).
	HaltLimit = 10 * time.Second
	// haltLook is between two looks at what is left; what could not be ended is tried again.
	haltLook = 250 * time.Millisecond
)

const wasHalted = "the operator stopped all sessions"

func stoppedByOperator(op string) *Error {
	return Errorf(op, KindUnavailable, "stopped by the operator: this server makes no sessions and runs no commands until it is started again")
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

// Halt is the operator's kill switch: from now on every create and every command is
// KindUnavailable, and every session of this instance is ended, side by side, those that run
// tools and those that the engine has and the books have not included. Creates under way are
// cut off. Persistent workspaces stay. It returns after HaltLimit at the latest, also when
// the engine does not answer, with how many sessions it ended; the error names those that
// may be left. They are tried again with every sweep and by Close. A manager that was fenced
// has no sessions: KindFenced.
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
	var count atomic.Int64
	left := m.haltKnown(ctx, &count)
	if len(left) == 0 {
		left, err = m.haltStrays(ctx, &count)
	}
	ended = int(count.Load())
	if len(left) > 0 || err != nil {
		failure := Errorf("stop all sessions", KindUnknownOutcome, "%d sessions were ended, and not all could be: %s", ended, leftText(left)).Because(err)
		m.log.Error("not all sessions could be stopped", "ended", ended, "left", len(left), "error", failure)
		return ended, failure
	}
	m.log.Warn("all sessions were stopped by the operator", "ended", ended)
	return ended, nil
}

func leftText(left []string) string {
	if len(left) == 0 {
		return "the engine did not say what is left"
	}
	short := make([]string, len(left))
	for i, id := range left {
		short[i] = ShortID(id)
	}
	slices.Sort(short)
	return "these may be left: " + strings.Join(short, ", ")
}

// haltKnown ends what is on the books, and returns what is left of it when ctx ends.
func (m *Manager) haltKnown(ctx context.Context, ended *atomic.Int64) (left []string) {
	for {
		left = m.haltRound(ended)
		if len(left) == 0 {
			return nil
		}
		if err := waitFor(ctx, haltLook); err != nil {
			return m.onBooks()
		}
	}
}

// haltRound starts the end of every session that is not being ended yet, and returns all
// that are on the books: those that are being made are cut off and go by themselves.
func (m *Manager) haltRound(ended *atomic.Int64) (left []string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for id, e := range m.sessions {
		left = append(left, id)
		if e.session == nil || e.leaving {
			continue
		}
		e.leaving, e.why = true, wasHalted
		m.work.Go(func() { // bounded by destroyLimit, and goes on when Halt has returned
			if m.remove(id, e, wasHalted) == nil {
				ended.Add(1)
			}
		})
	}
	return left
}

func (m *Manager) onBooks() (ids []string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for id := range m.sessions {
		ids = append(ids, id)
	}
	return ids
}

// haltStrays ends what the engine has of this instance and the books have not: sessions of
// the server before that were not recovered yet, remains of creates that were cut off.
func (m *Manager) haltStrays(ctx context.Context, ended *atomic.Int64) (left []string, err error) {
	seen, err := m.provider.List(ctx)
	if err != nil {
		return nil, err
	}
	var (
		mu   sync.Mutex
		errs []error
		all  sync.WaitGroup
	)
	for _, info := range seen {
		if info.Instance != m.instance {
			continue
		}
		all.Go(func() {
			existed, err := m.provider.Destroy(ctx, info.ID)
			mu.Lock()
			defer mu.Unlock()
			switch {
			case err != nil:
				left, errs = append(left, info.ID), append(errs, err)
			case existed:
				ended.Add(1)
			}
		})
	}
	all.Wait()
	return left, errors.Join(errs...)
}

func waitFor(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
