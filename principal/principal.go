package principal

import (
	"path"
	"slices"
	"time"

	"caisson/sandbox"
)

// Principal is one who may call a shared endpoint, and what it may do there. It
// is not changed once it has been made, so it may be read from any goroutine. A
// later request of the same principal may carry another value: the file has been
// read again.
type Principal struct {
	Name          string            // unique, 1 to 128 printable characters
	Ceilings      *sandbox.Ceilings // of its sessions; nil: the server's alone
	Tools         []string          // path.Match patterns of the tools it may see and call; empty: all
	Policy        string            // the execution policy of the manifest's tools; empty: the default one
	RatePerMinute int               // messages; 0: the server's rate
	Until         time.Time         // when what it has shown ends, and a stream with it; zero: never
}

// May says whether the principal may see and call a tool.
func (p *Principal) May(tool string) bool {
	return p == nil || len(p.Tools) == 0 || slices.ContainsFunc(p.Tools, func(pattern string) bool {
		ok, err := path.Match(pattern, tool) // a malformed one is refused when the file is read
		return err == nil && ok
	})
}

// Owner is whose the principal's sessions are.
func (p *Principal) Owner() sandbox.Owner { return sandbox.Owner{Name: p.Name, Principal: true} }

// until is the principal with an end; nil of nil.
func (p *Principal) until(end time.Time) *Principal {
	if p == nil {
		return nil
	}
	ends := *p
	ends.Until = end
	return &ends
}
