package sandbox

import "context"

// turns lets the creates of one owner count its workspaces one after another, while those
// of other owners go on. The manager's lock guards it.
type turns map[string]*turn

type turn struct {
	free  chan struct{} // holds one token while nobody has the turn
	users int           // who has it or waits for it
}

// bookWorkspace reserves a place among the owner's persistent workspaces for the session
// id, which is on the books already, or refuses with KindLimit. A workspace that is there
// takes no new place. The place is held for as long as the session is on the books; by
// then the engine shows the workspace, or none was made.
//
// The bound is exact for one server. Servers that share an engine and an owner each count
// what the engine shows, so that two who create at the same moment may both pass.
func (m *Manager) bookWorkspace(ctx context.Context, id string, spec Spec) error {
	most := tighter(m.limits.WorkspacesPerOwner, spec.Ceilings.values().MaxWorkspaces)
	if most <= 0 {
		return nil
	}
	owner := spec.Owner.Hash()
	release, err := m.takeTurn(ctx, owner)
	if err != nil {
		return err
	}
	defer release()
	// Before the engine is asked: what is made while it answers may be missing in the answer.
	keys := m.bookedWorkspaces(owner)
	kept, err := m.provider.Workspaces(ctx, spec.Owner)
	if err != nil {
		return err
	}
	for _, w := range kept {
		keys[w.Key] = true
	}
	if n := len(keys); n >= most && !keys[spec.WorkspaceKey] {
		e := Errorf("create session", KindLimit, "you have %d workspaces, and the most that you may have is %d; use one that is there, or delete one with workspace_delete (workspace_list shows them)", n, most)
		e.Field = "workspace_key"
		return e
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if e, ok := m.sessions[id]; ok {
		e.booked = true
	}
	return nil
}

// bookedWorkspaces are the keys of the owner's sessions that have got a place.
func (m *Manager) bookedWorkspaces(owner string) map[string]bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	keys := map[string]bool{}
	for _, e := range m.sessions {
		if e.owner == owner && e.booked {
			keys[e.spec.WorkspaceKey] = true
		}
	}
	return keys
}

// takeTurn waits until no other create of the owner counts, or for ctx. Who gets it calls
// release once.
func (m *Manager) takeTurn(ctx context.Context, owner string) (release func(), err error) {
	m.mu.Lock()
	t := m.turns[owner]
	if t == nil {
		t = &turn{free: make(chan struct{}, 1)}
		t.free <- struct{}{}
		m.turns[owner] = t
	}
	t.users++
	m.mu.Unlock()
	leave := func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		if t.users--; t.users == 0 {
			delete(m.turns, owner)
		}
	}
	select {
	case <-t.free:
		return func() { t.free <- struct{}{}; leave() }, nil
	case <-ctx.Done():
		leave()
		return nil, Errorf("create session", KindCancelled, "the call was cancelled before the session was made").Because(ctx.Err())
	}
}
