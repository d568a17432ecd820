package wire

import (
	"encoding/json"
	"time"
)

// DecodeEnvelope reads the JSON form strictly: a field that is not known, one that
// is there twice or of another type, and another version are KindInvalid.
func DecodeEnvelope(text []byte) (Envelope, error) {
	all, err := members(text, wireFields())
	if err != nil {
		return Envelope{}, invalidEnvelope("the envelope cannot be read: %s", err)
	}
	w := wireEnvelope{Timeout: DefaultTimeout.Seconds(), Version: EnvelopeVersion, Arguments: json.RawMessage("{}")}
	if err := fields(all, map[string]any{
		"envelope_version": &w.Version, "tool_import_path": &w.ToolPath, "method_name": &w.Method, "arguments": &w.Arguments,
		"timeout_seconds": &w.Timeout, "webhook_callback_url": &w.Webhook, "result_nonce": &w.Nonce,
	}); err != nil {
		return Envelope{}, invalidEnvelope("the envelope cannot be read: %s", err)
	}
	if w.Version != EnvelopeVersion {
		return Envelope{}, invalidEnvelope("the envelope has version %d, this worker speaks %d", w.Version, EnvelopeVersion)
	}
	if w.InitArgs, err = object(all["tool_init_kwargs"]); err != nil {
		return Envelope{}, invalidEnvelope("tool_init_kwargs are not an object: %s", err)
	}
	if w.Permission, err = permission(all["permission_context"]); err != nil {
		return Envelope{}, invalidEnvelope("permission_context cannot be read: %s", err)
	}
	if w.Trace, err = trace(all["trace_context"]); err != nil {
		return Envelope{}, invalidEnvelope("trace_context cannot be read: %s", err)
	}
	if _, ok := w.InitArgs["executor"]; ok {
		return Envelope{}, invalidEnvelope("an envelope names no executor")
	}
	if !(w.Timeout > 0 && w.Timeout <= mostSeconds) {
		return Envelope{}, invalidEnvelope("timeout_seconds is above 0 and at most %d", mostSeconds)
	}
	e := Envelope{
		ToolPath: w.ToolPath, InitArgs: w.InitArgs, Arguments: w.Arguments, Permission: w.Permission, Trace: w.Trace,
		Timeout: time.Duration(w.Timeout * float64(time.Second)), Nonce: w.Nonce,
	}
	if w.Method != nil {
		e.Method = *w.Method
	}
	if w.Webhook != nil {
		e.Webhook = *w.Webhook
	}
	if err := e.check(); err != nil {
		return Envelope{}, err
	}
	return e, nil
}

// permission reads who calls; null is nobody.
func permission(text json.RawMessage) (*Permission, error) {
	if isNull(text) {
		return nil, nil
	}
	all, err := members(text, []string{"session", "request_id", "channel", "extra"})
	if err != nil {
		return nil, err
	}
	var p Permission
	if err := fields(all, map[string]any{"request_id": &p.RequestID, "channel": &p.Channel, "extra": &p.Extra}); err != nil {
		return nil, err
	}
	if isNull(all["session"]) {
		return &p, nil
	}
	session, err := members(all["session"], []string{"user_id", "tenant_id", "roles"})
	if err != nil {
		return nil, err
	}
	return &p, fields(session, map[string]any{"user_id": &p.Session.UserID, "tenant_id": &p.Session.TenantID, "roles": &p.Session.Roles})
}

// trace reads the span of the call; null is none.
func trace(text json.RawMessage) (*Trace, error) {
	if isNull(text) {
		return nil, nil
	}
	all, err := members(text, []string{"trace_id", "span_id", "trace_flags", "trace_state", "parent_span_id"})
	if err != nil {
		return nil, err
	}
	var t Trace
	return &t, fields(all, map[string]any{
		"trace_id": &t.TraceID, "span_id": &t.SpanID, "trace_flags": &t.TraceFlags, "trace_state": &t.TraceState, "parent_span_id": &t.ParentSpanID,
	})
}
