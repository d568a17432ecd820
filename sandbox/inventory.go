package sandbox

import (
	"context"
	"time"
)

// Inventory is what an engine shows of all servers at one moment.
type Inventory struct {
	Sessions []Info
	Leases   map[string]Lease // the newest of each instance
	Now      time.Time        // the engine's
}

// TakeInventory asks a provider's engine for what there is.
func TakeInventory(ctx context.Context, p Provider) (Inventory, error) {
	sessions, err := p.List(ctx)
	if err != nil {
		return Inventory{}, err
	}
	leases, now, err := p.Leases(ctx)
	if err != nil {
		return Inventory{}, err
	}
	i := Inventory{Sessions: sessions, Leases: map[string]Lease{}, Now: now}
	for _, l := range leases {
		i.Leases[l.Instance] = l
	}
	return i, nil
}

// Holds says whether a session of the instance is there.
func (i Inventory) Holds(instance string) bool {
	for _, s := range i.Sessions {
		if s.Instance == instance {
			return true
		}
	}
	return false
}

// Dead are the instances whose lease ran out longer ago than grace, each with the time
// when it did: the last sign of life (D14). Of one without a lease nothing is known.
func (i Inventory) Dead(grace time.Duration) map[string]time.Time {
	dead := map[string]time.Time{}
	for instance, l := range i.Leases {
		if i.Now.After(l.Expires.Add(grace)) {
			dead[instance] = l.Expires
		}
	}
	return dead
}

// Unclaimed says whether what an instance left beside sessions is nobody's: its server is
// dead, or nothing on the engine tells of one.
func (i Inventory) Unclaimed(instance string, dead map[string]time.Time) bool {
	_, gone := dead[instance]
	_, leased := i.Leases[instance]
	return gone || !leased && !i.Holds(instance)
}

// Outlived says whether the session of a dead server has outlived it for longer than its
// time to live; one that was never started is nobody's. ttl stands in for a label that
// nobody can read.
func (i Inventory) Outlived(s Info, dead map[string]time.Time, ttl time.Duration) bool {
	since, ok := dead[s.Instance]
	if s.TTL > 0 {
		ttl = s.TTL
	}
	return ok && (s.State == StateCreating || i.Now.After(since.Add(ttl)))
}
