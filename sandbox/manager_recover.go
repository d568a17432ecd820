package sandbox

import (
	"context"
	"errors"
	"sync"
	"time"
)

// recover puts the sessions that the engine has of this instance on the books, as the
// server before left them, each with a fresh idle time (D14). What was never started was
// never anybody's, and goes; so do containers of tools, whose calls ended with that server.
func (m *Manager) recover(ctx context.Context) error {
	seen, err := m.provider.List(ctx)
	if err != nil {
		return err
	}
	var going []string
	for _, info := range seen {
		switch {
		case info.Instance != m.instance || m.knows(info.ID):
		case info.State == StateCreating || info.Tools:
			m.log.Info("removed after a restart", "session", ShortID(info.ID), "state", info.State, "tools", info.Tools)
			going = append(going, info.ID)
		default:
			if err := m.restore(ctx, info.ID); err != nil {
				return err
			}
		}
	}
	// Those that cannot be ended now are ended by a later sweep, and keep nothing waiting.
	m.report("not all remains of the server before could be removed", m.destroyEach(ctx, going))
	return nil
}

// destroyEach ends sessions that are on nobody's books, side by side.
func (m *Manager) destroyEach(ctx context.Context, ids []string) error {
	errs := make([]error, len(ids))
	var all sync.WaitGroup
	for i, id := range ids {
		all.Go(func() { _, errs[i] = m.provider.Destroy(ctx, id) })
	}
	all.Wait()
	return errors.Join(errs...)
}

func (m *Manager) restore(ctx context.Context, id string) error {
	session, err := m.provider.Open(ctx, id)
	if err != nil {
		if kind := KindOf(err); kind == KindSessionNotFound || kind == KindSessionLost {
			return nil // gone since it was listed
		}
		return err
	}
	info := session.Info()
	var orphans []Orphan
	if info.State == StateRunning {
		// One session that cannot tell keeps no other from its recovery.
		if orphans, err = session.Orphans(ctx); err != nil {
			m.log.Warn("not all commands that run on could be found", "session", ShortID(id), "error", err)
		}
	}
	spec := session.Spec()
	if spec.TTL <= 0 {
		spec.TTL = m.policy.DefaultTTL
	}
	info.TTL = spec.TTL
	e := &entry{owner: info.OwnerHash, spec: spec, session: session, info: info, lastSeen: info.State, made: time.Now(), notes: []Note{{
		"recovered", "the server was restarted: files are as they were, commands that ran are lost (those still running can be killed), and the idle time begins anew",
	}}}
	e.touch(time.Now())
	m.mu.Lock()
	m.sessions[id] = e
	m.mu.Unlock()
	m.log.Info("session recovered", "session", ShortID(id), "owner", info.OwnerHash, "commands", len(orphans))
	for _, o := range orphans {
		m.adopt(id, e, o)
	}
	return nil
}

// adopt keeps a record of a command whose server is gone: nobody can know how it ends
// and what it printed, but it can be killed, it keeps its session alive while it runs,
// and it ends when its timeout is due.
func (m *Manager) adopt(sessionID string, e *entry, o Orphan) {
	spec := ExecSpec{ID: o.ExecID, Argv: beginning(o.Argv)}
	exec := NewExec(sessionID, spec, m.spools.New(), m.log)
	exec.Attach(o.Backend)
	exec.Lose(LostServerRestarted, "the server was restarted while the command ran: how it ends and what it printed is lost; kill still works")
	m.mu.Lock()
	defer m.mu.Unlock()
	m.execs.keep(e.owner, exec)
	e.holds++
	e.running++
	m.work.Go(func() { m.follow(e, exec, o) })
}

// orphanLook is how often the engine is asked whether an orphan still runs.
const orphanLook = 2 * time.Second

// follow waits for an orphan's end.
func (m *Manager) follow(e *entry, exec *Exec, o Orphan) {
	due := o.TimeoutAt
	if due.IsZero() {
		due = time.Now().Add(m.limits.DefaultTimeout)
	}
	defer func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		e.holds--
		e.running--
		e.touch(time.Now())
	}()
	for {
		select {
		case <-m.life.Done():
			return
		case <-time.After(orphanLook):
		}
		ctx, cancel := context.WithTimeout(m.life, leaseTry)
		running, err := o.Running(ctx)
		cancel()
		switch {
		case err == nil && !running:
			return
		case err != nil && KindOf(err) == KindSessionLost:
			return
		case time.Now().After(due):
			if _, err := exec.Kill(SignalKill); err == nil {
				return
			}
		}
	}
}
