package wire

import (
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"log/slog"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"

	"caisson/sandbox"
)

// EnvelopeVersion is the version of the wire form that this build speaks.
const EnvelopeVersion = 1

// The paths under which the worker knows what it can run, <module>:<name>.
const (
	CommandPath = "caisson.worker:Command"
	REPLPath    = "caisson.worker:PythonREPL"
	ToolkitPath = "caisson.worker:Toolkit"
	AgentPath   = "caisson.worker:Agent"
	// ToolkitListPath asks which tools a toolkit's server has.
	ToolkitListPath = "caisson.worker:ToolkitList"
)

// DefaultTimeout is how long a call may run where nothing says otherwise.
const DefaultTimeout = 300 * time.Second

// mostSeconds bounds the timeout of a call.
const mostSeconds = 31536000

// toolPaths are all of them.
func toolPaths() []string {
	return []string{CommandPath, REPLPath, ToolkitPath, ToolkitListPath, AgentPath}
}

// MostEnvelope bounds an envelope in bytes, the arguments of the call included.
const MostEnvelope = 64 << 20

var nonceForm = regexp.MustCompile(`^[0-9a-f]{32}$`)

// Envelope is one call on its way to the worker. It may carry secrets in its
// arguments: it prints as its path alone, and travels where neither inspect nor
// ps shows it (D19).
//
// Executors are no part of it: what runs inside a container is never sent on to
// another one.
type Envelope struct {
	ToolPath   string                     // one of the paths above
	InitArgs   map[string]json.RawMessage // what the tool is made from
	Method     string                     // of a toolkit: its tool's own name; else empty
	Arguments  json.RawMessage            // a JSON object, passed on byte for byte
	Permission *Permission
	Trace      *Trace
	Timeout    time.Duration
	Webhook    string // carried, not called (TX-24)
	Nonce      string // of the result block: 128 bits in hex
}

// Permission is who calls. It is there for the tool to know; the worker checks
// nothing by it, the server has.
type Permission struct {
	Session   PermissionSession          `json:"session"`
	RequestID string                     `json:"request_id"`
	Channel   string                     `json:"channel"`
	Extra     map[string]json.RawMessage `json:"extra"`
}

// PermissionSession is the caller's part of it. Roles are sorted.
type PermissionSession struct {
	UserID   string   `json:"user_id"`
	TenantID string   `json:"tenant_id"`
	Roles    []string `json:"roles"`
}

// Trace is the span that the call belongs to.
type Trace struct {
	TraceID      string `json:"trace_id"`
	SpanID       string `json:"span_id"`
	TraceFlags   int    `json:"trace_flags"`
	TraceState   string `json:"trace_state"`
	ParentSpanID string `json:"parent_span_id"`
}

// String names what is called and nothing of how.
func (e Envelope) String() string {
	return "envelope for " + strings.TrimSpace(e.ToolPath+" "+e.Method)
}

// GoString does so for %#v.
func (e Envelope) GoString() string { return e.String() }

// LogValue does so for slog.
func (e Envelope) LogValue() slog.Value { return slog.StringValue(e.String()) }

// NewNonce makes the nonce of one call.
func NewNonce() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails: the program ends where there is no randomness
	return hex.EncodeToString(b[:])
}

// wireEnvelope is the JSON form.
type wireEnvelope struct {
	Version    int                        `json:"envelope_version"`
	ToolPath   string                     `json:"tool_import_path"`
	InitArgs   map[string]json.RawMessage `json:"tool_init_kwargs"`
	Method     *string                    `json:"method_name"`
	Arguments  json.RawMessage            `json:"arguments"`
	Permission *Permission                `json:"permission_context"`
	Trace      *Trace                     `json:"trace_context"`
	Timeout    float64                    `json:"timeout_seconds"`
	Webhook    *string                    `json:"webhook_callback_url"`
	Nonce      string                     `json:"result_nonce"`
}

func wireFields() []string {
	return []string{
		"envelope_version", "tool_import_path", "tool_init_kwargs", "method_name", "arguments",
		"permission_context", "trace_context", "timeout_seconds", "webhook_callback_url", "result_nonce",
	}
}

// invalidEnvelope never repeats what the envelope holds.
func invalidEnvelope(format string, args ...any) error {
	return sandbox.Errorf("read envelope", sandbox.KindInvalid, format, args...)
}

// Encode gives the JSON form. An executor among what the tool is made from is
// left out (ENV-2). The error is KindInvalid where a part is not what it has to be.
func (e Envelope) Encode() ([]byte, error) {
	init := maps.Clone(e.InitArgs)
	delete(init, "executor")
	if init == nil {
		init = map[string]json.RawMessage{}
	}
	if len(e.Arguments) == 0 {
		e.Arguments = json.RawMessage("{}")
	}
	if e.Timeout == 0 {
		e.Timeout = DefaultTimeout
	}
	if e.Permission != nil {
		p := *e.Permission
		p.Session.Roles = slices.Sorted(slices.Values(p.Session.Roles))
		e.Permission = &p
	}
	if err := e.check(); err != nil {
		return nil, err
	}
	text, err := json.Marshal(wireEnvelope{
		Version: EnvelopeVersion, ToolPath: e.ToolPath, InitArgs: init, Method: orNull(e.Method), Arguments: e.Arguments,
		Permission: e.Permission, Trace: e.Trace, Timeout: e.Timeout.Seconds(), Webhook: orNull(e.Webhook), Nonce: e.Nonce,
	})
	if err != nil {
		return nil, invalidEnvelope("a part of it is no JSON value")
	}
	if len(text) > MostEnvelope {
		return nil, sandbox.Errorf("write envelope", sandbox.KindTooLarge, "the call has %d bytes, at most %d can be sent", len(text), MostEnvelope)
	}
	return text, nil
}

func orNull(text string) *string {
	if text == "" {
		return nil
	}
	return &text
}

// check looks at what both ends rely on.
func (e Envelope) check() error {
	switch {
	case !slices.Contains(toolPaths(), e.ToolPath):
		return invalidEnvelope("the worker knows no tool %s; known are %s", shown(e.ToolPath), strings.Join(toolPaths(), ", "))
	case (e.ToolPath == ToolkitPath) != (e.Method != ""):
		return invalidEnvelope("a toolkit's call has a method, and no other has one")
	case e.Timeout <= 0:
		return invalidEnvelope("timeout_seconds is above 0")
	case !nonceForm.MatchString(e.Nonce):
		return invalidEnvelope("result_nonce is 32 hex digits in lower case")
	}
	if _, err := members(e.Arguments, nil); err != nil {
		return invalidEnvelope("arguments are not an object: %s", err)
	}
	return nil
}
