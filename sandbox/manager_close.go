package sandbox

import (
	"context"
	"errors"
	"sync"
)

// Drain takes no new sessions and commands from now on, and waits until no command runs
// any more or ctx ends.
func (m *Manager) Drain(ctx context.Context) {
	m.mu.Lock()
	m.closed = true
	m.mu.Unlock()
	for {
		running := m.runningExecs()
		if len(running) == 0 {
			return
		}
		select {
		case <-running[0].Done():
		case <-ctx.Done():
			return
		}
	}
}

func (m *Manager) runningExecs() []*Exec {
	m.mu.Lock()
	defer m.mu.Unlock()
	var running []*Exec
	for _, r := range m.execs.byID {
		if r.exec.View().Status == StatusRunning {
			running = append(running, r.exec)
		}
	}
	return running
}

// Close ends the manager: no new work is taken, sessions that are not kept are destroyed
// (those that run the manifest's tools are never kept),
// commands in those that are kept are stopped, all side by side, and every goroutine has
// ended when it returns. Persistent workspaces stay. ctx bounds the wait for the engine;
// what could not be done is in the error. After a fence nothing is done on the engine.
func (m *Manager) Close(ctx context.Context) error {
	m.mu.Lock()
	m.closed = true
	fenced := m.tenure.fenced
	m.mu.Unlock()
	m.end()
	done := make(chan error, 1)
	m.work.Go(func() { // outlives ctx by no more than the bounds of what it does
		if fenced {
			done <- nil
			return
		}
		done <- m.endAll()
	})
	var err error
	select {
	case err = <-done:
	case <-ctx.Done():
		return Errorf("shut down", KindUnknownOutcome, "sessions were still being destroyed when the time for it was over").Because(ctx.Err())
	}
	m.mu.Lock()
	var all []*Exec
	for id, r := range m.execs.byID {
		all = append(all, r.exec)
		m.execs.drop(id)
	}
	m.mu.Unlock()
	m.closeExecs(all)
	m.work.Wait() // a session that a call was ending is gone by now, and counts no more
	if fenced {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, leaseTry)
	defer cancel()
	return errors.Join(err, m.endLease(ctx))
}

const wasShutDown = "the server was shut down"

// endAll ends what is not kept.
func (m *Manager) endAll() error {
	m.mu.Lock()
	leaving, going := map[string]*entry{}, map[string]bool{}
	for id, e := range m.sessions {
		if e.session != nil && !e.leaving && (m.halted || e.info.Tools || !m.keep.keeps(e.spec.Durability)) {
			e.leaving, e.why = true, wasShutDown
			leaving[id] = e
		}
		going[id] = e.leaving // some before: their commands end with them too
	}
	m.mu.Unlock()
	var (
		mu   sync.Mutex
		errs []error
		all  sync.WaitGroup
	)
	try := func(f func() error) {
		all.Go(func() {
			if err := f(); err != nil {
				mu.Lock()
				defer mu.Unlock()
				errs = append(errs, err)
			}
		})
	}
	for id, e := range leaving {
		try(func() error { return m.remove(id, e, wasShutDown) })
	}
	for _, exec := range m.runningExecs() {
		if !going[exec.SessionID()] {
			try(func() error {
				_, err := exec.Kill(SignalKill)
				return err
			})
		}
	}
	all.Wait()
	return errors.Join(errs...)
}
