package sandbox

import (
	"context"
	"sort"
	"time"
)

// destroyLimit bounds the removal of one session, on a context of its own.
const destroyLimit = 30 * time.Second

// Session returns one session as List would show it, without asking the engine.
func (m *Manager) Session(owner Owner, id string) (Info, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	e, err := m.find(owner, id)
	if err != nil {
		return Info{}, err
	}
	return e.view(time.Now()), nil
}

// List returns the owner's sessions, oldest first, after a look at the engine:
// one whose container is gone is taken off and answers KindSessionLost from
// then on. When the engine does not answer, its error is returned together with
// the sessions as last known, each with a note.
func (m *Manager) List(ctx context.Context, owner Owner) ([]Info, error) {
	if err := m.heard("list sessions"); err != nil {
		return nil, err
	}
	asked := time.Now()
	seen, err := m.provider.List(ctx)
	m.mu.Lock()
	defer m.mu.Unlock()
	now := time.Now()
	if err == nil {
		m.reconcile(seen, asked)
	}
	var mine []Info
	hash := owner.Hash()
	for _, e := range m.sessions {
		if e.owner != hash || e.leaving {
			continue
		}
		info := e.view(now)
		if err != nil {
			info.Notes = append(info.Notes, Note{"engine_unavailable", "the engine does not answer: this is the state as last known"})
		}
		mine = append(mine, info)
	}
	sort.Slice(mine, func(i, j int) bool { return mine[i].CreatedAt.Before(mine[j].CreatedAt) })
	return mine, err
}

// reconcile holds what we know against what the engine shows. asked is when it was asked:
// what has been made since is not in its answer. m.mu is held.
func (m *Manager) reconcile(seen []Info, asked time.Time) {
	states := make(map[string]State, len(seen))
	for _, info := range seen {
		states[info.ID] = info.State
	}
	for id, e := range m.sessions {
		if e.session == nil || e.leaving || e.made.After(asked) {
			continue
		}
		state, there := states[id]
		if !there {
			m.loseLocked(id, e, containerGone)
			continue
		}
		e.lastSeen = state
	}
}

// Extend renews a session's idle time; ttl, where it is not zero, becomes its
// time to live if it is longer, within the policy's ceiling and those of bounds, which may
// be nil. It never shortens.
func (m *Manager) Extend(owner Owner, id string, ttl time.Duration, bounds *Ceilings) (Info, error) {
	if err := m.policy.within(bounds).checkTTL(ttl, bounds); err != nil {
		return Info{}, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	e, err := m.find(owner, id)
	if err != nil {
		return Info{}, err
	}
	now := time.Now()
	if ttl > e.spec.TTL {
		e.spec.TTL, e.info.TTL = ttl, ttl
	}
	e.touch(now)
	return e.view(now), nil
}

// Destroy ends the owner's session. existed is false for a handle that is
// unknown, foreign or gone already, which is success. Its running execs end as
// lost. workspace says what became of the workspace: deleted or kept.
func (m *Manager) Destroy(ctx context.Context, owner Owner, id string) (existed bool, workspace string, err error) {
	m.mu.Lock()
	e, ok := m.sessions[id]
	if !ok || m.tenure.fenced || e.owner != owner.Hash() || e.session == nil || e.leaving {
		defer m.mu.Unlock()
		if _, err := m.find(owner, id); err != nil && KindOf(err) != KindSessionNotFound && KindOf(err) != KindSessionLost {
			return false, "", err // still being made, or not known yet
		}
		return false, "", nil
	}
	e.leaving = true
	m.mu.Unlock()
	workspace = "deleted"
	if e.spec.Durability == Persistent {
		workspace = "kept"
	}
	done := make(chan error, 1)
	m.work.Go(func() { done <- m.remove(id, e, "") })
	select {
	case err := <-done:
		return err == nil, workspace, err
	case <-ctx.Done():
		return false, "", Errorf("destroy session", KindUnknownOutcome, "the session is still being destroyed; session_list will tell").Because(ctx.Err())
	}
}

// remove takes a session that is marked as leaving off the engine, on a clock of
// its own: no caller that goes away may leave half of it behind. With a reason
// the handle answers KindSessionLost afterwards; without one it is unknown.
func (m *Manager) remove(id string, e *entry, reason string) error {
	ctx, cancel := context.WithTimeout(context.Background(), destroyLimit)
	defer cancel()
	_, err := m.provider.Destroy(ctx, id)
	if err == nil { // else its commands run on, and can still be killed
		m.loseExecs(id, "the session was destroyed")
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if err != nil {
		e.leaving, e.why = false, "" // still there as far as anyone knows: it can be destroyed again
		m.log.Warn("session not destroyed", "session", ShortID(id), "error", err)
		return err
	}
	if reason != "" {
		m.forget(id, e, reason)
	} else {
		delete(m.sessions, id)
	}
	m.observer.SessionEnded(false)
	switch { // for the log alone: nobody is told of an end that was asked for
	case reason != "":
	case e.info.Tools:
		reason = "its tool does not need it any more"
	default:
		reason = "destroyed"
	}
	m.log.Info("session ended", "session", ShortID(id), "reason", reason)
	return nil
}

// Workspaces returns the owner's persistent workspaces, by key.
func (m *Manager) Workspaces(ctx context.Context, owner Owner) ([]Workspace, error) {
	all, err := m.provider.Workspaces(ctx, owner)
	sort.Slice(all, func(i, j int) bool { return all[i].Key < all[j].Key })
	return all, err
}

// DeleteWorkspace removes a persistent workspace that no session holds.
func (m *Manager) DeleteWorkspace(ctx context.Context, owner Owner, key string) error {
	if !workspaceKeyForm.MatchString(key) {
		return Invalid("workspace_key", "a workspace key is 1 to 64 of the characters A-Z a-z 0-9 _ -")
	}
	m.mu.Lock()
	if m.tenure.fenced {
		m.mu.Unlock()
		return fencedError("delete workspace")
	}
	for id, e := range m.sessions {
		if e.owner == owner.Hash() && e.spec.WorkspaceKey == key {
			m.mu.Unlock()
			return Errorf("delete workspace", KindWorkspaceInUse, "the workspace %q is held by the session %s; destroy that first", key, id)
		}
	}
	m.mu.Unlock()
	return m.provider.DeleteWorkspace(ctx, owner, key)
}

func shuttingDown() *Error {
	return Errorf("create session", KindUnavailable, "the server is shutting down")
}
