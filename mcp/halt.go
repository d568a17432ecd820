package mcp

import (
	"context"
	"time"

	"caisson/sandbox"
)

// haltLimit bounds a halt in case the manager's own bound does not (R35).
const haltLimit = sandbox.HaltLimit + time.Second

// errHalted is why a call ends when an operator stops everything.
var errHalted = sandbox.Errorf("serve", sandbox.KindUnavailable, "stopped by the operator").Because(sandbox.ErrHalted)

// Halt is the operator's kill switch: no session and no command is begun any
// more, every session of this server ends, and then whatever call is still under
// way is cancelled. The server stays up and refuses until it is started anew. It
// returns how many sessions it has ended, within 10 s even when the engine does
// not answer; the error then tells that some may go on. It may be called again,
// also while the server ends.
func (s *Server) Halt(ctx context.Context) (ended int, err error) {
	s.halted.Store(true)
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), haltLimit)
	defer cancel()
	if s.manager != nil {
		ended, err = s.manager.Halt(ctx)
	}
	s.calls.endAll(errHalted)
	if err != nil {
		s.log.Error("halted by the operator, and not all sessions could be ended", "ended", ended, "error", err)
	} else {
		s.log.Warn("halted by the operator: every session has been ended, and none is made until the server is started anew", "ended", ended)
	}
	s.operatorDid("halt", &ended, err)
	return ended, err
}

// endAll cancels every call that is under way.
func (c *calls) endAll(cause error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, mine := range c.live {
		for call := range mine {
			call.cancel(cause)
		}
	}
}

// underWay is how many calls are being served.
func (c *calls) underWay() (n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, mine := range c.live {
		n += len(mine)
	}
	return n
}
