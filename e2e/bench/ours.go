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
	small   string // one with the limits of a tool's container
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
	made, err := o.tool(ctx, "session_create", map[string]any{"cpu": 0.5, "memory_mb": 512, "pids": 256})
	if err != nil {
		return nil, errors.Join(err, c.Close())
	}
	o.small, _ = made["session_id"].(string)
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

// call calls the tool of the manifest that scripts/bench serves.
func (o *ours) call(ctx context.Context) error {
	d, err := o.tool(ctx, "bench_true", map[string]any{})
	if err == nil && d["status"] != "success" {
		err = fmt.Errorf("status %v", d["status"])
	}
	return err
}

func (o *ours) exec(ctx context.Context, session string) error {
	x, err := o.tool(ctx, "exec", map[string]any{"session_id": session, "argv": []string{"true"}})
	if err == nil && x["exit_code"] != 0.0 {
		err = fmt.Errorf("exit code %v", x["exit_code"])
	}
	return err
}

// begin starts a command that runs until it is stopped.
func (o *ours) begin(ctx context.Context, session string) (string, error) {
	x, err := o.tool(ctx, "exec", map[string]any{
		"session_id": session, "argv": []string{"sh", "-c", "echo on; exec sleep 600"}, "wait_for": "on", "wait_seconds": 50,
	})
	if err == nil && x["status"] != "running" {
		err = fmt.Errorf("the command that is to be stopped is %v", x["status"])
	}
	id, _ := x["exec_id"].(string)
	return id, err
}

func (o *ours) kill(ctx context.Context, exec string) error {
	x, err := o.tool(ctx, "kill", map[string]any{"exec_id": exec})
	for err == nil && x["status"] == "running" { // its stop has reported, its output is still on its way
		x, err = o.tool(ctx, "exec_output", map[string]any{"exec_id": exec, "wait_seconds": 5})
	}
	if err == nil && (x["status"] != "killed" || x["output_complete"] != true) {
		err = fmt.Errorf("a stopped command is %v, its output complete %v", x["status"], x["output_complete"])
	}
	return err
}

// crowd puts a session with 2,000 processes in the place of the one in use.
func (o *ours) crowd(ctx context.Context) error {
	made, err := o.tool(ctx, "session_create", map[string]any{"pids": 2200, "memory_mb": 2048})
	if err != nil {
		return err
	}
	session, _ := made["session_id"].(string)
	_, err = o.tool(ctx, "exec", map[string]any{
		"session_id": session, "wait_for": "on", "wait_seconds": 50,
		"argv": []string{"sh", "-c", "mkfifo /tmp/never; i=0; while [ $i -lt 2000 ]; do (read l </tmp/never) & i=$((i+1)); done; echo on; wait"},
	})
	if err != nil {
		return errors.Join(err, o.remove(ctx, session))
	}
	x, err := o.tool(ctx, "exec", map[string]any{"session_id": session, "argv": []string{"sh", "-c", "set -- /proc/[0-9]*; [ $# -gt 2000 ]"}})
	if err == nil && x["exit_code"] != 0.0 {
		err = errors.New("the session has no 2,000 processes")
	}
	if err != nil {
		return errors.Join(err, o.remove(ctx, session))
	}
	before := o.session
	o.session = session
	return o.remove(ctx, before)
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
