package mcp

import (
	"io"
	"net/http"
	"sync"
	"time"
)

// writeTime is how long a piece of an answer may take to go out over HTTP; a client
// that takes in less has gone.
const writeTime = 60 * time.Second

// flow writes to one client over HTTP. Nothing is kept for a client that does not
// read: the writer waits, which holds up that client's own calls alone, and gives
// up when rw does (watchedAnswer).
type flow struct {
	rw   http.ResponseWriter
	gone func() // called once when nothing can be written any more

	mu     sync.Mutex
	broken error
}

func newFlow(rw http.ResponseWriter, gone func()) *flow { return &flow{rw: rw, gone: gone} }

// write sends parts one after the other, with nothing of another write between.
func (f *flow) write(parts ...[]byte) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, part := range parts {
		if f.broken == nil {
			_, err := f.rw.Write(part)
			f.fail(err)
		}
	}
	if f.broken == nil {
		f.fail(http.NewResponseController(f.rw).Flush())
	}
	return f.broken
}

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
