package mcp

import (
	"crypto/sha256"
	"encoding/hex"
	"log/slog"
	"reflect"
	"strings"
	"time"

	"caisson/sandbox"
)

// The phases of a record. A call that can change something has one of each, the
// first before it has done anything; any other has its end alone. All have
// exactly one end.
const (
	phaseBegin = "begin"
	phaseEnd   = "end"
)

// The decisions. A call that failed in its work was allowed; a refused one has
// done nothing.
const (
	decisionAllowed = "allowed"
	decisionRefused = "refused"
)

// auditRecord is one line of the audit log (T59). It has no field for arguments,
// output or texts: what is not there cannot leak. What a client could choose
// freely is not in it either; only names of ours, of the operator's files and
// hashes are.
type auditRecord struct {
	Time       time.Time `json:"time" about:"When the record was written, UTC."`
	Phase      string    `json:"phase" about:"begin: a call that can change something is about to; end: it is over."`
	RequestID  string    `json:"request_id" about:"The same in both records of a call, in the log's lines, in the ref of a failed result, and over HTTP in the header X-Request-Id."`
	Principal  string    `json:"principal,omitempty" about:"Who called: the principal, or without principals the owner. Missing where nobody has been recognised."`
	Transport  string    `json:"transport,omitempty" about:"stdio, http or sse."`
	Tool       string    `json:"tool,omitempty" about:"The tool; resources/read for a file that was read as a resource; unknown for a tool that is not there for the caller."`
	Session    string    `json:"session,omitempty" about:"The first 16 hex digits of the SHA-256 of the session's handle."`
	Exec       string    `json:"exec,omitempty" about:"Likewise of the exec's handle, where the call names one."`
	Executor   string    `json:"executor,omitempty" about:"What ran a tool of the manifest."`
	Rule       string    `json:"rule,omitempty" about:"The rule of the execution policy that chose it."`
	Decision   string    `json:"decision,omitempty" about:"allowed or refused: only in an end."`
	Code       string    `json:"code,omitempty" about:"ok, or the error code: the one of the result, or of the HTTP refusal."`
	DurationMS *float64  `json:"duration_ms,omitempty" about:"From the call's arrival to its result."`
	BytesIn    *int64    `json:"bytes_in,omitempty" about:"Length of the arguments."`
	BytesOut   *int64    `json:"bytes_out,omitempty" about:"Length of the result's contents; what is in its structure once more is not counted twice."`
	Action     string    `json:"action,omitempty" about:"What an operator did: halt or reload. Such a record has no tool."`
	Count      *int      `json:"count,omitempty" about:"How many sessions a halt has ended."`
	Suppressed int       `json:"suppressed,omitempty" about:"How many refusals before this one have no record: they came too fast."`
}

// attrs is the record for the server's log, with the fields that it has.
func (r auditRecord) attrs() []slog.Attr {
	var attrs []slog.Attr
	v := reflect.ValueOf(r)
	for i := range v.NumField() {
		name, options, _ := strings.Cut(v.Type().Field(i).Tag.Get("json"), ",")
		field := v.Field(i)
		if name == "time" || options == "omitempty" && field.IsZero() {
			continue
		}
		if field.Kind() == reflect.Pointer {
			field = field.Elem()
		}
		attrs = append(attrs, slog.Any(name, field.Interface()))
	}
	return attrs
}

// AuditField is one field of a record as the documentation shows it.
type AuditField struct{ Name, Meaning string }

// AuditFields lists the fields of a record, in their order.
func AuditFields() []AuditField {
	t := reflect.TypeFor[auditRecord]()
	fields := make([]AuditField, t.NumField())
	for i := range fields {
		name, _, _ := strings.Cut(t.Field(i).Tag.Get("json"), ",")
		fields[i] = AuditField{name, t.Field(i).Tag.Get("about")}
	}
	return fields
}

// hashOf is a handle in a record: enough to bring records together, and to find
// those of a handle that is known; nothing that leads back to it.
func hashOf(handle string, valid bool) string {
	if !valid {
		return "" // a client's own words
	}
	sum := sha256.Sum256([]byte(handle))
	return hex.EncodeToString(sum[:8])
}

func sessionHash(id string) string { return hashOf(id, sandbox.ValidSessionID(id)) }

func execHash(id string) string {
	_, ok := sandbox.ExecBits(id)
	return hashOf(id, ok)
}

// refuses says whether a code stands for a call that was turned away before it
// did anything. One that can also be the failure of a call's work is not such a
// code.
func refuses(code string) bool {
	switch code {
	case codes[sandbox.KindInvalid].code, codes[sandbox.KindRejected].code, codes[sandbox.KindLimit].code, codes[sandbox.KindBusy].code,
		codes[sandbox.KindSessionNotFound].code, codes[sandbox.KindExecNotFound].code,
		codes[sandbox.KindWorkspaceNotFound].code, codes[sandbox.KindWorkspaceInUse].code,
		codes[sandbox.KindFirewall].code, codes[sandbox.KindNotSupported].code, codes[sandbox.KindPathEscapes].code,
		"tool_unavailable":
		return true
	}
	return false
}
