package mcp

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"time"

	mcpgo "github.com/mark3labs/mcp-go/mcp"

	"caisson/sandbox"
)

// failure is a tool call that failed, as a client sees it: an error result
// whose text begins with the code, and the same code in _meta for programs.
type failure struct {
	code       string
	text       string
	field      string
	retriable  bool
	retryAfter time.Duration
	ref        string
}

// codes is the one place where a Kind becomes an error code. retriable says
// whether the same call may succeed later without anything else being done.
var codes = [...]struct {
	code      string
	retriable bool
	text      string // when the error brings no sentence of its own
}{
	sandbox.KindInternal:          {"internal", false, "something went wrong in the server"},
	sandbox.KindInvalid:           {"invalid_argument", false, "an argument is wrong"},
	sandbox.KindRejected:          {"spec_rejected", false, "a ceiling or a policy of this server forbids it"},
	sandbox.KindLimit:             {"limit_exceeded", true, "a quota is used up"},
	sandbox.KindBusy:              {"busy", true, "it is being worked on; try again in a moment"},
	sandbox.KindCapacity:          {"capacity", true, "the engine has run out of something"},
	sandbox.KindSessionNotFound:   {"session_not_found", false, "no such session"},
	sandbox.KindSessionLost:       {"session_lost", false, "the session is gone; make a new one with session_create"},
	sandbox.KindExecNotFound:      {"exec_not_found", false, "no such exec"},
	sandbox.KindStdinClosed:       {"stdin_closed", false, "the command takes no more input"},
	sandbox.KindKillFailed:        {"kill_failed", true, "the command could not be stopped"},
	sandbox.KindFileNotFound:      {"file_not_found", false, "no such file"},
	sandbox.KindIsDirectory:       {"is_a_directory", false, "it is a directory"},
	sandbox.KindNotDirectory:      {"not_a_directory", false, "it is not a directory"},
	sandbox.KindPermission:        {"permission_denied", false, "the session's user may not"},
	sandbox.KindPathEscapes:       {"path_escapes_workspace", false, "a relative path may not leave the workspace"},
	sandbox.KindTooLarge:          {"too_large", false, "it is larger than one call may carry"},
	sandbox.KindNoSpace:           {"no_space", false, "the session's disk is full"},
	sandbox.KindImageNotFound:     {"image_not_found", false, "the engine has no such image"},
	sandbox.KindImagePulling:      {"image_pulling", true, "the image is still being pulled; call again"},
	sandbox.KindImagePullFailed:   {"image_pull_failed", false, "the image could not be pulled"},
	sandbox.KindImageUnusable:     {"image_unusable", false, "the image lacks what a session needs"},
	sandbox.KindWorkspaceInUse:    {"workspace_in_use", false, "the workspace is held by a session"},
	sandbox.KindWorkspaceNotFound: {"workspace_not_found", false, "no such workspace"},
	sandbox.KindFirewall:          {"egress_firewall_not_in_force", false, "the egress firewall is not in force"},
	sandbox.KindUnavailable:       {"engine_unavailable", true, "the engine cannot be reached"},
	sandbox.KindFenced:            {"engine_unavailable", false, "another server has taken this one's place"},
	sandbox.KindUnknownOutcome:    {"unknown_outcome", false, "the engine did not answer in time: whether it was done is not known"},
	sandbox.KindNotSupported:      {"not_supported", false, "this server cannot do that"},
	sandbox.KindCancelled:         {"cancelled", false, "the call was cancelled"},
	sandbox.KindToolUnavailable:   {"tool_unavailable", false, "the execution policy does not let this tool run"},
	sandbox.KindToolFailed:        {"tool_failed", false, "the tool failed"},
}

// The codes that no Kind stands for.
const (
	codeStringNotFound  = "string_not_found"
	codeStringNotUnique = "string_not_unique"
)

// Error makes a failure usable as the error that a tool returns.
func (f *failure) Error() string { return f.code + ": " + f.text }

// failureOf turns whatever a tool returned into what its client sees. Only the
// sentence of our own error type goes out; causes stay here. What nobody
// foresaw is internal. ref is the id of the call, which leads from the client to
// the log.
func failureOf(err error, ref string, log *slog.Logger) *failure {
	var f *failure
	if errors.As(err, &f) {
		f.ref = ref
		return f
	}
	row := codes[sandbox.KindOf(err)]
	f = &failure{code: row.code, text: row.text, retriable: row.retriable && !errors.Is(err, sandbox.ErrHalted), ref: ref}
	var e *sandbox.Error
	if errors.As(err, &e) {
		f.field, f.retryAfter = e.Field, e.RetryAfter
		if e.Text != "" && e.Kind != sandbox.KindInternal {
			f.text = e.Text
		}
	}
	if sandbox.KindOf(err) == sandbox.KindInternal {
		f.text += "; its log tells more under the reference " + ref
		log.Error("internal error", "request_id", ref, "error", loggable(err))
	}
	return f
}

// panicText is what the log has of a panic: Go's own errors as they are, of
// anything else the type alone, since it may hold what a call was about.
func panicText(fault any) string {
	if err, ok := fault.(runtime.Error); ok {
		return err.Error()
	}
	return fmt.Sprintf("a %T", fault)
}

// meta is the failure for programs.
func (f *failure) meta() *mcpgo.Meta {
	fields := map[string]any{"code": f.code, "retriable": f.retriable}
	if f.field != "" {
		fields["field"] = escape(shorten(f.field)) // an unknown argument's name is its sender's, of any length
	}
	if f.retryAfter > 0 {
		fields["retry_after_ms"] = f.retryAfter.Milliseconds()
	}
	if f.ref != "" {
		fields["ref"] = f.ref
	}
	return &mcpgo.Meta{AdditionalFields: fields}
}

// result is the failure as a tool result of its own. It has no structured part:
// one that did not fit the tool's output schema would hide the reason from
// clients that check (MS-05).
func (f *failure) result() *mcpgo.CallToolResult {
	return &mcpgo.CallToolResult{
		Result:  mcpgo.Result{Meta: f.meta()},
		Content: []mcpgo.Content{mcpgo.NewTextContent(escape(f.Error()))},
		IsError: true,
	}
}

// setupFailure is what every tool answers when the server has started with
// wrong settings: the text names them and the mend, for whoever can.
func setupFailure(err error) *failure {
	row := codes[sandbox.KindUnavailable]
	return &failure{code: row.code, text: "the server is not set up: " + err.Error()}
}

// cancelledFailure is for calls whose client has gone; mostly nobody reads it.
func cancelled(ctx context.Context) error {
	return sandbox.Errorf("call tool", sandbox.KindCancelled, "the call was cancelled, and what it had started was stopped").Because(context.Cause(ctx))
}

// says gives a failure its sentence.
func (f *failure) says(format string, args ...any) *failure {
	f.text = fmt.Sprintf(format, args...)
	return f
}
