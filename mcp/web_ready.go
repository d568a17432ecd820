package mcp

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"time"

	"caisson/sandbox"
)

// The clocks of /readyz: how long an answer stands, so that probing us is not
// probing the engine, and how long the engine may take.
const (
	readyFor  = time.Second
	readyWait = 5 * time.Second
)

// readiness answers /readyz: whether a call could be served now, and if not, in a
// word why.
type readiness struct {
	s *Server

	mu  sync.Mutex
	at  time.Time
	err error
}

func (p *readiness) ServeHTTP(rw http.ResponseWriter, r *http.Request) {
	if err := p.check(r.Context()); err != nil {
		p.s.log.Debug("not ready", "error", err)
		writeStatus(rw, http.StatusServiceUnavailable, "not ready: "+p.s.whyNotReady(err))
		return
	}
	writeStatus(rw, http.StatusOK, "ready")
}

// check asks at most once in readyFor, one asker at a time. Its question goes
// on when the first who asked has gone: others wait for the answer.
func (p *readiness) check(ctx context.Context) error {
	switch {
	case p.s.setup != nil:
		return p.s.setup
	case p.s.halted.Load():
		return errHalted
	case p.s.calls.ended():
		return errShutdown
	case p.s.options.Ready == nil:
		return nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.at.IsZero() && time.Since(p.at) < readyFor {
		return p.err
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), readyWait)
	defer cancel()
	p.err = p.s.options.Ready(ctx)
	p.at = time.Now()
	return p.err
}

// whyNotReady is a word for a probe's reader. It names nothing: no address, no
// handle, no cause.
func (s *Server) whyNotReady(err error) string {
	switch {
	case s.setup != nil:
		return "settings"
	case errors.Is(err, errHalted):
		return "halted"
	case errors.Is(err, errShutdown):
		return "ending"
	case sandbox.KindOf(err) == sandbox.KindFenced:
		return "replaced"
	}
	return "engine"
}

func writeStatus(rw http.ResponseWriter, status int, text string) {
	rw.Header().Set("Content-Type", "text/plain; charset=utf-8")
	rw.WriteHeader(status)
	_, _ = rw.Write([]byte(text + "\n")) // a prober that has gone needs no answer
}
