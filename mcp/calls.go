package mcp

import (
	"context"
	"sync"

	"caisson/sandbox"
)

// maxCalls is how many calls of one client may be under way at once. It is well
// below mcp-go's 100 stdio workers, so that no call ever waits in their queue:
// there it could not be cancelled, and a full queue stops the reading of stdin.
const maxCalls = 64

// calls knows the calls that are under way, by client, so that they can be
// limited, and ended with their client or with the server.
type calls struct {
	work sync.WaitGroup

	mu     sync.Mutex
	closed bool
	live   map[string]map[*liveCall]struct{}
	owners map[string]int // of each principal, the calls that count
}

type liveCall struct {
	cancel context.CancelCauseFunc
	counts bool
	owner  string
}

// errClientGone is why a call ends whose client has left.
var errClientGone = sandbox.Errorf("serve", sandbox.KindCancelled, "the client has gone")

// errShutdown is why a call ends when the server does.
var errShutdown = sandbox.Errorf("serve", sandbox.KindUnavailable, "the server is shutting down")

// enter counts a call of a client in, and of its principal where there is one. An
// urgent one, that takes something off
// the server, is never refused for their number. The returned context ends with
// the client; leave must be called at the call's end.
func (c *calls) enter(ctx context.Context, client, owner string, urgent bool) (context.Context, func(), error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return nil, nil, errShutdown
	}
	mine := c.live[client]
	counted := 0
	for other := range mine {
		if other.counts {
			counted++
		}
	}
	if counted >= maxCalls && !urgent {
		return nil, nil, sandbox.Errorf("serve", sandbox.KindBusy, "%d calls of this client are under way, the most that may be; wait for one to end", counted)
	}
	if owner != "" && c.owners[owner] >= maxOwnerCalls && !urgent {
		return nil, nil, sandbox.Errorf("serve", sandbox.KindBusy, "%d calls of this principal are under way, the most that may be; wait for one to end", c.owners[owner])
	}
	ctx, cancel := context.WithCancelCause(ctx)
	call := &liveCall{cancel: cancel, counts: !urgent, owner: owner}
	if owner != "" && !urgent {
		if c.owners == nil {
			c.owners = map[string]int{}
		}
		c.owners[owner]++
	}
	if mine == nil {
		if c.live == nil {
			c.live = map[string]map[*liveCall]struct{}{}
		}
		mine = map[*liveCall]struct{}{}
		c.live[client] = mine
	}
	mine[call] = struct{}{}
	c.work.Add(1)
	return ctx, func() { c.leave(client, call) }, nil
}

func (c *calls) leave(client string, call *liveCall) {
	call.cancel(nil)
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.live[client], call)
	if call.owner != "" && call.counts {
		if c.owners[call.owner]--; c.owners[call.owner] == 0 {
			delete(c.owners, call.owner)
		}
	}
	if len(c.live[client]) == 0 {
		delete(c.live, client)
	}
	c.work.Done()
}

// endClient cancels the calls of a client that has left.
func (c *calls) endClient(client string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for call := range c.live[client] {
		call.cancel(errClientGone)
	}
}

// ended says whether no more calls are taken.
func (c *calls) ended() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.closed
}

// close takes no more calls, cancels those under way and waits for them, or for
// ctx.
func (c *calls) close(ctx context.Context) error {
	c.mu.Lock()
	c.closed = true
	for _, mine := range c.live {
		for call := range mine {
			call.cancel(errShutdown)
		}
	}
	c.mu.Unlock()
	done := make(chan struct{})
	go func() { c.work.Wait(); close(done) }() // ends with the last call, each of which is bounded
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return sandbox.Errorf("shut down", sandbox.KindUnknownOutcome, "calls were still under way when the time for it was over").Because(ctx.Err())
	}
}
