package sandbox

import (
	"slices"
	"time"
)

// record is an exec and whose it is.
type record struct {
	owner string
	exec  *Exec
}

// records are the execs that run or are kept. They are under Manager.mu.
type records struct {
	byID  map[string]*record
	owned map[string][]*record // by owner, in the order of their starts
}

func newRecords() records {
	return records{byID: map[string]*record{}, owned: map[string][]*record{}}
}

func (r *records) keep(owner string, exec *Exec) {
	one := &record{owner, exec}
	r.byID[exec.ID()] = one
	r.owned[owner] = append(r.owned[owner], one)
}

func (r *records) drop(id string) {
	one, ok := r.byID[id]
	if !ok {
		return
	}
	delete(r.byID, id)
	rest := r.owned[one.owner]
	if i := slices.Index(rest, one); i >= 0 {
		rest = slices.Delete(rest, i, i+1)
	}
	if r.owned[one.owner] = rest; len(rest) == 0 {
		delete(r.owned, one.owner)
	}
}

// spare is the oldest ended exec of the owner that has the most: whoever runs many
// commands shortens the memory of their own, and of nobody else's. nil when all of them run.
func (r *records) spare() *Exec {
	var most []*record
	for _, owned := range r.owned {
		if len(owned) > len(most) {
			most = owned
		}
	}
	for _, one := range most {
		if one.exec.View().Status != StatusRunning {
			return one.exec
		}
	}
	return nil
}

func (m *Manager) dropRecords(now time.Time) {
	m.mu.Lock()
	var old []*Exec
	for id, r := range m.execs.byID {
		if v := r.exec.View(); v.Status != StatusRunning && now.Sub(v.EndedAt) > m.limits.Retention {
			old = append(old, r.exec)
			m.execs.drop(id)
		}
	}
	for id, l := range m.lost {
		if now.Sub(l.at) > m.limits.LostRetention {
			delete(m.lost, id)
		}
	}
	m.mu.Unlock()
	m.closeExecs(old)
}

// trimRecords keeps the number of ended records under its limit. m.mu is held.
func (m *Manager) trimRecords() {
	if m.limits.Records <= 0 || len(m.execs.byID) <= m.limits.Records {
		return
	}
	if oldest := m.execs.spare(); oldest != nil {
		m.execs.drop(oldest.ID())
		m.work.Go(func() { m.closeExecs([]*Exec{oldest}) })
	}
}

func (m *Manager) closeExecs(execs []*Exec) {
	for _, e := range execs {
		if err := e.Close(); err != nil {
			m.log.Warn("exec record not closed", "exec", ShortID(e.ID()), "error", err)
		}
	}
}
