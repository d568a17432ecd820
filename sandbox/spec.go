package sandbox

import (
	"crypto/sha256"
	"encoding/hex"
	"time"
)

// Network is the tier of a session's network, from closed to open (NET-1).
type Network string

// The tiers, in rising openness.
const (
	NetworkNone     Network = "none"
	NetworkInternal Network = "internal"
	NetworkEgress   Network = "egress"
)

// Looser says whether n lets out more than other does.
func (n Network) Looser(other Network) bool { return n.rank() > other.rank() }

// Valid says whether n is one of the tiers.
func (n Network) Valid() bool { return n.rank() >= 0 }

func (n Network) rank() int {
	switch n {
	case NetworkNone:
		return 0
	case NetworkInternal:
		return 1
	case NetworkEgress:
		return 2
	default:
		return -1
	}
}

// Durability says whether a workspace outlives its session.
type Durability string

// The two kinds of workspace.
const (
	Ephemeral  Durability = "ephemeral"
	Persistent Durability = "persistent"
)

// Isolation is the least that must stand between a session and the engine's host.
type Isolation string

// The levels, in rising strength. An empty Isolation takes the policy's floor.
const (
	IsolationContainer Isolation = "container"
	IsolationVM        Isolation = "vm"
)

// Owner is whose a session is. Two owners never see each other's sessions,
// execs or workspaces. Comparable, so that it can key a map.
type Owner struct {
	Name      string
	Principal bool // one of several on a shared endpoint; their workspaces carry the hash in the volume's name (D7)
	Tools     bool // the containers of the manifest's tools that run for that owner: no session of its own ever shows among them
}

// Hash is a short, stable name of the owner for labels and volume names, which
// must not carry the name itself: 16 hex characters.
func (o Owner) Hash() string {
	name := o.Name
	if o.Principal {
		name = "principal\x00" + name // never the single user's, whatever its name
	}
	if o.Tools {
		name = "tools\x00" + name
	}
	sum := sha256.Sum256([]byte(name))
	return hex.EncodeToString(sum[:8])
}

// Spec is what a session is asked to be. A zero value of a field means "not
// named": Policy.Apply fills it, and is the only place that does.
type Spec struct {
	Owner        Owner
	Image        string
	Network      Network
	Durability   Durability
	WorkspaceKey string
	Isolation    Isolation
	CPU          *float64 // cores; nil after Apply: no cap
	MemoryMB     *int64   // MiB; nil after Apply: no cap
	Pids         *int64   // processes and threads; nil after Apply: no cap
	Env          map[string]Secret
	Labels       map[string]string
	TTL          time.Duration // idle time after which the session ends (D5)
	Operator     *OperatorSpec // what only the operator's manifest may ask for; nil: a client's session
	Ceilings     *Ceilings     // narrower bounds of a principal; nil: the server's alone
}

// Stage is how far a create has come, for progress to the client.
type Stage struct {
	Text        string
	Done, Total int64 // bytes of a pull; zero when not known
}

// Progress is told of stages of a create. It is called from one goroutine at a
// time, never after the call that took it has returned, and must not block. A
// nil Progress is never called.
type Progress func(Stage)
