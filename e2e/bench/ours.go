package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/mark3labs/mcp-go/client"
	"github.com/mark3labs/mcp-go/client/transport"
	"github.com/mark3labs/mcp-go/mcp"
)

// ours is Caisson over one transport.
type ours struct {
	*client.Client
	session string // that execs and files use
}

func dial(ctx context.Context, link transport.Interface) (*ours, error) {
	//lint:ignore SA1019 the handshake that most clients still make is what is measured
	c := client.NewClient(link, client.WithLegacyProtocolOnly())
	if err := c.Start(context.WithoutCancel(ctx)); err != nil {
		return nil, err
	}
	request := mcp.InitializeRequest{}
	request.Params.ClientInfo = mcp.Implementation{Name: "caisson-bench", Version: "1"}
	if _, err := c.Initialize(ctx, request); err != nil {
		return nil, errors.Join(err, c.Close())
	}
	o := &ours{Client: c}
	var err error
	if o.session, err = o.create(ctx); err != nil {
		return nil, errors.Join(err, c.Close())
	}
	return o, nil
}

// tool makes a call that must succeed and returns its structured result.
func (o *ours) tool(ctx context.Context, name string, arguments map[string]any) (map[string]any, error) {
	request := mcp.CallToolRequest{}
	request.Params.Name, request.Params.Arguments = name, arguments
	result, err := o.CallTool(ctx, request)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	raw, err := json.Marshal(result.StructuredContent)
	if err != nil {
		return nil, err
	}
	if result.IsError {
		return nil, fmt.Errorf("%s failed: %v", name, result.Content)
	}
	var structured map[string]any
	return structured, json.Unmarshal(raw, &structured)
}

func (o *ours) create(ctx context.Context) (string, error) {
	made, err := o.tool(ctx, "session_create", map[string]any{})
	if err != nil {
		return "", err
	}
	id, _ := made["session_id"].(string)
	return id, nil
}

func (o *ours) remove(ctx context.Context, session string) error {
	_, err := o.tool(ctx, "session_destroy", map[string]any{"session_id": session})
	return err
}

func (o *ours) exec(ctx context.Context) error {
	x, err := o.tool(ctx, "exec", map[string]any{"session_id": o.session, "argv": []string{"true"}})
	if err == nil && x["exit_code"] != 0.0 {
		err = fmt.Errorf("exit code %v", x["exit_code"])
	}
	return err
}

func (o *ours) put(ctx context.Context, name string, base64 string) error {
	_, err := o.tool(ctx, "upload", map[string]any{"session_id": o.session, "path": name, "content": base64, "encoding": "base64"})
	return err
}

func (o *ours) get(ctx context.Context, name string, size int) error {
	p, err := o.tool(ctx, "download", map[string]any{"session_id": o.session, "path": name, "limit": size})
	if err == nil && p["bytes"] != float64(size) {
		err = fmt.Errorf("%v bytes", p["bytes"])
	}
	return err
}
