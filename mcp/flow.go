package mcp

import (
	"io"
	"net/http"
	"sync"
	"time"
)

// Bounds of what is written to a client over HTTP.
const (
	writeTime  = 60 * time.Second // for a piece; a client that takes in less has gone
	writePiece = 32 << 10
)

// flow writes to one client over HTTP. Nothing is kept for a client that does not
// read: the writer waits, which holds up that client's own calls alone, and gives
// up when not even a piece goes out within the limit (T53).
type flow struct {
	rw    http.ResponseWriter
	ctl   *http.ResponseController
	limit time.Duration
	gone  func() // called once when nothing can be written any more

	mu     sync.Mutex
	broken error
}

func newFlow(rw http.ResponseWriter, limit time.Duration, gone func()) *flow {
	return &flow{rw: rw, ctl: http.NewResponseController(rw), limit: limit, gone: gone}
}

// write sends parts one after the other, with nothing of another write between.
func (f *flow) write(parts ...[]byte) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, part := range parts {
		for len(part) > 0 && f.broken == nil {
			n := min(len(part), writePiece)
			f.patience()
			_, err := f.rw.Write(part[:n])
			f.fail(err)
			part = part[n:]
		}
	}
	if f.broken == nil {
		f.patience()
		f.fail(f.ctl.Flush())
	}
	return f.broken
}

// patience begins the time for a piece. A writer that knows no deadlines has none.
func (f *flow) patience() { _ = f.ctl.SetWriteDeadline(time.Now().Add(f.limit)) }

func (f *flow) fail(err error) {
	if err == nil || f.broken != nil {
		return
	}
	f.broken = err
	f.gone()
}

// begin sends the head of a stream of events.
func (f *flow) begin() error {
	h := f.rw.Header()
	h.Set("Content-Type", "text/event-stream")
	h.Set("Cache-Control", "no-cache, no-store")
	f.rw.WriteHeader(http.StatusOK)
	return f.write()
}

// send sends a message as an event.
func (f *flow) send(message []byte) error {
	return f.write([]byte("event: message\ndata: "), message, []byte("\n\n"))
}

// breathe keeps a quiet stream open across proxies (MT-07).
func (f *flow) breathe() error { return f.write([]byte(": quiet\n\n")) }

// close marks the stream as ended: whoever still wants to write gets an error.
func (f *flow) close() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.broken == nil {
		f.broken = io.ErrClosedPipe
	}
}
