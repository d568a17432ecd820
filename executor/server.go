package executor

import (
	"time"

	"caisson/sandbox"
)

// Server is what a manifest is read for: what the server has and allows.
type Server struct {
	Builtin     []string                         // names of the built-in tools, which nothing may shadow
	Environment func(name string) (string, bool) // looks a variable up, for ${VAR}; nil: there are none

	AllowLocal  bool // rules may name the local executor
	AllowWeaker bool // rules may loosen the hardening (D31)

	// Defaults of the docker executor.
	Image      string
	Mode       Mode
	IdleTTL    time.Duration
	Network    sandbox.Network
	PullPolicy string
	Runtime    string // OCI runtime; empty: the engine's own
	VMRuntime  string // the runtime behind isolation vm, which rules may name as well

	// Ceilings, as for sessions. Zero: none.
	MaxNetwork  sandbox.Network
	MaxNanoCPUs int64
	MaxMemory   int64 // bytes
	MaxPids     int64
	MaxTimeout  time.Duration // of a call, and so of what a manifest may say
}

// Mode is how long the container of a tool lives.
type Mode string

// The modes.
const (
	Warm      Mode = "warm"      // one container for all calls, until it is idle
	Ephemeral Mode = "ephemeral" // one for each call
)

// TierOf reads a network mode: the tiers, and bridge, another word for egress.
func TierOf(mode string) (sandbox.Network, bool) {
	if mode == "bridge" {
		return sandbox.NetworkEgress, true
	}
	tier := sandbox.Network(mode)
	return tier, tier.Valid()
}
