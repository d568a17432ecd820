package mcp

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	mcpgo "github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"

	"caisson/sandbox"
)

// Names in the place of a tool's, for what is no call of one.
const (
	toolUnknown      = "unknown"
	toolResourceRead = "resources/read"
)

// beginCall is the call that a context and its request stand for. bytesIn is how
// long its arguments are.
func (s *Server) beginCall(ctx context.Context, tool string, bytesIn int) *call {
	return &call{
		caller: s.callerOf(ctx), id: callID(ctx), tool: tool, transport: transportOf(ctx),
		started: time.Now(), bytesIn: int64(bytesIn),
	}
}

// auditRecord is what the records of a call have in common.
func (c *call) auditRecord(phase string) auditRecord {
	return auditRecord{
		Time: now(), Phase: phase, RequestID: c.id, Principal: c.owner.Name, Transport: string(c.transport), Tool: c.tool,
		Session: sessionHash(c.session), Exec: execHash(c.exec), Executor: c.executor, Rule: c.rule,
	}
}

// intend records that a call is about to change something. A call whose record
// cannot be written does not happen (R33).
func (s *Server) intend(c *call) error {
	err := s.audit.record(c.auditRecord(phaseBegin))
	if err == nil {
		return nil
	}
	s.auditFailed(c.id, err)
	return sandbox.Errorf("call tool", sandbox.KindUnavailable, "the server cannot write its audit log, so it does nothing that changes anything; its operator has to mend that").Because(err)
}

// conclude records how a call has ended, counts it and logs it. It is the only
// place that does: each call has exactly one end. The outcome of a call stands
// whether or not it could be recorded. Calls that were refused before a tool was
// asked are recorded at a pace of their principal's own: no rate bounds them, since
// one that is over its rate can go on asking.
func (s *Server) conclude(ctx context.Context, c *call, code string, bytesOut int64) {
	took := time.Since(c.started)
	r := c.auditRecord(phaseEnd)
	r.Decision, r.Code = decisionAllowed, code
	if c.refused || refuses(code) {
		r.Decision = decisionRefused
	}
	ms := float64(took.Microseconds()) / 1000
	r.DurationMS, r.BytesIn, r.BytesOut = &ms, &c.bytesIn, &bytesOut
	recorded := true
	if c.refused {
		r.Suppressed, recorded = s.principals.refusals(c.principal).take(time.Now())
	}
	if recorded {
		if err := s.audit.record(r); err != nil {
			s.auditFailed(c.id, err)
		}
	}
	s.metrics.called(s.principalLabel(c.caller), r, took)
	level := slog.LevelDebug // the record is in the log already, or there is to be none
	if recorded && (s.audit.toFile() || c.executor != "") {
		level = slog.LevelInfo // of a manifest's tool the line has more
	}
	s.log.LogAttrs(ctx, level, "tool call", append([]slog.Attr{
		slog.String("request_id", c.id), slog.String("tool", c.tool), slog.String("session", shownSession(c.session)),
		slog.Duration("took", took), slog.String("code", code),
	}, c.ranOn()...)...)
}

// ranOn is what the log says of a call that an executor ran (TX-2): which, how, by
// which rule, and how it ended.
func (c *call) ranOn() []slog.Attr {
	if c.executor == "" {
		return nil
	}
	return []slog.Attr{slog.String("executor", c.executor), slog.String("mode", c.mode), slog.String("rule", c.rule), slog.String("status", c.status)}
}

func (s *Server) auditFailed(id string, err error) {
	s.metrics.auditFailures.Inc()
	s.log.Error("the audit log cannot be written: nothing that changes anything is done", "request_id", id, "error", err)
}

// bytesOf is how long a result's contents are.
func bytesOf(result *mcpgo.CallToolResult) (n int64) {
	for _, content := range result.Content {
		switch content := content.(type) {
		case mcpgo.TextContent:
			n += int64(len(content.Text))
		case mcpgo.ImageContent:
			n += int64(len(content.Data))
		case mcpgo.AudioContent:
			n += int64(len(content.Data))
		case mcpgo.EmbeddedResource:
			n += resourceBytes(content.Resource)
		}
	}
	return n
}

func resourceBytes(resource mcpgo.ResourceContents) int64 {
	switch resource := resource.(type) {
	case mcpgo.TextResourceContents:
		return int64(len(resource.Text))
	case mcpgo.BlobResourceContents:
		return int64(len(resource.Blob))
	}
	return 0
}

// The codes of calls that were answered before any tool was asked.
const (
	codeUnknownTool    = "unknown_tool"
	codeInvalidRequest = "invalid_request"
)

// answeredByLibrary records a tools/call that mcp-go has answered itself: there
// is no such tool for the caller, or the message is none.
func (s *Server) answeredByLibrary(ctx context.Context, method mcpgo.MCPMethod, err error) {
	code := codeInvalidRequest
	if errors.Is(err, server.ErrToolNotFound) {
		code = codeUnknownTool
	}
	s.notCalled(ctx, string(method), code)
}

// notCalled records a message that was to be a tool's call and was refused as a
// message. What the client wrote in the tool's place is not repeated.
func (s *Server) notCalled(ctx context.Context, method, code string) {
	if method != string(mcpgo.MethodToolsCall) {
		return
	}
	c := s.beginCall(ctx, toolUnknown, 0)
	c.refused = true
	s.conclude(ctx, c, code, 0)
}

// The pace of records of refusals that cost nothing to cause: neither whoever has no
// token nor a principal over its rate must be able to fill the disk.
const (
	refusalsAtOnce = 60
	refusalsFill   = time.Second // time for one more
)

// refusalPace says which refusals are recorded.
type refusalPace struct {
	mu         sync.Mutex
	since      time.Time // when the bucket was empty, if it had never been full
	suppressed int
}

// take says whether a refusal at t is recorded, and how many before it were not.
func (p *refusalPace) take(t time.Time) (suppressed int, ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if full := t.Add(-refusalsAtOnce * refusalsFill); p.since.Before(full) {
		p.since = full
	}
	if t.Sub(p.since) < refusalsFill {
		p.suppressed++
		return 0, false
	}
	p.since = p.since.Add(refusalsFill)
	suppressed, p.suppressed = p.suppressed, 0
	return suppressed, true
}

// turnedAway records and counts an HTTP request that was refused before any call
// was read from it. principal is empty where nobody has been recognised.
func (s *Server) turnedAway(id, principal string, t transport, code string) {
	s.metrics.refusals.WithLabelValues(code).Inc()
	s.log.Debug("request refused", "request_id", id, "code", code)
	suppressed, ok := s.refusalPace.take(time.Now())
	if !ok {
		return
	}
	err := s.audit.record(auditRecord{
		Time: now(), Phase: phaseEnd, RequestID: id, Principal: principal, Transport: string(t),
		Decision: decisionRefused, Code: code, Suppressed: suppressed,
	})
	if err != nil {
		s.auditFailed(id, err)
	}
}

// OperatorDid records what an operator has done to the server: an action such as
// "reload", and whether it worked.
func (s *Server) OperatorDid(action string, failure error) {
	s.operatorDid(action, nil, failure)
}

func (s *Server) operatorDid(action string, count *int, failure error) {
	code := "ok"
	if failure != nil {
		code = codes[sandbox.KindOf(failure)].code
	}
	id := newRequestID()
	if err := s.audit.record(auditRecord{Time: now(), Phase: phaseEnd, RequestID: id, Action: action, Decision: decisionAllowed, Code: code, Count: count}); err != nil {
		s.auditFailed(id, err)
	}
}
