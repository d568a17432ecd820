//go:build conformance

package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"strconv"
	"sync"

	mcpgo "github.com/mark3labs/mcp-go/mcp"
)

// answers are a client's responses to requests of the server, which only the
// conformance suite's tools make.
type answers struct {
	mu      sync.Mutex
	last    int64
	waiting map[string]chan message
}

func (a *answers) deliver(m message) {
	key, _ := idKey(m.id)
	a.mu.Lock()
	defer a.mu.Unlock()
	if to := a.waiting[key]; to != nil {
		to <- m // has room for one
		delete(a.waiting, key)
	}
}

// ask sends a request on the exchange and waits for the client's response, or for ctx.
func (x *exchange) ask(ctx context.Context, method string, params, result any) error {
	a := &x.answers
	to := make(chan message, 1)
	a.mu.Lock()
	a.last++
	id := json.RawMessage(strconv.FormatInt(a.last, 10))
	key, _ := idKey(id)
	if a.waiting == nil {
		a.waiting = map[string]chan message{}
	}
	a.waiting[key] = to
	a.mu.Unlock()
	raw, err := json.Marshal(map[string]any{"jsonrpc": mcpgo.JSONRPC_VERSION, "id": id, "method": method, "params": params})
	if err == nil {
		err = x.out.send(raw)
	}
	if err != nil {
		return err
	}
	select {
	case m := <-to:
		if m.result == nil {
			return errors.New(string(m.failed))
		}
		return json.Unmarshal(m.result, result)
	case <-ctx.Done():
		return ctx.Err()
	}
}

// RequestElicitation asks the client's user.
func (x *exchange) RequestElicitation(ctx context.Context, request mcpgo.ElicitationRequest) (*mcpgo.ElicitationResult, error) {
	result := &mcpgo.ElicitationResult{}
	return result, x.ask(ctx, string(mcpgo.MethodElicitationCreate), request.Params, result)
}

// RequestSampling asks the client's model.
func (x *exchange) RequestSampling(ctx context.Context, request mcpgo.CreateMessageRequest) (*mcpgo.CreateMessageResult, error) {
	result := &mcpgo.CreateMessageResult{}
	if err := x.ask(ctx, string(mcpgo.MethodSamplingCreateMessage), request.CreateMessageParams, result); err != nil {
		return nil, err
	}
	content, err := mcpgo.ParseSamplingContent(result.Content)
	result.Content = content
	return result, err
}
