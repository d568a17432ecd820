package mcp

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"strconv"

	"caisson/executor"
	"caisson/sandbox"
)

// declaredTool is a tool of the manifest, as a tool like any other. It waits to
// its own timeout, which the policy bounds.
func (s *Server) declaredTool(d executor.Definition) tool {
	return tool{
		about: about{
			name: d.Name, title: d.Title, description: d.Description,
			readOnly: d.ReadOnly, destructive: d.Destructive, idempotent: d.Idempotent, openWorld: d.OpenWorld,
		},
		input: withoutHeaders(d.InputSchema), output: declaredOutput(), patient: true, counts: d.Kind == executor.KindToolkit,
		run: func(ctx context.Context, c *call, raw json.RawMessage) (*reply, error) {
			return s.callDeclared(ctx, c, d.Name, raw)
		},
	}
}

func (s *Server) callDeclared(ctx context.Context, c *call, name string, raw json.RawMessage) (*reply, error) {
	if text := bytes.TrimSpace(raw); len(text) == 0 || string(text) == "null" {
		raw = json.RawMessage("{}") // absent, null and {} are the same
	}
	var watch func(executor.Progress)
	if c.progress != nil {
		watch = c.passOn
	}
	if s.halted.Load() { // also where it would need no container
		return nil, sandbox.Errorf("call tool", sandbox.KindUnavailable, "stopped by the operator: no tool runs until this server is started again").Because(sandbox.ErrHalted)
	}
	result, err := s.declared.box.Call(ctx, c.executorCaller(ctx), name, raw, watch)
	if err != nil {
		return nil, err
	}
	c.executor, c.rule = shorten(wordOf(result.Metadata["executor"])), shorten(wordOf(result.Metadata["rule"]))
	c.mode, c.status = shorten(wordOf(result.Metadata["mode"])), string(result.Status)
	if ctx.Err() != nil {
		return nil, cancelled(ctx)
	}
	return declaredReply(result), nil
}

// executorCaller is the caller as executors know one. The client's key is the
// secret that its connection hangs on, so that only a hash of it goes on.
func (c *call) executorCaller(ctx context.Context) executor.Caller {
	key := sha256.Sum256([]byte(c.key()))
	caller := executor.Caller{
		Owner: c.owner, Client: hex.EncodeToString(key[:16]), Ceilings: c.ceilings(),
		Permission: &executor.Permission{Session: executor.PermissionSession{UserID: c.owner.Name}, Channel: string(transportOf(ctx))},
	}
	if c.principal != nil {
		caller.Policy = c.principal.Policy
	}
	return caller
}

// passOn tells the client how far a tool says it has come.
func (c *call) passOn(p executor.Progress) {
	text := p.Text
	if text == "" {
		text = "working"
	}
	c.progress.counted(count{p.Done, p.Total}, func() string { return text })
}

// wordOf is a JSON value in a line: a string as it is, everything else as JSON.
func wordOf(value json.RawMessage) string {
	var text string
	if json.Unmarshal(value, &text) == nil {
		return text
	}
	return string(value)
}

// withoutHeaders drops x-mcp-header from a schema: with it, a third-party server
// would decide what clients put into the headers of their requests, and mcp-go
// panics over a wrong one.
func withoutHeaders(schema json.RawMessage) json.RawMessage {
	const name = "x-mcp-header"
	if !json.Valid(schema) {
		return json.RawMessage(`{"type":"object","properties":{}}`)
	}
	var whole any
	if !bytes.Contains(schema, []byte("mcp")) && !bytes.Contains(schema, []byte(`\u`)) || json.Unmarshal(schema, &whole) != nil {
		return schema
	}
	if !dropKey(whole, name) {
		return schema
	}
	text, err := json.Marshal(whole)
	if err != nil {
		return schema
	}
	return text
}

// dropKey deletes a key wherever it stands, and says whether it was there.
func dropKey(value any, key string) bool {
	dropped := false
	switch v := value.(type) {
	case map[string]any:
		if _, ok := v[key]; ok {
			delete(v, key)
			dropped = true
		}
		for _, inner := range v {
			dropped = dropKey(inner, key) || dropped
		}
	case []any:
		for _, inner := range v {
			dropped = dropKey(inner, key) || dropped
		}
	}
	return dropped
}

// declaredOutput is what every tool of a manifest gives. The result may be any
// JSON value, so that its schema names no type.
func declaredOutput() json.RawMessage {
	var statuses objectWriter
	statuses.put("type", "string")
	statuses.put("description", "How the call ended.")
	statuses.put("enum", executor.Statuses())
	status, _ := statuses.end() // strings alone
	return json.RawMessage(`{"type":"object","properties":{"status":` + string(status) +
		`,"result":{"description":"What the tool gave: any JSON value, null when there is none. One that is too long is cut to a string of ` + strconv.Itoa(maxDeclared) + ` characters."}` +
		`,"error":{"type":"string","description":"What went wrong."}` +
		`,"metadata":{"type":"object","description":"Which executor, mode and rule ran the call, how long it took, and what the tool says of it.","properties":{},"additionalProperties":true}}` +
		`,"required":["status","result","metadata"],"additionalProperties":false}`)
}
