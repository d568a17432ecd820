package sandbox

import (
	"context"
	"slices"
	"time"
)

// halfMade is how old what nobody knows of must be before it is taken for the remains of
// a create whose answer never came: far longer than a create may take.
const halfMade = 2 * time.Minute

// deadSince is when instances without a lease were first seen without one, by the
// engine's clock.
type deadSince map[string]time.Time

// deadSet holds the instances whose lease has been dead for longer than the grace, each
// with the time of the last sign of life.
type deadSet map[string]time.Time

func (d deadSet) has(instance string) bool {
	_, ok := d[instance]
	return ok
}

// census is what one look at the engine shows.
type census struct {
	asked    time.Time // before the engine was
	sessions []Info
	leases   map[string]Lease
	now      time.Time // the engine's
	dead     deadSet
}

// deadInstances asks which instances' leases have run out for longer than the grace. One
// without a lease may be about to take one, so it counts only when the sweep has seen it
// so for as long.
func (m *Manager) deadInstances(ctx context.Context) (deadSet, error) {
	leases, now, err := m.provider.Leases(ctx)
	if err != nil {
		return nil, err
	}
	dead := deadSet{}
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, l := range leases {
		if l.Instance != m.instance && now.After(l.Expires.Add(m.grace)) {
			dead[l.Instance] = l.Expires
		}
	}
	for instance, since := range m.dead {
		if now.After(since.Add(m.grace)) {
			dead[instance] = since
		}
	}
	return dead, nil
}

// look takes a census.
func (m *Manager) look(ctx context.Context) (census, error) {
	c := census{asked: time.Now()}
	var err error
	if c.sessions, err = m.provider.List(ctx); err != nil {
		return c, err
	}
	leases, now, err := m.provider.Leases(ctx)
	if err != nil {
		return c, err
	}
	c.now, c.leases = now, map[string]Lease{}
	for _, l := range leases {
		c.leases[l.Instance] = l
	}
	m.mu.Lock()
	for instance := range m.dead {
		if _, ok := c.leases[instance]; ok || !slices.ContainsFunc(c.sessions, func(i Info) bool { return i.Instance == instance }) {
			delete(m.dead, instance)
		}
	}
	for _, s := range c.sessions {
		if _, ok := c.leases[s.Instance]; !ok && s.Instance != m.instance && m.dead[s.Instance].IsZero() {
			m.dead[s.Instance] = now
		}
	}
	m.mu.Unlock()
	c.dead, err = m.deadInstances(ctx)
	return c, err
}

// tidy holds the engine against the books: sessions of ours that are gone are lost, what
// a create left whose answer never came is removed, and so is what belongs to servers
// that are dead (D14). One thing that cannot be removed keeps no other (TTL-4).
func (m *Manager) tidy() {
	ctx, cancel := context.WithTimeout(m.life, tidyLimit)
	defer cancel()
	m.mu.Lock()
	ready := m.tenure.recovered && !m.tenure.fenced
	m.mu.Unlock()
	if !ready {
		return
	}
	c, err := m.look(ctx)
	if err != nil {
		if m.life.Err() == nil {
			m.log.Warn("sweep: the engine could not be looked at", "error", err)
		}
		return
	}
	m.mu.Lock()
	m.reconcile(c.sessions, c.asked)
	m.mu.Unlock()
	left := map[string]int{}
	for _, s := range c.sessions {
		if !m.abandoned(c, s) || !m.evict(ctx, s) {
			left[s.Instance]++
		}
	}
	for instance, lease := range c.leases {
		if c.dead.has(instance) && left[instance] == 0 {
			m.report("lease of a dead server not removed", m.provider.DropLease(ctx, lease))
		}
	}
	removed, err := m.provider.Prune(ctx, halfMade, func(instance string) bool {
		return instance == m.instance || c.dead.has(instance)
	})
	m.report("remains not removed", err)
	if len(removed) > 0 {
		m.log.Info("remains removed", "what", removed)
	}
}

const tidyLimit = 2 * time.Minute

// abandoned says whether a session that the engine shows has nobody left who would end it.
func (m *Manager) abandoned(c census, s Info) bool {
	if s.Instance == m.instance {
		return !m.knows(s.ID) && c.now.Sub(s.CreatedAt) > halfMade
	}
	since, dead := c.dead[s.Instance]
	ttl := s.TTL
	if ttl <= 0 {
		ttl = m.policy.DefaultTTL // a label that nobody can read
	}
	return dead && (s.State == StateCreating || c.now.After(since.Add(ttl)))
}

// evict removes an abandoned session.
func (m *Manager) evict(ctx context.Context, s Info) bool {
	_, err := m.provider.Destroy(ctx, s.ID)
	m.report("abandoned session not destroyed", err)
	if err == nil {
		m.log.Info("abandoned session ended", "session", ShortID(s.ID), "instance", s.Instance, "state", s.State)
	}
	return err == nil
}

func (m *Manager) report(text string, err error) {
	if err != nil && m.life.Err() == nil {
		m.log.Warn(text, "error", err)
	}
}
