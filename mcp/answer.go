package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime/debug"

	mcpgo "github.com/mark3labs/mcp-go/mcp"
)

// answer serves one request and returns its response; nil when there is none to
// send, since the client has withdrawn the request. code is the response's error
// code, 0 for a result. The exchange is over when it returns.
func (s *Server) answer(ctx context.Context, x *exchange, m message) (response []byte, code int) {
	ctx, x.token = s.mcp.WithContext(ctx, x), m.token
	if m.method == string(mcpgo.MethodSubscriptionsListen) && m.modern() {
		x.tag = m.id
		defer s.listen(ctx, x)()
	}
	got := s.handle(ctx, m)
	withdrawn := errors.Is(context.Cause(ctx), errWithdrawn)
	x.close(withdrawn)
	if withdrawn {
		return nil, 0
	}
	switch r := got.(type) {
	case mcpgo.JSONRPCResponse:
		r.ID = mcpgo.NewRequestId(m.id)
		if listened, ok := r.Result.(mcpgo.SubscriptionsListenResult); ok {
			listened.EnsureResultMeta().SetSubscriptionID(m.id)
			r.Result = listened
		}
		got = r
	case mcpgo.JSONRPCError:
		r.ID = mcpgo.NewRequestId(m.id)
		placeCode(&r.Error)
		placeForm(&r.Error, m.method)
		if m.method == string(mcpgo.MethodResourcesRead) && r.Error.Data == nil {
			r.Error.Data = missingResource(m.params) // no resource has that address, says mcp-go
		}
		code, got = r.Error.Code, r
	}
	response, err := json.Marshal(got)
	if err != nil {
		s.log.Error("a response is no JSON", "method", m.method, "error", err)
		return rpcError(m.id, mcpgo.INTERNAL_ERROR, "internal error"), mcpgo.INTERNAL_ERROR
	}
	return response, code
}

// missingResource repeats the address that was asked for, as the stateless protocol
// wants it.
func missingResource(params json.RawMessage) any {
	var p struct {
		URI string `json:"uri"`
	}
	if json.Unmarshal(params, &p) != nil || p.URI == "" {
		return nil
	}
	return map[string]any{"uri": p.URI}
}

// handle lets mcp-go work on a request. A panic in it ends the request alone, and
// its text stays here.
func (s *Server) handle(ctx context.Context, m message) (got mcpgo.JSONRPCMessage) {
	defer func() {
		if fault := recover(); fault != nil {
			ref := requestID(ctx)
			if ref == "" {
				ref = newRequestID()
			}
			s.log.Error("panic in a request", "request_id", ref, "panic", panicText(fault), "stack", string(debug.Stack()))
			got = mcpgo.JSONRPCError{
				JSONRPC: mcpgo.JSONRPC_VERSION,
				Error:   mcpgo.NewJSONRPCErrorDetails(mcpgo.INTERNAL_ERROR, "internal error, reference "+ref, nil),
			}
		}
	}()
	return s.mcp.HandleMessage(ctx, m.raw)
}

// notice serves a message that wants no answer. A response to a request of ours is
// one too.
func (s *Server) notice(p *peer, m message) {
	switch m.method {
	case "":
		p.answers.deliver(m)
	case string(mcpgo.MethodNotificationCancelled):
		p.requests.withdraw(m.params)
	}
}

// rpcError is a refusal in the protocol's form; a nil id answers no request in
// particular.
func rpcError(id json.RawMessage, code int, text string) []byte {
	if id == nil {
		id = json.RawMessage("null")
	}
	body, err := json.Marshal(map[string]any{
		"jsonrpc": "2.0", "id": id, "error": map[string]any{"code": code, "message": text},
	})
	if err != nil {
		return fmt.Appendf(nil, `{"jsonrpc":"2.0","id":null,"error":{"code":%d,"message":"internal error"}}`, mcpgo.INTERNAL_ERROR)
	}
	return body
}
