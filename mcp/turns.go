package mcp

import (
	"runtime"
	"slices"
	"sync"
	"time"

	"caisson/sandbox"
)

// turnTime is how long a search goes on while others wait, and then to the end of the
// match that is under way.
const turnTime = 100 * time.Millisecond

// turns share out the processors among searches for a client's pattern: a single match
// is bounded, what all that wait for one cost together is not. The owners that wait are
// served in turn, however many searches each has, and no owner has all the places
// where there are several (T53). They may be used concurrently.
type turns struct {
	places int // for searches at a time
	each   int // for those of one owner

	mu    sync.Mutex
	taken int
	held  map[sandbox.Owner]int
	lines []*line // the first one's turn is next, if its owner may have another place
}

// line is what waits of one owner; it is never empty.
type line struct {
	owner sandbox.Owner
	calls []chan struct{} // closed when a place is theirs
}

// turnsOf leaves half of the processors to all else.
func turnsOf(processors int) *turns {
	places := max(1, processors/2)
	return &turns{places: places, each: max(1, places-1), held: map[sandbox.Owner]int{}}
}

func newTurns() *turns { return turnsOf(runtime.GOMAXPROCS(0)) }

// search is one search through an output. It is used by one goroutine.
type search struct {
	turns *turns
	owner sandbox.Owner
	holds bool
	since time.Time
}

func (s *Server) search(c *call) *search { return &search{turns: s.turns, owner: c.owner} }

// on says whether the search may do its next match, for which it waits if need be;
// false: it was over or enough before its turn. A place that is free is had even so.
// The place is kept until rest, or a call of on that gives it to others.
func (x *search) on(over, enough <-chan struct{}) bool {
	if x.holds {
		if time.Since(x.since) < turnTime {
			return true
		}
		x.rest()
	}
	x.holds = x.turns.take(x.owner, over, enough)
	x.since = time.Now()
	return x.holds
}

// rest gives the search's place to others, if it has one.
func (x *search) rest() {
	if x.holds {
		x.holds = false
		x.turns.give(x.owner)
	}
}

// take gets a place, or waits for one until over or enough.
func (t *turns) take(owner sandbox.Owner, over, enough <-chan struct{}) bool {
	t.mu.Lock()
	if t.free(owner) {
		t.grant(owner)
		t.mu.Unlock()
		return true
	}
	mine := t.wait(owner)
	t.mu.Unlock()
	select {
	case <-mine:
		return true
	case <-over:
	case <-enough:
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	return !t.leave(owner, mine) // a place that came meanwhile is had
}

// free says whether an owner can have a place now. Of those that wait none can: give
// has served them. t.mu is held, here and below.
func (t *turns) free(owner sandbox.Owner) bool {
	return t.taken < t.places && t.held[owner] < t.each
}

func (t *turns) grant(owner sandbox.Owner) {
	t.taken++
	t.held[owner]++
}

// wait begins to wait for a place.
func (t *turns) wait(owner sandbox.Owner) chan struct{} {
	mine := make(chan struct{})
	for _, l := range t.lines {
		if l.owner == owner {
			l.calls = append(l.calls, mine)
			return mine
		}
	}
	t.lines = append(t.lines, &line{owner, []chan struct{}{mine}})
	return mine
}

// leave ends a wait; false: it was over, there is a place.
func (t *turns) leave(owner sandbox.Owner, mine chan struct{}) bool {
	for i, l := range t.lines {
		if at := slices.Index(l.calls, mine); l.owner == owner && at >= 0 {
			if l.calls = slices.Delete(l.calls, at, at+1); len(l.calls) == 0 {
				t.lines = slices.Delete(t.lines, i, i+1)
			}
			return true
		}
	}
	return false
}

// give returns a place, and hands it to the one whose turn it is.
func (t *turns) give(owner sandbox.Owner) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.taken--
	if t.held[owner]--; t.held[owner] == 0 {
		delete(t.held, owner)
	}
	for i, l := range t.lines {
		if !t.free(l.owner) {
			continue
		}
		t.grant(l.owner)
		close(l.calls[0])
		t.lines = slices.Delete(t.lines, i, i+1)
		if l.calls = l.calls[1:]; len(l.calls) > 0 {
			t.lines = append(t.lines, l) // the others' turn is before its next
		}
		return // one place has become free, for one
	}
}
