package sandbox

import (
	"context"
	"slices"
	"time"
)

// The notes by which a session says how its disk is limited (D32). One that is
// not limited has neither.
const (
	NoteDiskQuota   = "disk_quota"   // a write past the limit fails
	NoteDiskWatched = "disk_watched" // the session is ended past the limit
)

// DiskWatcher is a Provider that can measure the disks of sessions that no quota
// of the engine's limits.
type DiskWatcher interface {
	// Overfull measures every watched session of this instance and returns those
	// that have passed their limit, or cannot be measured any more. It keeps the
	// engine's disk busy for as long as it takes. One call at a time.
	Overfull(ctx context.Context) ([]Overfull, error)
}

// Overfull is a session that has passed its limit of disk, and the reason for
// whoever asks where it is: a clause without an end.
type Overfull struct {
	ID     string
	Reason string
}

const (
	// diskPause is between two measurements; after one that took long it is diskRest
	// times as long as that, so that measuring never takes most of the engine's disk.
	diskPause = 2 * time.Second
	diskRest  = 2
	// diskLimit bounds one measurement.
	diskLimit = 5 * time.Minute
)

// watchDisks ends the sessions that pass their limit of disk, until Close.
func (m *Manager) watchDisks() {
	watcher, ok := m.provider.(DiskWatcher)
	if !ok {
		return
	}
	failing := false // said once, not every two seconds while the engine is away
	wait := diskPause
	for {
		select {
		case <-m.life.Done():
			return
		case <-time.After(wait):
		}
		wait = diskPause
		if !m.watchesDisk() {
			continue
		}
		began := time.Now()
		ctx, cancel := context.WithTimeout(m.life, diskLimit)
		over, err := watcher.Overfull(ctx)
		cancel()
		if err != nil && !failing {
			m.report("disks not measured", err)
		}
		failing = err != nil
		for _, o := range over {
			m.endOverfull(o)
		}
		wait = max(diskPause, diskRest*time.Since(began))
	}
}

// watchesDisk says whether a session of ours is to be measured.
func (m *Manager) watchesDisk() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.tenure.fenced {
		return false // they are another server's now
	}
	for _, e := range m.sessions {
		if e.session != nil && !e.leaving && slices.ContainsFunc(e.info.Notes, func(n Note) bool { return n.Code == NoteDiskWatched }) {
			return true
		}
	}
	return false
}

// endOverfull ends a session for its disk. Its commands end as lost and say why.
func (m *Manager) endOverfull(o Overfull) {
	m.mu.Lock()
	defer m.mu.Unlock()
	e, ok := m.sessions[o.ID]
	if !ok || e.session == nil || e.leaving || m.tenure.fenced {
		return
	}
	for _, r := range m.execs.byID {
		if r.exec.SessionID() == o.ID && r.exec.View().Status == StatusRunning {
			r.exec.Note("no_space", "the session was ended: "+o.Reason)
		}
	}
	reason := "no_space: " + o.Reason
	if e.spec.Durability == Persistent {
		reason += " (its workspace is kept)"
	}
	m.loseLocked(o.ID, e, reason)
}
