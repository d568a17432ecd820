package sandbox

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"
)

// Create makes a session. A persistent one whose workspace is already live for
// the same owner is returned as it is when its resolved spec is the same, and
// refused with KindWorkspaceInUse when it is not (D10). Quotas are
// KindLimit.
func (m *Manager) Create(ctx context.Context, spec Spec, progress Progress) (Info, error) {
	spec, err := m.policy.Apply(spec)
	if err != nil {
		return Info{}, err
	}
	if err := m.holdLease(ctx); err != nil {
		return Info{}, err
	}
	id := NewSessionID()
	e, live, err := m.admit(id, spec)
	if err != nil || live != nil {
		return m.shared(live), err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(m.halt, cancel)()
	began := time.Now()
	session, err := m.make(ctx, id, spec, progress)
	m.observer.SessionMade(time.Since(began), err)
	m.mu.Lock()
	defer m.mu.Unlock()
	if err != nil {
		delete(m.sessions, id)
		if m.halted {
			err = stoppedByOperator("create session").Because(errors.Join(ErrHalted, err))
		}
		return Info{}, err
	}
	now := time.Now()
	e.session, e.info, e.lastSeen, e.made = session, session.Info(), StateRunning, now
	e.touch(now)
	if err := m.refusing("create session"); err != nil {
		e.leaving = true
		m.work.Go(func() { _ = m.remove(id, e, err.Text) }) // it logs what it could not remove
		return Info{}, err
	}
	m.log.Info("session created", "session", ShortID(id), "owner", e.owner, "image", spec.Image, "network", spec.Network)
	return e.view(now), nil
}

// make asks the provider for the session. A persistent workspace may be held by a
// session that another server made, so the engine is asked before, and after, since
// two servers may both have found none (D10).
func (m *Manager) make(ctx context.Context, id string, spec Spec, progress Progress) (Session, error) {
	if spec.Durability != Persistent {
		return m.provider.Create(ctx, id, spec, progress)
	}
	if err := m.bookWorkspace(ctx, id, spec); err != nil {
		return nil, err
	}
	if err := m.clearWorkspace(ctx, spec, ""); err != nil {
		return nil, err
	}
	session, err := m.provider.Create(ctx, id, spec, progress)
	if err != nil {
		return nil, err
	}
	if err := m.clearWorkspace(ctx, spec, id); err != nil {
		return nil, errors.Join(err, m.discard(id))
	}
	return session, nil
}

// clearWorkspace takes the workspace over from sessions of dead servers, and refuses
// when one of a living server holds it. Beside a session of ours that is already made,
// only an older one by the engine's clock counts: of two that were made together one stays.
func (m *Manager) clearWorkspace(ctx context.Context, spec Spec, ours string) error {
	i, err := TakeInventory(ctx, m.provider)
	if err != nil {
		return err
	}
	dead := m.deadIn(i)
	made := slices.IndexFunc(i.Sessions, func(s Info) bool { return s.ID == ours })
	for _, other := range i.Sessions {
		if other.OwnerHash != spec.Owner.Hash() || other.Durability != Persistent || other.WorkspaceKey != spec.WorkspaceKey || m.knows(other.ID) {
			continue
		}
		if _, gone := dead[other.Instance]; gone || other.Instance == m.instance {
			m.log.Info("workspace taken over from a server that is gone", "session", ShortID(other.ID), "instance", other.Instance)
			if _, err := m.provider.Destroy(ctx, other.ID); err != nil {
				return err
			}
			continue
		}
		if made < 0 || older(other, i.Sessions[made]) {
			return Errorf("create session", KindWorkspaceInUse, "the workspace %q is held by a session of another server; end that first, or choose another key", spec.WorkspaceKey)
		}
	}
	return nil
}

func older(a, b Info) bool {
	return a.CreatedAt.Before(b.CreatedAt) || a.CreatedAt.Equal(b.CreatedAt) && a.ID < b.ID
}

// knows says whether a session is on our books: being made, alive or being destroyed.
func (m *Manager) knows(id string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	_, ok := m.sessions[id]
	return ok
}

// discard removes a session that its caller never got.
func (m *Manager) discard(id string) error {
	ctx, cancel := context.WithTimeout(context.Background(), destroyLimit) // the caller's may be over
	defer cancel()
	_, err := m.provider.Destroy(ctx, id)
	return err
}

// admit reserves a place for a session that is about to be made, so that
// concurrent creates cannot pass a quota together. live is the session that
// already holds the workspace.
func (m *Manager) admit(id string, spec Spec) (e, live *entry, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.refusing("create session"); err != nil {
		return nil, nil, err
	}
	mine, owner := 0, spec.Owner.Hash()
	for _, other := range m.sessions {
		if other.owner != owner {
			continue
		}
		mine++
		if spec.Durability == Persistent && other.spec.WorkspaceKey == spec.WorkspaceKey {
			return nil, other, m.shareable(other, spec)
		}
	}
	if err := m.quota(spec, mine); err != nil {
		return nil, nil, err
	}
	if m.limits.Sessions > 0 && len(m.sessions) >= m.limits.Sessions {
		return nil, nil, Errorf("create session", KindLimit, "the server holds %d sessions, the most that it may; try again later", len(m.sessions))
	}
	e = &entry{owner: owner, spec: spec.WithoutFiles(), lastSeen: StateCreating, info: Info{
		ID: id, Image: spec.Image, Network: spec.Network, Durability: spec.Durability, WorkspaceKey: spec.WorkspaceKey,
		Labels: spec.Labels, CreatedAt: time.Now(), TTL: spec.TTL,
	}}
	m.sessions[id] = e
	return e, nil, nil
}

// quota refuses one more session than an owner may have beside mine. A principal's own
// bound is for its sessions; the containers of its tools are its rules' and the policy's
// choice, and have the server's alone.
func (m *Manager) quota(spec Spec, mine int) error {
	most := m.limits.PerOwner
	if spec.Ceilings != nil && !spec.Owner.Tools {
		most = tighter(most, spec.Ceilings.Sessions)
	}
	switch {
	case most <= 0 || mine < most:
		return nil
	case spec.Owner.Tools:
		return Errorf("create session", KindLimit, "%d containers run tools for you, the most that one owner may have; try again when a call has ended", mine)
	}
	return Errorf("create session", KindLimit, "you have %d sessions, and the most that you may have is %d; destroy one first (session_list shows them)", mine, most)
}

// shareable says why a live session cannot serve for spec, if it cannot.
func (m *Manager) shareable(live *entry, spec Spec) error {
	switch {
	case live.session == nil || live.leaving:
		return Errorf("create session", KindBusy, "the workspace's session is being made or ended; try again in a moment")
	case !sameSpec(live.spec, spec):
		return Errorf("create session", KindWorkspaceInUse, "the workspace %q is held by the session %s, which differs in image, network, caps or env; use that session, or destroy it first", spec.WorkspaceKey, live.info.ID)
	}
	return nil
}

func (m *Manager) shared(live *entry) Info {
	if live == nil {
		return Info{}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	now := time.Now()
	if live.session != nil {
		live.touch(now)
	}
	return live.view(now)
}

// sameSpec compares what makes a session what it is: not its ttl and labels.
func sameSpec(a, b Spec) bool {
	return a.Operator == nil && b.Operator == nil && a.Image == b.Image && a.Network == b.Network && a.Isolation == b.Isolation &&
		same(a.CPU, b.CPU) && same(a.MemoryMB, b.MemoryMB) && same(a.Pids, b.Pids) && maps.Equal(a.Env, b.Env)
}

func same[T comparable](a, b *T) bool { return a == b || a != nil && b != nil && *a == *b }
