package sandbox

import (
	"context"
	"log/slog"
	"sync"
	"time"
)

// Limits are the manager's quotas and clocks. A zero count means no quota.
type Limits struct {
	Sessions           int
	PerOwner           int
	ExecsPerSession    int           // running at once
	WorkspacesPerOwner int           // persistent ones
	Records            int           // ended execs that are kept
	Retention          time.Duration // how long an ended exec is kept (D13)
	LostRetention      time.Duration // how long a handle that is gone still says why
	ReapInterval       time.Duration
	DefaultTimeout     time.Duration // of an exec that names none (CFG-11)
	MaxTimeout         time.Duration
}

// Options is what a Manager is made of. Every field is required but Observer.
type Options struct {
	Provider Provider
	Instance string        // whose sessions these are; the Provider's
	Grace    time.Duration // how long another instance's lease must have run out before it counts as dead (D14)
	Keep     Keep
	Policy   Policy
	Spools   *Spools
	Limits   Limits
	Log      *slog.Logger
	Observer Observer // nil: nobody counts
}

// Keep says which sessions stay on the engine when the manager is closed, for the next
// server of the instance.
type Keep uint8

// What a manager keeps. A server whose instance nobody can come back as keeps nothing.
const (
	KeepNothing Keep = iota
	KeepPersistent
	KeepAll
)

func (k Keep) keeps(d Durability) bool {
	return k == KeepAll || k == KeepPersistent && d == Persistent
}

// Manager knows whose sessions are alive, what runs in them and until when. It
// is the only way from a caller to a Provider: it applies the policy, checks
// the owner on every call, holds sessions while they are used, and ends those
// that have been idle for their time to live.
//
// All methods may be called concurrently. An owner never learns whether another
// owner's handle exists: to it, the handle is KindSessionNotFound.
type Manager struct {
	provider Provider
	instance string
	grace    time.Duration
	keep     Keep
	policy   Policy
	spools   *Spools
	limits   Limits
	log      *slog.Logger
	observer Observer

	work   sync.WaitGroup // the sweep, the lease, and one watcher for each running exec
	life   context.Context
	end    context.CancelFunc
	sweeps chan struct{} // one token: sweeps do not overlap
	halt   context.Context
	stop   context.CancelFunc // ends halt: creates under way are cut off

	mu        sync.Mutex
	tenure    tenure
	leaseless map[string]time.Time // instances that have sessions and no lease, since when by the engine's clock
	closed    bool
	halted    bool // by Halt
	sessions  map[string]*entry
	turns     turns
	lost      map[string]lostSession
	execs     records
}

// entry is a session that is alive or being made.
type entry struct {
	owner    string  // the hash: all that is known after a restart
	spec     Spec    // resolved
	session  Session // nil while it is being made
	info     Info
	holds    int // calls and execs that use it now
	running  int // execs among them
	expires  time.Time
	made     time.Time // when the session was there
	leaving  bool      // being destroyed
	booked   bool      // its workspace has a place among its owner's
	why      string    // and for what, unless its owner asked for it
	notes    []Note
	lastSeen State
}

// lostSession remembers why a handle no longer leads anywhere.
type lostSession struct {
	owner  string
	reason string
	at     time.Time
}

// NewManager makes a manager and starts its sweep. It asks the engine nothing before
// the first Create or Recover. Close ends it.
func NewManager(o Options) *Manager {
	if o.Observer == nil {
		o.Observer = Unobserved{}
	}
	life, end := context.WithCancel(context.Background())  // the manager's own life, until Close
	halt, stop := context.WithCancel(context.Background()) // likewise: a shutdown cuts no create off
	m := &Manager{
		provider: o.Provider, instance: o.Instance, grace: o.Grace, keep: o.Keep, policy: o.Policy, spools: o.Spools, limits: o.Limits, log: o.Log, observer: o.Observer,
		life: life, end: end, sweeps: make(chan struct{}, 1), halt: halt, stop: stop,
		sessions: map[string]*entry{}, turns: turns{}, lost: map[string]lostSession{}, execs: newRecords(),
		tenure: newTenure(), leaseless: map[string]time.Time{},
	}
	m.work.Go(m.sweepLoop)
	m.work.Go(m.keepLease)
	m.work.Go(m.watchDisks)
	return m
}

// Ready tells whether a call could be served now: the engine answers, the sessions of the
// server before are back, and this server neither ends nor has lost its place.
func (m *Manager) Ready(ctx context.Context) error {
	m.mu.Lock()
	closed, halted, fenced := m.closed, m.halted, m.tenure.fenced
	var waiting error
	if m.tenure.asked && !m.tenure.recovered {
		waiting = m.unheard("check readiness")
	}
	m.mu.Unlock()
	switch {
	case fenced:
		return fencedError("check readiness")
	case halted:
		return stoppedByOperator("check readiness")
	case closed:
		return shuttingDown()
	case waiting != nil:
		return waiting
	}
	return m.provider.Ping(ctx)
}

// find returns the owner's live entry, or says why there is none. m.mu is held.
func (m *Manager) find(owner Owner, id string) (*entry, error) {
	if m.tenure.fenced {
		return nil, fencedError("find session")
	}
	mine := owner.Hash()
	if e, ok := m.sessions[id]; ok && e.owner == mine {
		switch {
		case e.session == nil:
			return nil, Errorf("find session", KindBusy, "the session is still being made")
		case e.leaving && e.why != "":
			return nil, sessionLost(e.why)
		case e.leaving:
			return nil, Errorf("find session", KindSessionNotFound, "no such session")
		}
		return e, nil
	}
	if l, ok := m.lost[id]; ok && l.owner == mine {
		return nil, sessionLost(l.reason)
	}
	if m.tenure.asked && !m.tenure.recovered {
		return nil, m.unheard("find session")
	}
	return nil, Errorf("find session", KindSessionNotFound, "no such session; session_list shows the ones there are")
}

func sessionLost(why string) *Error {
	if why == wasHalted {
		return Errorf("find session", KindSessionLost, "the session is gone: %s; this server makes none until it is started again", why).Because(ErrHalted)
	}
	return Errorf("find session", KindSessionLost, "the session is gone: %s; make a new one with session_create", why)
}

// touch moves a session's end to its idle time from now; it never moves it
// earlier (D5). m.mu is held.
func (e *entry) touch(now time.Time) {
	if next := now.Add(e.spec.TTL); next.After(e.expires) {
		e.expires = next
	}
}

// view is the session as its owner sees it. m.mu is held.
func (e *entry) view(now time.Time) Info {
	info := e.info
	if e.session != nil {
		info.Notes = e.session.Info().Notes // it learns some as it goes
	}
	info.RunningExecs = e.running
	info.State = e.lastSeen
	info.ExpiresAt = e.expires
	if e.holds > 0 && now.Add(e.spec.TTL).After(e.expires) {
		info.ExpiresAt = now.Add(e.spec.TTL)
	}
	info.Notes = append(append([]Note(nil), info.Notes...), e.notes...)
	return info
}

// forget takes an entry out and leaves word of why. m.mu is held.
func (m *Manager) forget(id string, e *entry, reason string) {
	if m.sessions[id] != e {
		return
	}
	delete(m.sessions, id)
	m.lost[id] = lostSession{owner: e.owner, reason: reason, at: time.Now()}
}
