package worker

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"sync"
	"time"
)

const (
	// longestMessage bounds one message of a server, in bytes.
	longestMessage = 16 << 20
	// lastWords is how much of a server's standard error is kept, in bytes: told with
	// its death, and with the next call where nobody was there to hear it.
	lastWords = 16 << 10
	// queued is how many messages may wait for a server that does not read.
	queued = 64
	// closingTime is how long a server has to end once its standard input has.
	closingTime = 300 * time.Millisecond
)

// server is an MCP server that speaks over its standard streams. It is not trusted:
// what it sends unasked is dropped, and everything is bounded. Its methods may run
// concurrently; they return when the server is gone.
type server struct {
	name     string
	children *children
	process  *child
	pipes    *pipes
	out      chan []byte
	ending   chan struct{} // closed when nothing more is sent
	gone     chan struct{} // closed when it is over

	mu       sync.Mutex
	closed   bool
	next     int64
	waiting  map[int64]*waiting
	watchers []*watch
	logged   int
	unheard  *tail // standard error that no call was there for
	last     *tail
	why      error
	junk     int // lines that are no message of ours
	changed  bool
	info     json.RawMessage // what it says it is
}

// waiting is a request of ours that has no answer yet.
type waiting struct {
	answer   chan message
	progress func(json.RawMessage)
}

// startServer starts the server's process; initialize has to follow.
func startServer(c *children, kit *kit, group bool) (*server, error) {
	cmd := exec.Command(kit.argv[0], kit.argv[1:]...) //nolint:noctx // it lives longer than the call that starts it
	pipes, err := pipesOf(cmd)
	if err != nil {
		return nil, err
	}
	process, err := c.start(cmd, group)
	pipes.started()
	if err != nil {
		pipes.close()
		return nil, fmt.Errorf("the server of the toolkit %s: %w", kit.name, err)
	}
	s := &server{
		name: kit.name, children: c, process: process, pipes: pipes, out: make(chan []byte, queued),
		ending: make(chan struct{}), gone: make(chan struct{}), waiting: map[int64]*waiting{},
		unheard: newTail(lastWords), last: newTail(shownStderr),
	}
	var copies sync.WaitGroup
	silent := make(chan struct{})
	copies.Go(s.write)
	copies.Go(func() {
		defer close(silent)
		_ = readLines(pipes.stdout, longestMessage, s.receive)
	})
	copies.Go(func() {
		_ = readLines(pipes.stderr, longestLogged, func(line []byte, _ bool) { s.hear(string(bytes.ToValidUTF8(line, []byte("\uFFFD")))) })
	})
	go s.supervise(silent, &copies)
	return s, nil
}

// supervise waits for the end of the server and buries it. A server that closes its
// standard output has ended for us.
func (s *server) supervise(silent <-chan struct{}, copies *sync.WaitGroup) {
	select {
	case <-s.process.done:
	case <-silent:
		patience := time.NewTimer(closingTime) // its end tells more than its silence
		select {
		case <-s.process.done:
		case <-patience.C:
		}
		patience.Stop()
	}
	why := errors.New("it closed its standard output")
	select {
	case <-s.process.done:
		code, signal := statusOf(s.process.state)
		why = fmt.Errorf("exit status %d", code)
		if signal != "" {
			why = fmt.Errorf("the signal %s", signal)
		}
	default:
	}
	s.children.end(s.process, 0)
	s.stop()
	s.pipes.hurry()
	copies.Wait()
	s.pipes.close()
	s.mu.Lock()
	if s.why == nil {
		s.why = why
	}
	s.mu.Unlock()
	close(s.gone)
}

// stop ends the sending.
func (s *server) stop() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.closed {
		s.closed = true
		close(s.ending)
	}
}

// close ends the server: the end of its standard input, then SIGTERM, then SIGKILL to
// it and what it started; grace 0 means the last at once. It waits for the end.
func (s *server) close(grace time.Duration) {
	s.stop()
	if grace > 0 {
		patience := time.NewTimer(closingTime)
		defer patience.Stop()
		select {
		case <-s.gone:
			return
		case <-patience.C:
		}
	}
	s.children.end(s.process, grace)
	<-s.gone
}

func (s *server) alive() bool {
	select {
	case <-s.gone:
		return false
	case <-s.process.done: // and supervise is about to say so
		return false
	default:
		return true
	}
}

// fault says how the server ended.
func (s *server) fault() error {
	<-s.gone
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.why
}

// died is the error of a call during which the server ended.
func (s *server) died() error {
	why := s.fault()
	s.mu.Lock()
	defer s.mu.Unlock()
	text := fmt.Sprintf("the server of the toolkit %s ended during the call (%v); the next call starts it again", s.name, why)
	if words := strings.TrimSpace(s.last.String()); words != "" {
		text += "; it wrote at last: " + words
	}
	return errors.New(text)
}

// follow lets a call hear what the server writes to its standard error, until leave.
func (s *server) follow(w watch) (leave func()) {
	mine := &w
	s.tellUnheard(w.stderr)
	s.mu.Lock()
	s.watchers = append(s.watchers, mine)
	s.logged = 0
	s.mu.Unlock()
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		for i, other := range s.watchers {
			if other == mine {
				s.watchers = append(s.watchers[:i:i], s.watchers[i+1:]...)
				return
			}
		}
	}
}

// tellUnheard gives what was written while no call was there to hear it.
func (s *server) tellUnheard(log func(string)) {
	s.mu.Lock()
	earlier := s.unheard.String()
	s.unheard = newTail(lastWords)
	s.mu.Unlock()
	for line := range strings.Lines(earlier) {
		log(s.name + ": " + strings.TrimSuffix(line, "\n"))
	}
}

// hear passes a line of the server's standard error on to one of the calls under way.
func (s *server) hear(line string) {
	s.mu.Lock()
	_, _ = s.last.Write([]byte(line + "\n"))
	var to *watch
	switch {
	case len(s.watchers) == 0:
		_, _ = s.unheard.Write([]byte(line + "\n"))
	case s.logged <= mostLogged:
		to = s.watchers[0]
		if s.logged += len(line) + 1; s.logged > mostLogged {
			line = "more is left out"
		}
	}
	s.mu.Unlock()
	if to != nil {
		to.stderr(s.name + ": " + line)
	}
}
