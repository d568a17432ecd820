package mcp

import (
	"context"
	"sync"

	"caisson/sandbox"
)

// The bounds of bodies in memory.
const (
	// smallBody is how large a body may be that is not counted: it costs no more
	// than its connection, and connections are counted.
	smallBody = 16 << 10
	// bodyRoom is how much memory all larger bodies may have together, or four of
	// the largest that may be sent.
	bodyRoom = 128 << 20
	// valueCost is what a value of a message is counted as, beside its text: about
	// what the dearest costs once it has been read, an object with one member.
	valueCost = 256
)

// bodies is the room in memory for the bodies that are arriving and those of the
// requests that are being served. It may be used concurrently. A principal gets
// as much as it then leaves for the others, so that none takes all, and neither do
// some together: whoever has nothing yet can have half of what is left.
type bodies struct {
	room int64

	mu    sync.Mutex
	taken int64
	by    map[string]int64 // of each principal that has some
	freed chan struct{}    // closed when some is given back; nil: nobody waits
}

func newBodies(largest int64) *bodies { return &bodies{room: max(bodyRoom, 4*largest)} }

// share is what one request has of the room.
type share struct {
	of    *bodies
	owner string
	size  int64 // under of.mu
	over  bool  // the request has been answered: whatever still runs of it takes nothing; under of.mu
}

// wait takes n bytes more as soon as they are free, or fails at the end of ctx.
// Who waits holds nothing: a request must not wait twice.
func (s *share) wait(ctx context.Context, n int64) error {
	for {
		freed := s.try(n)
		if freed == nil {
			return nil
		}
		select {
		case <-freed:
		case <-ctx.Done():
			return errNoRoom
		}
	}
}

// more takes n bytes more, or fails when they are not free now.
func (s *share) more(n int64) error {
	if s.try(n) != nil {
		return errNoRoom
	}
	return nil
}

// errNoRoom is why a body is not taken.
var errNoRoom = sandbox.Errorf("read body", sandbox.KindBusy, "too many large messages of this principal, or of all, are arriving or being served; send it again later, or in smaller pieces")

// try takes n bytes. Where they are not free, the channel that it returns is closed
// when some may be.
func (s *share) try(n int64) <-chan struct{} {
	b := s.of
	b.mu.Lock()
	defer b.mu.Unlock()
	if s.over {
		return nil
	}
	if b.by[s.owner]+n > b.room-b.taken-n {
		if b.freed == nil {
			b.freed = make(chan struct{})
		}
		return b.freed
	}
	if b.by == nil {
		b.by = map[string]int64{}
	}
	b.taken += n
	b.by[s.owner] += n
	s.size += n
	return nil
}

// shrink gives back all but n bytes.
func (s *share) shrink(n int64) {
	b := s.of
	b.mu.Lock()
	defer b.mu.Unlock()
	back := s.size - n
	if back <= 0 {
		return
	}
	s.size = n
	b.taken -= back
	if b.by[s.owner] -= back; b.by[s.owner] == 0 {
		delete(b.by, s.owner)
	}
	if b.freed != nil {
		close(b.freed)
		b.freed = nil
	}
}

// release gives all back, for good. It may be called more than once.
func (s *share) release() {
	s.shrink(0)
	s.of.mu.Lock()
	defer s.of.mu.Unlock()
	s.over = true
}

type shareKey struct{}

// answerCost is how many bytes of the room an answer takes for each of what it tells: it is
// in memory several times until its client has read it.
const answerCost = 2

// roomForAnswer waits for the room of an answer of up to n bytes, which it has until its
// request is over; a request whose own body has some does not wait. fit gives back what the
// answer does not need. Where no room is counted (stdio) there is nothing to wait for.
func roomForAnswer(ctx context.Context, n int64) (fit func(n int64), err error) {
	held, counted := ctx.Value(shareKey{}).(*share)
	if !counted || n <= smallBody {
		return func(int64) {}, nil
	}
	body := held.has()
	if body > 0 {
		err = held.more(answerCost * n)
	} else {
		err = held.wait(ctx, answerCost*n)
	}
	return func(n int64) { held.shrink(body + answerCost*n) }, err
}

func (s *share) has() int64 {
	s.of.mu.Lock()
	defer s.of.mu.Unlock()
	return s.size
}
