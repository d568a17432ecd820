package docker

import (
	"context"
	"sync"

	"github.com/containerd/errdefs"

	"caisson/sandbox"
)

// freezes is which containers this process pauses for transfers, by their ids. A
// paused one that is not among them was left so by a server that is gone, or was
// paused by an operator.
type freezes struct {
	mu    sync.Mutex
	under map[string]int  // transfers that have paused it, or are about to
	stuck map[string]bool // could not be unpaused
}

func (f *freezes) begin(containerID string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.under == nil {
		f.under, f.stuck = map[string]int{}, map[string]bool{}
	}
	f.under[containerID]++
}

// end forgets a transfer's pause; thawed is false where the container stays paused.
func (f *freezes) end(containerID string, thawed bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.under[containerID]--; f.under[containerID] <= 0 {
		delete(f.under, containerID)
	}
	if !thawed {
		f.stuck[containerID] = true
	}
}

func (f *freezes) has(containerID string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.under[containerID] > 0
}

// takeStuck says, once, that a container stays paused since we could not unpause it.
func (f *freezes) takeStuck(containerID string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	stuck := f.stuck[containerID]
	delete(f.stuck, containerID)
	return stuck
}

// thawLeft lets a session run again whose transfer ended with its server. One
// that this process freezes itself is left alone: its transfer must not be raced.
func (s *Session) thawLeft(ctx context.Context) error {
	if s.p.freezes.has(s.containerID) {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, callLimit)
	defer cancel()
	err := s.p.api.ContainerUnpause(ctx, s.containerID)
	if err != nil && !errdefs.IsConflict(err) && !errdefs.IsInternal(err) {
		return s.failed("open session", err)
	}
	if err != nil {
		// Somebody else was faster, or it cannot be thawed: its next use tells.
		s.p.log.Warn("a paused session was not unpaused", "session", sandbox.ShortID(s.info.ID), "error", err)
		return nil
	}
	s.p.log.Info("a session that was left paused runs again", "session", sandbox.ShortID(s.info.ID))
	return nil
}
