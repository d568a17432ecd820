package mcp

import (
	"net/http"
	"strings"
	"sync"
	"time"

	mcpgo "github.com/mark3labs/mcp-go/mcp"
)

// postReply is the response to one POST. It becomes a stream with the first thing
// that is said before the answer, and is plain JSON otherwise.
type postReply struct {
	*flow
	plain bool // the client takes no stream: nothing is said before the answer

	mu     sync.Mutex
	stream bool
}

// send sends a message before the answer.
func (p *postReply) send(message []byte) error {
	if p.plain {
		return nil
	}
	if err := p.open(); err != nil {
		return err
	}
	return p.flow.send(message)
}

func (p *postReply) open() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.stream {
		return nil
	}
	p.stream = true
	return p.begin()
}

// finish sends the answer; nil ends the response without one, as a client wants
// that has withdrawn its request (MT-01).
func (p *postReply) finish(answer []byte, status int) {
	p.mu.Lock()
	stream := p.stream
	p.mu.Unlock()
	switch {
	case answer == nil && p.plain:
		p.rw.WriteHeader(http.StatusAccepted)
	case answer == nil:
		_ = p.open()
	case stream:
		_ = p.flow.send(answer)
	default:
		p.rw.Header().Set("Content-Type", "application/json")
		p.rw.WriteHeader(status)
		_ = p.write(answer)
	}
}

// quiet keeps the response alive while nothing is said, until stop is called,
// which waits: proxies cut what is silent for a minute (MT-07).
func (p *postReply) quiet(every time.Duration) (stop func()) {
	if p.plain {
		return func() {}
	}
	end, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		ticker := time.NewTicker(every)
		defer ticker.Stop()
		for {
			select {
			case <-end:
				return
			case <-ticker.C:
				if p.open() != nil || p.breathe() != nil {
					return
				}
			}
		}
	}()
	return func() { close(end); <-ended }
}

// statusOf is the HTTP status that the stateless protocol gives to an error code;
// the older versions answer every error with 200.
func statusOf(code int, modern bool) int {
	if !modern {
		return http.StatusOK
	}
	switch code {
	case mcpgo.METHOD_NOT_FOUND:
		return http.StatusNotFound
	case mcpgo.HEADER_MISMATCH, mcpgo.MISSING_REQUIRED_CLIENT_CAPABILITY, mcpgo.UNSUPPORTED_PROTOCOL_VERSION, mcpgo.INVALID_REQUEST, mcpgo.INVALID_PARAMS, mcpgo.PARSE_ERROR:
		return http.StatusBadRequest
	default:
		return http.StatusOK
	}
}

// takesStream says whether a client can read a stream; one that names nothing can.
func takesStream(r *http.Request) bool {
	accept := strings.Join(r.Header.Values("Accept"), ",")
	return accept == "" || strings.Contains(accept, "text/event-stream") || strings.Contains(accept, "*/*") || strings.Contains(accept, "text/*")
}
