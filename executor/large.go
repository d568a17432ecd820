package executor

import (
	"sync"

	"caisson/sandbox"
)

// How many large results are read at one time: all together, and those of one owner,
// so that none who begins a result and does not end it stops the others. One costs
// some ten times its own size while it is read.
const (
	mostLarge    = 8
	mostLargeOwn = 2
)

// largeResults lets large results in, in no order. All methods may be called
// concurrently.
type largeResults struct {
	mu    sync.Mutex
	total int
	own   map[sandbox.Owner]int
	freed chan struct{} // closed when one has left
}

func newLargeResults() *largeResults {
	return &largeResults{own: map[sandbox.Owner]int{}, freed: make(chan struct{})}
}

// enter waits for a place for one of an owner's, until leave. It is false where one of
// the channels was closed before.
func (l *largeResults) enter(owner sandbox.Owner, stops [2]<-chan struct{}) bool {
	for {
		l.mu.Lock()
		if l.total < mostLarge && l.own[owner] < mostLargeOwn {
			l.total++
			l.own[owner]++
			l.mu.Unlock()
			return true
		}
		freed := l.freed
		l.mu.Unlock()
		select {
		case <-freed:
		case <-stops[0]:
			return false
		case <-stops[1]:
			return false
		}
	}
}

func (l *largeResults) leave(owner sandbox.Owner) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.total--
	if l.own[owner]--; l.own[owner] == 0 {
		delete(l.own, owner)
	}
	close(l.freed)
	l.freed = make(chan struct{})
}
