package mcp

import (
	"context"
	"encoding/json"
	"sync"

	"caisson/sandbox"
)

// errWithdrawn is why a request ends that its client has cancelled. It is not
// answered any more.
var errWithdrawn = sandbox.Errorf("serve", sandbox.KindCancelled, "the client has cancelled the request")

// requests are those of one client that are being served, by their id as it was
// sent. The map is ours and not mcp-go's: there 1 and "1" are one request, as are
// all numbers beyond 2^53 that round to the same, and clients without a session
// share it (MT-01, T48).
type requests struct {
	mu   sync.Mutex
	live map[string]context.CancelCauseFunc
}

// begin notes a request; the context ends when the client cancels it. done must
// be called at its end. An id that is in use is refused.
func (r *requests) begin(ctx context.Context, id json.RawMessage) (_ context.Context, done func(), _ *rpcFault) {
	key, _ := idKey(id)
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case r.live[key] != nil:
		return nil, nil, invalidMessage("a request with this id is being served")
	case len(r.live) >= maxRequests:
		return nil, nil, &rpcFault{rpcBusy, "too many requests of this client are being served; wait for one to end"}
	case r.live == nil:
		r.live = map[string]context.CancelCauseFunc{}
	}
	ctx, cancel := context.WithCancelCause(ctx)
	r.live[key] = cancel
	return ctx, func() {
		cancel(nil)
		r.mu.Lock()
		defer r.mu.Unlock()
		delete(r.live, key)
	}, nil
}

// withdraw ends the request that a cancel notice names. One that is not being
// served is ignored: it may just have been answered.
func (r *requests) withdraw(params json.RawMessage) {
	var notice struct {
		ID json.RawMessage `json:"requestId"`
	}
	if json.Unmarshal(params, &notice) != nil {
		return
	}
	key, ok := idKey(notice.ID)
	if !ok {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if cancel := r.live[key]; cancel != nil {
		cancel(errWithdrawn)
	}
}
