package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"sync"

	mcpgo "github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"
)

// sink takes messages to a client, whole and in order. It may be used
// concurrently; an error means that the client has gone.
type sink interface {
	send(message []byte) error
}

// exchange is one request and what is sent on its account, or one stream and what
// the server says there of its own accord. mcp-go takes it for the client's
// session. Each request has its own, so that a notice cannot end up on another's
// stream; and progress is written by the call itself, so that none is lost
// and none follows the result (MT-09).
type exchange struct {
	*peer
	out sink
	tag json.RawMessage // of a subscription: the id that its messages carry
	own watched         // of a subscription

	token json.RawMessage // under which progress is wanted; empty: none is

	notices chan mcpgo.JSONRPCNotification
	start   sync.Once
	stop    chan struct{}
	stopped chan struct{} // nil as long as nothing forwards

	mu   sync.Mutex // held while something is sent: nothing is once the exchange is over
	over bool

	wants  sync.Mutex // of its own: mcp-go asks for every client's filter in turn, and must not wait for one that does not read
	filter *mcpgo.SubscriptionFilter
}

// maxNotices is how many notices may wait that mcp-go sends. Only its own few go
// that way; what it cannot place it drops.
const maxNotices = 256

func newExchange(p *peer, out sink) *exchange {
	return &exchange{peer: p, out: out, notices: make(chan mcpgo.JSONRPCNotification, maxNotices), stop: make(chan struct{})}
}

// errOver is why a notice is not sent any more.
var errOver = errors.New("the request is over")

// notify sends a notice at once, if the request still goes on.
func (x *exchange) notify(method string, params map[string]any) error {
	return x.forward(mcpgo.JSONRPCNotification{
		JSONRPC:      mcpgo.JSONRPC_VERSION,
		Notification: mcpgo.Notification{Method: method, Params: mcpgo.NotificationParams{AdditionalFields: params}},
	})
}

func (x *exchange) forward(n mcpgo.JSONRPCNotification) error {
	if x.tag != nil {
		meta := map[string]any{mcpgo.MetaKeySubscriptionID: x.tag}
		for name, value := range n.Params.Meta {
			if name != mcpgo.MetaKeySubscriptionID {
				meta[name] = value
			}
		}
		n.Params.Meta = meta
	}
	raw, err := json.Marshal(n)
	if err != nil {
		return err
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.over {
		return errOver
	}
	return x.out.send(raw)
}

// close ends the exchange: what mcp-go has handed over is sent, unless the request
// was withdrawn, and nothing after it.
func (x *exchange) close(withdrawn bool) {
	if withdrawn {
		x.silence()
	}
	x.start.Do(func() {}) // nothing begins to forward any more
	if x.stopped != nil {
		close(x.stop)
		<-x.stopped
	}
	x.silence()
}

func (x *exchange) silence() {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.over = true
}

// run forwards until close; it is the one reader of notices.
func (x *exchange) run() {
	defer close(x.stopped)
	for {
		select {
		case n := <-x.notices:
			_ = x.forward(n) // a client that has gone ends the request elsewhere
		case <-x.stop:
			for {
				select {
				case n := <-x.notices:
					_ = x.forward(n)
				default:
					return
				}
			}
		}
	}
}

// NotificationChannel is where mcp-go puts what it sends by itself.
func (x *exchange) NotificationChannel() chan<- mcpgo.JSONRPCNotification {
	x.start.Do(func() {
		x.stopped = make(chan struct{})
		go x.run() // close waits for it
	})
	return x.notices
}

// SessionID names the client.
func (x *exchange) SessionID() string { return x.id }

// Initialize is of no account: no request needs another before it.
func (x *exchange) Initialize() {}

// Initialized always holds.
func (x *exchange) Initialized() bool { return true }

// SetSubscriptionFilter keeps what a subscription of the stateless protocol wants.
func (x *exchange) SetSubscriptionFilter(f mcpgo.SubscriptionFilter) {
	x.wants.Lock()
	defer x.wants.Unlock()
	x.filter = &f
}

// SubscriptionFilter is what a subscription wants; without one, a stream of the
// older versions gets all there is.
func (x *exchange) SubscriptionFilter() (mcpgo.SubscriptionFilter, bool) {
	x.wants.Lock()
	defer x.wants.Unlock()
	switch {
	case x.filter != nil:
		return *x.filter, true
	default:
		return mcpgo.SubscriptionFilter{}, x.tag != nil
	}
}

// tap is an exchange under a name of its own, as which mcp-go's broadcasts find it.
type tap struct {
	*exchange
	name string
}

// SessionID is the tap's name.
func (t tap) SessionID() string { return t.name }

// exchangeOf is the exchange that a request belongs to; nil for an in-process client.
func exchangeOf(ctx context.Context) *exchange {
	x, _ := server.ClientSessionFromContext(ctx).(*exchange)
	return x
}
