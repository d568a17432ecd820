package sandbox

import (
	"context"
	"sort"
	"time"
)

// Acquire returns the owner's session for the length of one call, which holds
// it: a held session is not idle. release must be called once, at the call's
// end; the idle time counts from there.
func (m *Manager) Acquire(owner Owner, id string) (session Session, release func(), err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	e, err := m.find(owner, id)
	if err != nil {
		return nil, nil, err
	}
	e.holds++
	return &watchedSession{e.session, m, id, e}, func() { m.release(e) }, nil
}

func (m *Manager) release(e *entry) {
	m.mu.Lock()
	defer m.mu.Unlock()
	e.holds--
	e.touch(time.Now())
}

// StartExec runs a command in the owner's session and keeps its record. The
// exec's ID and, where it has none, its timeout are filled here. ctx bounds the
// start alone.
func (m *Manager) StartExec(ctx context.Context, owner Owner, sessionID string, spec ExecSpec) (*Exec, error) {
	if err := m.checkExec(&spec); err != nil {
		return nil, err
	}
	e, err := m.admitExec(owner, sessionID)
	if err != nil {
		return nil, err
	}
	spec.ID = NewExecID()
	spool := m.spools.New()
	exec, err := e.session.Start(ctx, spec, spool)
	m.mu.Lock()
	defer m.mu.Unlock()
	if err != nil {
		e.holds--
		e.running--
		e.touch(time.Now())
		_ = spool.Close() // nothing of it was ever shown
		if KindOf(err) == KindSessionLost {
			m.loseLocked(sessionID, e, reasonOf(err))
		}
		return nil, err
	}
	m.execs.keep(e.owner, exec)
	m.work.Go(func() { m.watch(sessionID, e, exec) })
	m.trimRecords()
	return exec, nil
}

func (m *Manager) checkExec(spec *ExecSpec) error {
	switch {
	case len(spec.Argv) == 0 || spec.Argv[0] == "":
		return Invalid("argv", "a command needs at least one non-empty word")
	case spec.Timeout < 0:
		return Invalid("timeout_seconds", "timeout_seconds is a number of seconds above 0")
	case m.limits.MaxTimeout > 0 && spec.Timeout > m.limits.MaxTimeout:
		return Rejected("timeout_seconds", "the longest timeout that this server allows is %d s", int64(m.limits.MaxTimeout.Seconds()))
	}
	for _, word := range spec.Argv {
		for i := range len(word) {
			if word[i] == 0 {
				return Invalid("argv", "a word of the command has a NUL byte, which no command line can carry")
			}
		}
	}
	if spec.Timeout == 0 {
		spec.Timeout = m.limits.DefaultTimeout
	}
	return CheckEnv("env", spec.Env)
}

func (m *Manager) admitExec(owner Owner, sessionID string) (*entry, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.halted {
		return nil, stoppedByOperator("start command")
	}
	e, err := m.find(owner, sessionID)
	switch {
	case err != nil:
		return nil, err
	case m.closed:
		return nil, shuttingDown()
	case m.limits.ExecsPerSession > 0 && e.running >= m.limits.ExecsPerSession:
		return nil, Errorf("start command", KindLimit, "%d commands run in this session, the most that may; wait for one, or kill one (exec_list shows them)", e.running)
	}
	e.holds++
	e.running++
	return e, nil
}

// watch waits for an exec's end: only then does its session begin to idle (D5).
func (m *Manager) watch(sessionID string, e *entry, exec *Exec) {
	<-exec.Done()
	view := exec.View()
	m.observer.ExecEnded(view, exec.Spool().Total(Stdout), exec.Spool().Total(Stderr))
	m.mu.Lock()
	e.holds--
	e.running--
	e.touch(time.Now())
	known := m.sessions[sessionID] == e && !e.leaving
	m.mu.Unlock()
	if known && view.LostReason == LostContainerGone && m.isGone(sessionID) {
		m.lose(sessionID, e, containerGone)
	}
	exec.Release()
}

// isGone asks the engine whether it has the session no more.
func (m *Manager) isGone(sessionID string) bool {
	ctx, cancel := context.WithTimeout(m.life, destroyLimit)
	defer cancel()
	_, err := m.provider.Open(ctx, sessionID)
	return err != nil && KindOf(err) == KindSessionNotFound
}

// Exec returns the owner's exec, running or kept, or KindExecNotFound.
func (m *Manager) Exec(owner Owner, id string) (*Exec, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	r, ok := m.execs.byID[id]
	if !ok && m.tenure.asked && !m.tenure.recovered {
		return nil, m.unheard("find exec")
	}
	if !ok || r.owner != owner.Hash() {
		return nil, Errorf("find exec", KindExecNotFound, "no such exec; exec_list shows the ones there are")
	}
	return r.exec, nil
}

// Execs returns the owner's execs, of one session or, without one, of all,
// oldest first. Before the sessions of the server before are back it is KindUnavailable.
func (m *Manager) Execs(owner Owner, sessionID string) ([]*Exec, error) {
	if err := m.heard("list execs"); err != nil {
		return nil, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	var mine []*Exec
	hash := owner.Hash()
	for _, r := range m.execs.byID {
		if r.owner == hash && (sessionID == "" || r.exec.SessionID() == sessionID) {
			mine = append(mine, r.exec)
		}
	}
	sort.Slice(mine, func(i, j int) bool { return mine[i].View().StartedAt.Before(mine[j].View().StartedAt) })
	return mine, nil
}

// Touch renews the idle time of the session that an exec runs in: reading its
// output is activity.
func (m *Manager) Touch(owner Owner, sessionID string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if e, err := m.find(owner, sessionID); err == nil {
		e.touch(time.Now())
	}
}

// Drop forgets an exec whose output nobody needs any more, without waiting for its
// retention: a tool call has read it. One that still runs ends as lost; it is not
// stopped.
func (m *Manager) Drop(exec *Exec) {
	m.mu.Lock()
	m.execs.drop(exec.ID())
	m.mu.Unlock()
	m.closeExecs([]*Exec{exec})
}
