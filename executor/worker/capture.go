package worker

import (
	"bytes"
	"io"
	"strings"
	"sync"
)

// mostPrinted is how much of what code prints on one stream a call gives, in bytes.
const mostPrinted = 1 << 20

// capture reads a stream of a REPL without end, and cuts it into calls by the marks
// that the harness writes at the end of each.
type capture struct {
	mu    sync.Mutex
	mark  []byte
	end   chan struct{} // closed at the mark
	text  []byte
	carry []byte // what may be the beginning of the mark
	left  int
}

func newCapture() *capture { return &capture{} }

// begin starts a call, with what was printed between calls. The channel is closed
// once its mark has come.
func (c *capture) begin(mark string) <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.mark, c.end = []byte(mark), make(chan struct{})
	return c.end
}

// take gives what the call has printed and how many bytes of it are left out.
func (c *capture) take() (text string, left int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.mark != nil { // it will not come any more
		c.keep(c.carry)
		c.carry, c.mark = nil, nil
	}
	text, left = strings.ToValidUTF8(string(c.text), "\uFFFD"), c.left
	c.text, c.left = nil, 0
	// What came behind the mark belongs to the next call.
	c.keep(c.carry)
	c.carry = nil
	return text, left
}

// fill reads until the stream ends.
func (c *capture) fill(from io.Reader) {
	piece := make([]byte, 32<<10)
	for {
		n, err := from.Read(piece)
		c.add(piece[:n])
		if err != nil {
			return
		}
	}
}

func (c *capture) add(piece []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.mark == nil {
		if c.end != nil {
			c.carry = append(c.carry, piece[:min(len(piece), max(0, mostPrinted-len(c.carry)))]...)
		} else {
			c.keep(piece)
		}
		return
	}
	all := append(c.carry, piece...)
	c.carry = nil
	if at := bytes.Index(all, c.mark); at >= 0 {
		c.keep(all[:at])
		c.carry = append(c.carry, all[at+len(c.mark):]...)
		c.mark = nil
		close(c.end)
		return
	}
	hold := min(len(all), len(c.mark)-1)
	c.keep(all[:len(all)-hold])
	c.carry = append(c.carry, all[len(all)-hold:]...)
}

func (c *capture) keep(piece []byte) {
	if room := mostPrinted - len(c.text); len(piece) > room {
		c.left += len(piece) - max(0, room)
		piece = piece[:max(0, room)]
	}
	c.text = append(c.text, piece...)
}
