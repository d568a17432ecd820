package mcp

import (
	"context"
	"strconv"
	"sync"
	"sync/atomic"

	mcpgo "github.com/mark3labs/mcp-go/mcp"

	"caisson/sandbox"
)

// streams are the exchanges on which the server may say something of its own
// accord: that the tool list has changed, or a file that a client watches.
type streams struct {
	last atomic.Int64

	mu   sync.Mutex
	open map[*exchange]struct{}
}

// listen opens a stream: from now on it gets what the server tells all clients, and
// what its own has subscribed to. The returned function closes it.
func (s *Server) listen(ctx context.Context, x *exchange) (leave func()) {
	t := tap{x, "stream-" + strconv.FormatInt(s.streams.last.Add(1), 10)}
	_ = s.mcp.RegisterSession(ctx, t) // only fails for a name that is taken
	s.streams.mu.Lock()
	if s.streams.open == nil {
		s.streams.open = map[*exchange]struct{}{}
	}
	s.streams.open[x] = struct{}{}
	s.streams.mu.Unlock()
	return func() {
		s.streams.mu.Lock()
		delete(s.streams.open, x)
		s.streams.mu.Unlock()
		s.mcp.UnregisterSession(ctx, t.name)
	}
}

// changed tells the clients of an owner that watch a file of a session that it may
// have changed: a call has just ended that may have done so. It waits for nobody;
// a client that does not read misses it.
func (s *Server) changed(owner sandbox.Owner, session string) {
	if session == "" {
		return
	}
	s.streams.mu.Lock()
	defer s.streams.mu.Unlock()
	for x := range s.streams.open {
		if x.owner != owner {
			continue
		}
		for _, uri := range x.subscriptions().of(session) {
			select {
			case x.NotificationChannel() <- mcpgo.JSONRPCNotification{
				JSONRPC: mcpgo.JSONRPC_VERSION,
				Notification: mcpgo.Notification{
					Method: mcpgo.MethodNotificationResourceUpdated,
					Params: mcpgo.NotificationParams{AdditionalFields: map[string]any{"uri": uri}},
				},
			}:
			default:
			}
		}
	}
}
