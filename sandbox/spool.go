package sandbox

import (
	"errors"
	"sync"
)

// errSpoolClosed is the cause given when a record's output has made room for
// younger ones.
var errSpoolClosed = errors.New("output no longer kept")

// Spool keeps what one command printed: in memory at first, then in a temporary
// file, and past its cap the head and the tail (D13). Every byte is counted,
// kept or not.
//
// All methods may be called concurrently. Append never waits for a reader, so
// that a slow one cannot make us pass back-pressure to the engine, which would
// then lose output (STR-3).
type Spool struct {
	pool *Spools

	mu      sync.Mutex
	lanes   [streams]lane
	sealed  bool
	closed  bool
	changed chan struct{}
}

// Append adds bytes to a stream. After Seal they are left out: the output was
// cut there.
func (s *Spool) Append(st Stream, p []byte) {
	if len(p) == 0 {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.sealed {
		return
	}
	if s.closed {
		s.lanes[st].total += int64(len(p))
	} else {
		s.lanes[st].append(s.pool, p)
	}
	s.wake()
}

// Read copies at most limit bytes of a stream from offset on. It does not wait.
// The error is of the spool's file, or says that the output is no longer kept.
func (s *Spool) Read(st Stream, offset int64, limit int) (Chunk, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	l := &s.lanes[st]
	if s.closed {
		return Chunk{Offset: l.total}, errSpoolClosed
	}
	return l.read(max(offset, 0), limit)
}

// Total is how many bytes of a stream have arrived, kept or not.
func (s *Spool) Total(st Stream) int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.lanes[st].total
}

// Kept lists what can still be read of a stream, in order: one range, or the
// head and the tail.
func (s *Spool) Kept(st Stream) []Range {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil
	}
	return s.lanes[st].kept()
}

// Changed returns a channel that is closed at the next Append, Seal or Close.
func (s *Spool) Changed() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.changed
}

// Seal cuts the output: nothing is added any more.
func (s *Spool) Seal() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.sealed {
		s.sealed = true
		s.wake()
	}
}

// Close frees memory and file; totals stay. Closing twice is harmless.
func (s *Spool) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil
	}
	s.closed = true
	s.wake()
	var errs []error
	for i := range s.lanes {
		errs = append(errs, s.lanes[i].close(s.pool))
	}
	s.pool.forget(s)
	return errors.Join(errs...)
}

// wake tells the waiting; s.mu is held.
func (s *Spool) wake() {
	close(s.changed)
	s.changed = make(chan struct{})
}
