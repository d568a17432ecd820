package sandbox

import (
	"context"
	"time"
)

// tenure is the manager's hold on its instance (D14). Its fields are under Manager.mu,
// but for the channels.
type tenure struct {
	wanted chan struct{} // one token: somebody needs the lease now
	fence  chan struct{} // closed when another server has taken it

	asked     bool  // somebody has needed it
	recovered bool  // the sessions that the engine had of ours are on our books
	fenced    bool  // another server has taken it
	held      Lease // zero: none yet
	until     time.Time
	err       error         // of the last try
	tried     chan struct{} // closed at the end of the next try
}

func newTenure() tenure {
	return tenure{wanted: make(chan struct{}, 1), fence: make(chan struct{}), tried: make(chan struct{})}
}

// The length of a lease is a quarter of the grace: whoever waits for the grace to be
// over after a crash waits for little more. It is renewed every third of its time.
const (
	leaseShortest = 3 * time.Second
	leaseLongest  = 30 * time.Second
	leaseTry      = 10 * time.Second // one try to take or renew it, and to recover
)

func (m *Manager) leaseLength() time.Duration {
	return min(max(m.grace/4, leaseShortest), leaseLongest)
}

// Fenced returns a channel that is closed when another server has taken this one's
// instance. From then on every call is KindFenced, nothing is written to the engine any
// more, and the server has to end.
func (m *Manager) Fenced() <-chan struct{} { return m.tenure.fence }

func fencedError(op string) *Error {
	return Errorf(op, KindFenced, "another server has been started under this server's instance name and has taken its sessions over: this one takes no more calls")
}

// heard says why lists would not be whole: the sessions of the server before are not back.
func (m *Manager) heard(op string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	switch {
	case m.tenure.fenced:
		return fencedError(op)
	case m.tenure.asked && !m.tenure.recovered:
		return m.unheard(op)
	}
	return nil
}

// unheard is why the sessions of the server before are not back: what the engine said last,
// if it was asked yet. m.mu is held.
func (m *Manager) unheard(op string) error {
	if m.tenure.err != nil {
		return m.tenure.err
	}
	return Errorf(op, KindUnavailable, "the server has just started and has not heard from the engine yet; try again in a moment")
}

// Recover takes the instance's lease, at once and whoever held it, and puts the sessions
// that the engine has of it back on the books, under the handles that they had. It waits
// for that until ctx ends; the manager goes on trying all the same. A server whose
// instance is not its own alone calls it before it serves.
func (m *Manager) Recover(ctx context.Context) error { return m.holdLease(ctx) }

// BeginRecovery is Recover without the wait.
func (m *Manager) BeginRecovery() {
	m.mu.Lock()
	m.tenure.asked = true
	m.mu.Unlock()
	select {
	case m.tenure.wanted <- struct{}{}:
	default:
	}
}

// AwaitRecovery waits until the engine has been asked for the sessions of the server before
// and the first try has ended, well or not, or for ctx. A client that calls right after the
// start need not call twice then. It may be called concurrently, and costs nothing later.
func (m *Manager) AwaitRecovery(ctx context.Context) {
	m.mu.Lock()
	t := &m.tenure
	over, tried := !t.asked || t.recovered || t.err != nil || t.fenced || m.closed, t.tried
	m.mu.Unlock()
	if over {
		return
	}
	select {
	case <-tried:
	case <-ctx.Done():
	case <-m.life.Done():
	}
}

// holdLease makes sure that the lease is held and the sessions are recovered.
func (m *Manager) holdLease(ctx context.Context) error {
	m.mu.Lock()
	t := &m.tenure
	fenced, fine, tried := t.fenced, t.recovered && time.Now().Before(t.until), t.tried
	m.mu.Unlock()
	switch {
	case fenced:
		return fencedError("hold the lease")
	case fine:
		return nil
	}
	m.BeginRecovery()
	select {
	case <-tried:
	case <-ctx.Done():
		return Errorf("hold the lease", KindUnavailable, "the engine has not answered yet").Because(ctx.Err())
	case <-m.life.Done():
		return shuttingDown()
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.tenure.err
}

// keepLease takes the lease when it is first needed, and keeps it until Close.
func (m *Manager) keepLease() {
	var next <-chan time.Time
	for {
		select {
		case <-m.life.Done():
			return
		case <-m.tenure.wanted:
		case <-next:
		}
		err := m.tend()
		m.mu.Lock()
		t := &m.tenure
		t.err, t.fenced = err, err != nil && KindOf(err) == KindFenced
		fenced := t.fenced
		close(t.tried)
		t.tried = make(chan struct{})
		m.mu.Unlock()
		if fenced {
			m.log.Error("this server ends: another one has taken its instance", "instance", m.instance)
			close(m.tenure.fence)
			return
		}
		if err != nil && m.life.Err() == nil {
			m.log.Warn("the instance's lease is not held", "instance", m.instance, "error", err)
		}
		next = time.After(m.leaseLength() / 3)
	}
}

// tend takes or renews the lease, and recovers once.
func (m *Manager) tend() error {
	ctx, cancel := context.WithTimeout(m.life, leaseTry)
	defer cancel()
	m.mu.Lock()
	held, recovered := m.tenure.held, m.tenure.recovered
	m.mu.Unlock()
	began := time.Now() // before the engine's answer: ours ends before the engine's does
	var err error
	if held.Epoch == 0 {
		held, err = m.provider.TakeLease(ctx, m.leaseLength())
	} else {
		held, err = m.provider.RenewLease(ctx, held, m.leaseLength())
	}
	switch {
	case err != nil && KindOf(err) == KindImageNotFound:
		// An engine without any image can hold no lease, and no session either: the
		// first create pulls one.
		held = Lease{}
	case err != nil:
		return err
	}
	if !recovered {
		if err := m.recover(ctx); err != nil {
			return err
		}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.tenure.held, m.tenure.until, m.tenure.recovered = held, began.Add(m.leaseLength()), true
	return nil
}

// endLease gives the lease back where no session of ours is left. Where some are it runs
// out now: the next server of the instance takes it over at once, and others leave the
// sessions alone for as long as it may come.
func (m *Manager) endLease(ctx context.Context) error {
	m.mu.Lock()
	held, left, fenced := m.tenure.held, len(m.sessions), m.tenure.fenced
	m.mu.Unlock()
	switch {
	case held.Epoch == 0 || fenced:
		return nil
	case left == 0:
		return m.provider.DropLease(ctx, held)
	}
	_, err := m.provider.RenewLease(ctx, held, 0)
	return err
}
