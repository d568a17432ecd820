package sandbox

import "time"

// Ceilings are bounds of one owner's sessions, beside the policy's: the tighter
// of both counts. A zero field is no bound. It is not changed once it has been
// made.
type Ceilings struct {
	MaxNetwork  Network // the loosest tier
	MaxCPU      float64 // cores
	MaxMemoryMB int64
	MaxTTL      time.Duration // idle time
	Images      []string      // patterns as of path.Match, one of which an image must match
	Workspaces  string        // what a workspace key must begin with
	Sessions    int           // at one time; 0: MAX_SESSIONS_PER_OWNER
}
