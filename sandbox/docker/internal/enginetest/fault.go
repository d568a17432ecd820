package enginetest

import (
	"regexp"
	"time"
)

// Fault is what a proxy does to a call.
type Fault struct {
	Method string         // empty: any
	Path   *regexp.Regexp // of the path, without the API's version
	Times  int            // how many calls it is for; 0: all

	Status   int           // answered in the engine's place, with Message
	Message  string        //
	Say      string        // an attach is answered by this as the command's stdout, and its end
	Swallow  bool          // the engine gets the call, the caller no answer: the connection breaks
	Hang     bool          // the engine gets nothing and the caller no answer, until one of them gives up
	Reset    bool          // the engine gets nothing, the caller's connection is reset
	Delay    time.Duration // before the engine gets the call
	Truncate int           // the answer's body ends after so many bytes, as if that were all
	CutAt    int           // the connection breaks after so many bytes of an attached stream's output, or of the answer's body
	Bytes    bool          // what is answered comes byte by byte
	Stall    time.Duration // an attached stream's output is not taken from the engine before
	Rate     int           // at so many bytes a second, both ways
	Done     chan struct{} // closed at the first call, where it is not nil

	// Pause, where it is not nil: nothing of an attached stream's output is taken from
	// the engine before it is closed.
	Pause <-chan struct{}
}

// Call is one call that a proxy has seen.
type Call struct {
	Method string
	Path   string // without the API's version
	At     time.Time
	Done   string // the term of the rule that was for it, "fault" for a Fault; empty: nothing was done to it
	Status int    // the engine's answer, seen by the caller or not; 0: none so far
}

func (c Call) String() string { return c.Method + " " + c.Path }

// Inject adds a fault.
func (p *Proxy) Inject(f Fault) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.faults = append(p.faults, &f)
}

// Add adds rules behind those that are there.
func (p *Proxy) Add(rules ...*Rule) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.rules = append(p.rules, rules...)
}

// Clear takes all faults and rules away. Calls that they were for go on as they were.
func (p *Proxy) Clear() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.faults, p.rules = nil, nil
}

// Record is what is known of the calls so far, in their order.
func (p *Proxy) Record() []Call {
	p.mu.Lock()
	defer p.mu.Unlock()
	all := make([]Call, len(p.calls))
	for i, c := range p.calls {
		all[i] = *c
	}
	return all
}

// Calls are the calls so far, as "METHOD /path".
func (p *Proxy) Calls() []string {
	var all []string
	for _, c := range p.Record() {
		all = append(all, c.String())
	}
	return all
}

// Forget empties the record.
func (p *Proxy) Forget() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.calls = nil
}
