package sandbox

import (
	"path"
	"strings"
	"time"
)

// Ceilings are bounds of one owner's sessions, beside the policy's: the tighter of both
// counts. A zero field is no bound. It is not changed once it has been made.
type Ceilings struct {
	MaxNetwork    Network
	MaxCPU        float64 // cores
	MaxMemoryMB   int64
	MaxPids       int64
	MaxTTL        time.Duration
	Images        []string // patterns as of path.Match; empty: any that the server allows
	Workspaces    string   // what each workspace key must begin with
	MaxWorkspaces int      // persistent ones, whether a session holds them or not
	Sessions      int      // at one time, tool containers not among them
}

// within returns the policy that bounds a spec with c beside the server's own. A default
// that is over c's ceiling becomes the ceiling: it is what nobody asked for, and a principal
// may ask for nothing in particular.
func (p Policy) within(c *Ceilings) Policy {
	if c == nil {
		return p
	}
	if c.MaxNetwork != "" {
		p.MaxNetwork = narrower(p.MaxNetwork, c.MaxNetwork)
		if p.DefaultNetwork.Looser(p.MaxNetwork) {
			p.DefaultNetwork = p.MaxNetwork
		}
	}
	if c.MaxCPU > 0 {
		p.MaxCPU = tighter(p.MaxCPU, c.MaxCPU)
		p.DefaultCPU = tighter(p.DefaultCPU, p.MaxCPU)
	}
	if c.MaxMemoryMB > 0 {
		p.MaxMemoryMB = tighter(p.MaxMemoryMB, c.MaxMemoryMB)
		p.DefaultMemoryMB = tighter(p.DefaultMemoryMB, p.MaxMemoryMB)
	}
	if c.MaxPids > 0 {
		p.MaxPids = tighter(p.MaxPids, c.MaxPids)
		p.DefaultPids = tighter(p.DefaultPids, p.MaxPids)
	}
	if c.MaxTTL > 0 {
		p.MaxTTL = tighter(p.MaxTTL, c.MaxTTL)
		p.DefaultTTL = tighter(p.DefaultTTL, p.MaxTTL)
	}
	return p
}

// values are c's, all zero where there are none.
func (c *Ceilings) values() Ceilings {
	if c == nil {
		return Ceilings{}
	}
	return *c
}

// allows and gives say whose a ceiling is: a principal is not to take its own for what
// the server allows everybody.
func allows(own bool) string {
	if own {
		return "you may have"
	}
	return "this server allows"
}

func gives(own bool) string {
	if own {
		return "you may have in a session"
	}
	return "this server gives a session"
}

// tighter is the smaller of two ceilings, of which 0 is none.
func tighter[T int | int64 | float64 | time.Duration](a, b T) T {
	if a == 0 || b == 0 {
		return max(a, b)
	}
	return min(a, b)
}

// narrower is the more closed of two tiers, of which the empty one is none.
func narrower(a, b Network) Network {
	if a == "" || b != "" && a.Looser(b) {
		return b
	}
	return a
}

// checkImages and checkWorkspace are the bounds that the server's own policy has no like of.
func (c *Ceilings) checkImages(image string) error {
	if c == nil || len(c.Images) == 0 || matches(c.Images, image) {
		return nil
	}
	return Rejected("image", "this image is not among those that you may use")
}

func (c *Ceilings) checkWorkspace(key string) error {
	if c == nil || strings.HasPrefix(key, c.Workspaces) {
		return nil
	}
	return Rejected("workspace_key", "your workspace keys begin with %q", c.Workspaces)
}

func matches(patterns []string, image string) bool {
	for _, pattern := range patterns {
		if ok, err := path.Match(pattern, image); err == nil && ok {
			return true
		}
	}
	return false
}
