package sandbox

import (
	"context"
	"time"
)

const (
	// HalfMade is how old what nobody knows of must be before it is taken for the remains
	// of a create whose answer never came: far longer than a create may take.
	HalfMade  = 2 * time.Minute
	tidyLimit = 2 * time.Minute
)

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
	asked := time.Now()
	i, err := TakeInventory(ctx, m.provider)
	if err != nil {
		m.report("sweep: the engine could not be looked at", err)
		return
	}
	m.mu.Lock()
	m.reconcile(i.Sessions, asked)
	m.watchLeaseless(i)
	m.mu.Unlock()
	dead := m.deadIn(i)
	left := map[string]bool{}
	for _, s := range i.Sessions {
		if !m.abandoned(i, dead, s) || !m.evict(ctx, s) {
			left[s.Instance] = true
		}
	}
	for instance, lease := range i.Leases {
		if _, gone := dead[instance]; gone && !left[instance] {
			m.report("lease of a dead server not removed", m.provider.DropLease(ctx, lease))
		}
	}
	removed, err := m.provider.Prune(ctx, HalfMade, func(instance string) bool {
		return instance == m.instance || i.Unclaimed(instance, dead)
	})
	m.report("remains not removed", err)
	if len(removed) > 0 {
		m.log.Info("remains removed", "what", removed)
	}
}

// watchLeaseless notes since when an instance that has sessions has been without a lease:
// it may be about to take one. m.mu is held.
func (m *Manager) watchLeaseless(i Inventory) {
	for instance := range m.leaseless {
		if _, ok := i.Leases[instance]; ok || !i.Holds(instance) {
			delete(m.leaseless, instance)
		}
	}
	for _, s := range i.Sessions {
		if _, ok := i.Leases[s.Instance]; !ok && s.Instance != m.instance && m.leaseless[s.Instance].IsZero() {
			m.leaseless[s.Instance] = i.Now
		}
	}
}

// deadIn are the other instances that are dead, each with the last sign of life.
func (m *Manager) deadIn(i Inventory) map[string]time.Time {
	dead := i.Dead(m.grace)
	delete(dead, m.instance)
	m.mu.Lock()
	defer m.mu.Unlock()
	for instance, since := range m.leaseless {
		if i.Now.After(since.Add(m.grace)) {
			dead[instance] = since
		}
	}
	return dead
}

// abandoned says whether a session that the engine shows has nobody left who would end it.
func (m *Manager) abandoned(i Inventory, dead map[string]time.Time, s Info) bool {
	if s.Instance == m.instance {
		return !m.knows(s.ID) && i.Now.Sub(s.CreatedAt) > HalfMade
	}
	return i.Outlived(s, dead, m.policy.DefaultTTL)
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
