package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime/debug"
	"time"

	mcpgo "github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"

	"caisson/sandbox"
)

// callLimit is how long a call may take whose client did not ask for progress:
// many clients give up at 60 s and then know nothing of what was done.
const callLimit = 45 * time.Second

// errCallLimit is why a call's context ends at its deadline. It is told apart
// from a client that went away: only that stops what the call has started.
var errCallLimit = errors.New("the call has to answer now")

// about is what a client reads of a tool before it calls it.
type about struct {
	name        string
	title       string
	description string
	readOnly    bool // changes nothing
	destructive bool // takes something away that cannot be had back
	idempotent  bool // the same call again changes nothing further
	openWorld   bool // can reach beyond the sandbox
	urgent      bool // takes load off the server: never refused as busy
}

// tool is one tool: its description, what it takes and gives, and what it does.
type tool struct {
	about
	input   json.Marshaler // a JSON schema
	output  json.Marshaler
	patient bool // waits to its own timeout, whoever asked for progress or not
	counts  bool // tells how far it is in numbers of its own
	run     func(ctx context.Context, c *call, raw json.RawMessage) (*reply, error)
}

// call is one call under way.
type call struct {
	caller
	deadline time.Time // when it must have answered; zero for a client that asked for progress, and for a patient tool
	progress *progress

	// What its records say of it (audit_call.go). The tool fills in what it learns.
	id        string // of the call: in the log, the audit log and a failed result
	tool      string
	transport transport
	started   time.Time
	bytesIn   int64
	session   string // the handle that it is about, as sent
	exec      string // likewise
	executor  string // of a manifest's tool: what ran it
	rule      string // and the rule of the policy that chose it
	mode      string // warm or ephemeral, where it was a container
	status    string // of its result
	refused   bool   // turned away before the tool was asked
}

// stage passes on how far the making of a session has come.
func (c *call) stage(stage sandbox.Stage) {
	text := stage.Text
	if stage.Total > 0 {
		text = fmt.Sprintf("%s, %d of %d MB", text, stage.Done/1e6, stage.Total/1e6)
	}
	c.progress.say(func() string { return text })
}

// reply is what a tool gives back: the same in structure and in text.
type reply struct {
	structured any
	text       string
	extra      []mcpgo.Content
	failed     *failure // the tool did its work, and the outcome is a failure: what it found is kept
}

func (r *reply) result() *mcpgo.CallToolResult {
	text := r.text
	result := &mcpgo.CallToolResult{StructuredContent: r.structured}
	if r.failed != nil {
		text = r.failed.Error() + "\n" + text
		result.IsError, result.Meta = true, r.failed.meta()
	}
	result.Content = append([]mcpgo.Content{mcpgo.NewTextContent(escape(text))}, r.extra...)
	return result
}

// jsonReply shows a structure under a sentence.
func jsonReply(structured any, format string, args ...any) (*reply, error) {
	raw, err := json.MarshalIndent(structured, "", " ")
	if err != nil {
		return nil, err
	}
	return &reply{structured: structured, text: fmt.Sprintf(format, args...) + "\n" + string(raw)}, nil
}

// define makes a tool from its description, its arguments and its work. I holds
// the arguments, O is the structured result.
func define[I, O any](a about, fields func(*I) []field, run func(context.Context, *call, *I) (*reply, error)) tool {
	return tool{
		about: a, input: inputOf(fields(new(I))), output: outputOf[O](),
		run: func(ctx context.Context, c *call, raw json.RawMessage) (*reply, error) {
			in := new(I)
			if err := decodeArguments(raw, fields(in)); err != nil {
				return nil, err
			}
			return run(ctx, c, in)
		},
	}
}

// entry is a tool as mcp-go takes it.
func (s *Server) entry(t tool) (server.ServerTool, error) {
	input, err := json.Marshal(t.input)
	if err != nil {
		return server.ServerTool{}, fmt.Errorf("tool %s: %w", t.name, err)
	}
	output, err := json.Marshal(t.output)
	if err != nil {
		return server.ServerTool{}, fmt.Errorf("tool %s: %w", t.name, err)
	}
	return server.ServerTool{Tool: mcpgo.Tool{
		Name: t.name, Title: t.title, Description: t.description,
		RawInputSchema: input, RawOutputSchema: output,
		Annotations: mcpgo.ToolAnnotation{
			Title: t.title, ReadOnlyHint: &t.readOnly, DestructiveHint: &t.destructive,
			IdempotentHint: &t.idempotent, OpenWorldHint: &t.openWorld,
		},
	}, Handler: s.handler(t)}, nil
}

// handler serves a tool's calls. It never returns an error: mcp-go would send
// its text as a protocol error, which models do not see and which can carry
// internals.
func (s *Server) handler(t tool) server.ToolHandlerFunc {
	return func(ctx context.Context, request mcpgo.CallToolRequest) (*mcpgo.CallToolResult, error) {
		c := s.beginCall(ctx, t.name, len(request.Params.RawArguments))
		s.log.Debug("tool call begins", "request_id", c.id, "tool", t.name)
		result, err := s.serve(ctx, t, c, request)
		code := "ok"
		if err != nil {
			f := failureOf(s.whileEnding(ctx, err), c.id, s.log)
			code, result = f.code, f.result()
			s.log.Debug("tool call failed", "request_id", c.id, "tool", t.name, "error", loggable(err))
		} else if result.IsError {
			code, _ = result.Meta.AdditionalFields["code"].(string)
			result.Meta.AdditionalFields["ref"] = c.id
		}
		if !t.readOnly {
			s.changed(c.owner, c.session)
		}
		s.conclude(ctx, c, code, bytesOf(result))
		return result, nil
	}
}

// whileEnding tells a call that ends because the server does from one that its client has
// cancelled.
func (s *Server) whileEnding(ctx context.Context, err error) error {
	if sandbox.KindOf(err) != sandbox.KindCancelled {
		return err
	}
	if errors.Is(err, errHalted) { // the cause that a call cancelled by it gives
		return sandbox.Errorf("call tool", sandbox.KindUnavailable, "stopped by the operator, with every session of this server").Because(err)
	}
	if errors.Is(context.Cause(ctx), errShutdown) || errors.Is(err, errShutdown) {
		return sandbox.Errorf("call tool", sandbox.KindUnavailable, "the server is shutting down, and what this call had started was stopped").Because(err)
	}
	return err
}

// startWait is how long a call waits for the sessions of the server before: a client that
// starts its server and calls at once, and once, is not told to try again.
const startWait = 5 * time.Second

// settle waits a moment where the server has just been started.
func (s *Server) settle(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, startWait)
	defer cancel()
	s.manager.AwaitRecovery(ctx)
}

// serve runs one call: admitted, bounded, with progress, and with every panic
// caught, since mcp-go would send a panic's text to the client.
func (s *Server) serve(ctx context.Context, t tool, c *call, request mcpgo.CallToolRequest) (result *mcpgo.CallToolResult, err error) {
	defer func() {
		if fault := recover(); fault != nil {
			s.log.Error("panic in a tool", "request_id", c.id, "tool", t.name, "panic", panicText(fault), "stack", string(debug.Stack()))
			result, err = nil, sandbox.Errorf("call tool", sandbox.KindInternal, "panic").Because(errors.New("panic: "+panicText(fault)))
		}
	}()
	c.refused = true
	if s.setup != nil {
		return nil, setupFailure(s.setup)
	}
	if wait := overRate(ctx); wait > 0 {
		return nil, tooFast(wait)
	}
	ctx, leave, err := s.calls.enter(ctx, c.key(), c.principalName(), t.urgent)
	if err != nil {
		return nil, err
	}
	defer leave()
	if !t.readOnly {
		if err := s.intend(c); err != nil {
			return nil, err
		}
	}
	c.refused = false
	if c.progress = startProgress(ctx, s.mcp, request, s.pace); c.progress == nil && !t.patient {
		c.deadline = time.Now().Add(s.callLimit)
		var cancel context.CancelFunc
		ctx, cancel = context.WithDeadlineCause(ctx, c.deadline, errCallLimit)
		defer cancel()
	}
	if c.progress != nil && t.counts {
		c.progress.counted(count{}, func() string { return "working" })
	}
	defer c.progress.finish()
	s.settle(ctx)
	r, err := t.run(ctx, c, request.Params.RawArguments)
	if err != nil {
		return nil, err
	}
	return r.result(), nil
}
