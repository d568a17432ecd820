package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	engine "github.com/docker/docker/client"
	"github.com/mark3labs/mcp-go/client"
	"github.com/mark3labs/mcp-go/client/transport"
	"github.com/mark3labs/mcp-go/mcp"

	"caisson/e2e/internal/rawengine"
)

// demo is the client, with what the steps hand on to each other.
type demo struct {
	show
	project, pictures string
	client            *client.Client
	engine            *engine.Client
	session           string
}

// execution is what the demo reads of the tools that run commands.
type execution struct {
	ExecID   string `json:"exec_id"`
	Status   string `json:"status"`
	ExitCode *int   `json:"exit_code"`
	Stdout   string `json:"stdout"`
	Stderr   string `json:"stderr"`
	Duration int    `json:"duration_ms"`
}

func (x execution) exited(code int) bool {
	return x.Status == "exited" && x.ExitCode != nil && *x.ExitCode == code
}

// code is the exit code in words: it is there only when it is known.
func (x execution) code() string {
	if x.ExitCode == nil {
		return "no exit code"
	}
	return fmt.Sprintf("exit code %d", *x.ExitCode)
}

// connect starts the program and greets it.
func (d *demo) connect(ctx context.Context, environ []string, program string) error {
	var err error
	if d.engine, err = rawengine.Connect(environ); err != nil {
		return err
	}
	version, err := d.engine.ServerVersion(ctx)
	if err != nil {
		return fmt.Errorf("the engine does not answer: %w", err)
	}
	// An instance of its own, so that the demo can tell at its end what is its own.
	environ = append(environ[:len(environ):len(environ)], "SANDBOX_DOCKER_INSTANCE=")
	d.client = client.NewClient(transport.NewStdioWithOptions(program, environ, []string{"serve"}))
	if err := d.client.Start(context.WithoutCancel(ctx)); err != nil {
		return fmt.Errorf("start %s: %w", program, err)
	}
	request := mcp.InitializeRequest{}
	request.Params.ClientInfo = mcp.Implementation{Name: "caisson-demo", Version: "1"}
	greeting, err := d.client.Initialize(ctx, request)
	if err != nil {
		return errors.Join(fmt.Errorf("greet the server: %w", err), d.client.Close())
	}
	d.got("server: %s serve, over stdio (%s %s, MCP %s)", program, greeting.ServerInfo.Name, greeting.ServerInfo.Version, d.client.ProtocolVersion())
	d.got("engine: %s, Docker %s, kernel %s", d.engine.DaemonHost(), version.Version, version.KernelVersion)
	return nil
}

// disconnect closes the server's standard input, as a client that quits does.
func (d *demo) disconnect() error {
	return errors.Join(d.client.Close(), d.engine.Close())
}

// answer is a tool's result.
type answer struct {
	*mcp.CallToolResult
	text string
}

// code is the error code that a failed result begins with.
func (a answer) code() string {
	code, _, _ := strings.Cut(a.text, ":")
	return code
}

// call makes a call and reads the structured result into into, where that is
// wanted. A failed tool is an answer, not an error.
func (d *demo) call(ctx context.Context, tool string, arguments map[string]any, into any) (answer, error) {
	request := mcp.CallToolRequest{}
	request.Params.Name, request.Params.Arguments = tool, arguments
	result, err := d.client.CallTool(ctx, request)
	if err != nil {
		return answer{}, fmt.Errorf("%s: %w", tool, err)
	}
	a := answer{CallToolResult: result}
	for _, c := range result.Content {
		if text, ok := c.(mcp.TextContent); ok {
			a.text += text.Text
		}
	}
	if into != nil && result.StructuredContent != nil {
		raw, err := json.Marshal(result.StructuredContent)
		if err == nil {
			err = json.Unmarshal(raw, into)
		}
		if err != nil {
			return a, fmt.Errorf("%s: %w", tool, err)
		}
	}
	return a, nil
}

// ok makes a call that must succeed.
func (d *demo) ok(ctx context.Context, tool string, arguments map[string]any, into any) (answer, error) {
	a, err := d.call(ctx, tool, arguments, into)
	if err == nil && a.IsError {
		err = fmt.Errorf("%s: %s", tool, a.text)
	}
	return a, err
}

// exec runs a shell command to its end.
func (d *demo) exec(ctx context.Context, command string) (execution, error) {
	var x execution
	_, err := d.ok(ctx, "exec", map[string]any{"session_id": d.session, "command": command, "wait_seconds": 40}, &x)
	return x, err
}

// sh runs a shell command that must exit with 0 and returns what it printed.
func (d *demo) sh(ctx context.Context, command string) (string, error) {
	x, err := d.exec(ctx, command)
	if err == nil && !x.exited(0) {
		err = fmt.Errorf("%s: %s, %s\n%s", command, x.Status, x.code(), x.Stderr)
	}
	return x.Stdout, err
}

// poll asks until the condition holds, for ten seconds at most.
func poll(ctx context.Context, what string, holds func() (bool, error)) error {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	for {
		good, err := holds()
		if err != nil || good {
			return err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("still not so: %s", what)
		case <-time.After(100 * time.Millisecond):
		}
	}
}
