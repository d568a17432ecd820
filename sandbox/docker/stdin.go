package docker

import (
	"context"
	"io"
	"sync"
)

// stdinPump writes a command's input. It has a goroutine of its own, since a
// write that a deadline cuts short would break a TLS connection for good, and a
// caller's cancelled write must not end the command's input.
type stdinPump struct {
	st      *stream
	parts   chan stdinPart
	last    chan struct{} // closed: no more input is to come
	over    chan struct{} // closed when the goroutine has ended
	finOnce sync.Once
}

// stdinPart is a part of the input on its way; taken is told once it is written.
type stdinPart struct {
	p     []byte
	taken chan error
}

// stdinPartSize is how much is handed over at once: what a cancelled write may still
// deliver.
const stdinPartSize = 32 << 10

func (w *stdinPump) init(st *stream) {
	w.st, w.parts, w.last, w.over = st, make(chan stdinPart), make(chan struct{}), make(chan struct{})
}

// run writes parts until the input or the command has ended. The connection's
// close frees it from a command that does not read.
func (w *stdinPump) run(done <-chan struct{}) {
	defer close(w.over)
	var err error
	for {
		select {
		case next := <-w.parts:
			if err == nil {
				_, err = w.st.conn.Write(next.p)
			}
			next.taken <- err
		case <-w.last:
			if err == nil {
				_ = w.st.closeWrite() // a command that is gone needs no end of input
			}
			return
		case <-done:
			return
		}
	}
}

// write hands p over stdinPart by stdinPart, and returns how much of it was taken.
func (w *stdinPump) write(ctx context.Context, done <-chan struct{}, p []byte) (n int, err error) {
	for len(p) > 0 {
		// A copy: the stdinPart may outlive a call that ctx ends.
		next := stdinPart{append([]byte(nil), p[:min(len(p), stdinPartSize)]...), make(chan error, 1)}
		select {
		case w.parts <- next:
		case <-w.over:
			return n, io.ErrClosedPipe
		case <-done:
			return n, io.ErrClosedPipe
		case <-ctx.Done():
			return n, ctx.Err()
		}
		select {
		case err := <-next.taken:
			if err != nil {
				return n, err
			}
		case <-ctx.Done():
			return n + len(next.p), ctx.Err() // it is on its way and will arrive
		}
		n += len(next.p)
		p = p[len(next.p):]
	}
	return n, nil
}

func (w *stdinPump) finish() { w.finOnce.Do(func() { close(w.last) }) }

// wait waits for the goroutine, where one was started.
func (w *stdinPump) wait(started bool) {
	if started {
		<-w.over
	}
}
