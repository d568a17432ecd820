package sandbox

import (
	"sync"
	"time"
)

// sweepLoop ends idle sessions and drops old records until Close.
func (m *Manager) sweepLoop() {
	ticker := time.NewTicker(m.limits.ReapInterval)
	defer ticker.Stop()
	for {
		select {
		case <-m.life.Done():
			return
		case <-ticker.C:
			m.Sweep()
		}
	}
}

// Sweep ends every session whose idle time is over and drops every record whose
// retention is, then holds the engine against the books. One session that cannot be ended does not keep the others
// (TTL-4): it is logged and tried again with the next sweep. It returns the ids
// of the sessions that it ended.
func (m *Manager) Sweep() []string {
	select {
	case m.sweeps <- struct{}{}:
		defer func() { <-m.sweeps }()
	default:
		return nil // one is under way; what it misses, the next one finds
	}
	due := m.expired(time.Now())
	var (
		mu    sync.Mutex
		ended []string
		all   sync.WaitGroup
	)
	for id, e := range due {
		all.Go(func() {
			if err := m.remove(id, e, e.why); err == nil {
				mu.Lock()
				defer mu.Unlock()
				ended = append(ended, id)
			}
		})
	}
	all.Wait()
	m.dropRecords(time.Now())
	m.tidy()
	return ended
}

const wasIdle = "it was idle for longer than its time to live"

// expired marks the sessions that are due as leaving, under the lock that every
// use of a session takes: one that was just touched is never among them (TTL-7).
func (m *Manager) expired(now time.Time) map[string]*entry {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.tenure.fenced {
		return nil // they are another server's now
	}
	due := map[string]*entry{}
	for id, e := range m.sessions {
		if e.session == nil || e.leaving {
			continue
		}
		switch {
		case m.halted: // Halt could not end it in its time
			e.leaving, e.why = true, wasHalted
			due[id] = e
		case e.holds == 0 && now.After(e.expires):
			e.leaving, e.why = true, wasIdle
			due[id] = e
		}
	}
	return due
}
