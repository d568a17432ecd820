package mcp

import (
	"context"
	"sync"

	mcpgo "github.com/mark3labs/mcp-go/mcp"

	"caisson/sandbox"
)

const (
	// maxRequests is how many requests of one client may be served at once,
	// calls included: well above maxCalls, so that a client which is told to
	// wait can still list, cancel and end.
	maxRequests = 256
	rpcBusy     = -32011 // the JSON-RPC code of a refusal for their number
)

// peer is one client: a stdio process, an SSE stream, a client session of
// Streamable HTTP, or a single request of the stateless protocol.
type peer struct {
	id    string        // of the client session; empty for a stateless client
	owner sandbox.Owner // who began it
	ctx   context.Context
	end   context.CancelFunc

	requests requests
	watched  watched
	answers  answers // to requests of ours

	// What a client says of itself is not kept: nobody asks for it, and it may be long.
	mu      sync.Mutex
	level   mcpgo.LoggingLevel
	version string
}

func newPeer(ctx context.Context, id string, owner sandbox.Owner) *peer {
	p := &peer{id: id, owner: owner, level: mcpgo.LoggingLevelInfo}
	p.ctx, p.end = context.WithCancel(ctx)
	return p
}
