package sandbox

import "time"

// Observer is told what happens, for whoever counts it. Its methods may be called
// concurrently, some of them under locks: they never block, and call nothing of
// whoever tells them.
type Observer interface {
	// SessionMade tells of a create that was asked of the provider: how long that took,
	// and the error, nil when there is a session now.
	SessionMade(took time.Duration, err error)

	// SessionEnded tells that a session has left the books. lost says that nobody had
	// asked for it: its container was found gone.
	SessionEnded(lost bool)

	// ExecEnded tells how a command ended and how many bytes each of its streams had. A
	// command of the server before, of whose end nothing is known, is not told of.
	ExecEnded(view ExecView, stdout, stderr int64)

	// EngineFailed tells of an engine call that gave an error, by what it was taken for.
	EngineFailed(kind Kind)

	// Probed tells of a probe of the egress firewall: of which tier, how long it took,
	// and the error, nil when the firewall is in force there.
	Probed(tier Network, took time.Duration, err error)
}

// Unobserved stands for an Observer where nobody counts.
type Unobserved struct{}

var _ Observer = Unobserved{}

// SessionMade does nothing.
func (Unobserved) SessionMade(time.Duration, error) {}

// SessionEnded does nothing.
func (Unobserved) SessionEnded(bool) {}

// ExecEnded does nothing.
func (Unobserved) ExecEnded(ExecView, int64, int64) {}

// EngineFailed does nothing.
func (Unobserved) EngineFailed(Kind) {}

// Probed does nothing.
func (Unobserved) Probed(Network, time.Duration, error) {}

// Census is how much there is at one moment.
type Census struct {
	Sessions map[State]int  // those that are being ended count with what they were
	Owners   map[string]int // sessions by Owner.Hash
	Execs    int            // commands that run
	Records  int            // commands that run or are kept
}

// Census counts what is on the books. It asks nobody.
func (m *Manager) Census() Census {
	m.mu.Lock()
	defer m.mu.Unlock()
	c := Census{Sessions: map[State]int{}, Owners: map[string]int{}, Records: len(m.execs.byID)}
	for _, e := range m.sessions {
		c.Sessions[e.lastSeen]++
		c.Owners[e.owner]++
		c.Execs += e.running
	}
	return c
}
