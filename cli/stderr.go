package cli

import (
	"bytes"
	"io"
	"sync"
	"time"

	"caisson/settings"
)

const (
	// stderrLines is how many lines wait for a reader before more are dropped.
	stderrLines = 2048
	// stderrFlush bounds the wait for a reader when the program ends.
	stderrFlush = 500 * time.Millisecond
)

// stderr writes lines in the background. A client that starts the server and
// never reads its standard error fills a pipe after some 64 KiB, and a server
// that waited for it would answer no more calls (MT-03): lines that find no room
// are dropped, and their number is told when there is room again.
type stderr struct {
	out     io.Writer
	dropped func(out io.Writer, lines int) // says how many are missing
	lines   chan []byte
	done    chan struct{}

	mu     sync.Mutex
	closed bool
	missed int
}

// newStderr starts the writer; close ends it.
func newStderr(out io.Writer, dropped func(out io.Writer, lines int)) *stderr {
	w := &stderr{out: out, dropped: dropped, lines: make(chan []byte, stderrLines), done: make(chan struct{})}
	go w.run()
	return w
}

// Write takes one line. It never blocks and never fails.
func (w *stderr) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		return len(p), nil
	}
	select {
	case w.lines <- bytes.Clone(p):
	default:
		w.missed++
	}
	return len(p), nil
}

// IsTerminal says whether the lines end up on a terminal.
func (w *stderr) IsTerminal() bool { return settings.IsTerminal(w.out) }

func (w *stderr) run() {
	defer close(w.done)
	for line := range w.lines {
		_, _ = w.out.Write(line) // there is nowhere else to say that it failed
		w.tell()
	}
}

// tell says that lines are missing, where they are.
func (w *stderr) tell() {
	w.mu.Lock()
	missed := w.missed
	w.missed = 0
	w.mu.Unlock()
	if missed > 0 {
		w.dropped(w.out, missed)
	}
}

// close writes what is waiting, as far as somebody reads it in time.
func (w *stderr) close() {
	w.mu.Lock()
	if !w.closed {
		w.closed = true
		close(w.lines)
	}
	w.mu.Unlock()
	select {
	case <-w.done:
	case <-time.After(stderrFlush):
	}
}
