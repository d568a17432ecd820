package executor

import (
	"encoding/json"

	"caisson/executor/wire"
)

// What travels between the server and the worker is defined in package wire, which
// the worker imports alone: it starts in a few milliseconds, and what a manifest
// is read with would cost it several times that.
type (
	// Envelope is one call on its way to the worker.
	Envelope = wire.Envelope
	// Permission is who calls.
	Permission = wire.Permission
	// PermissionSession is the caller's part of it.
	PermissionSession = wire.PermissionSession
	// Trace is the span that the call belongs to.
	Trace = wire.Trace
	// Result is what a tool call gave.
	Result = wire.Result
	// File is a file or an image that a tool hands over.
	File = wire.File
	// Progress is how far a call has come.
	Progress = wire.Progress
	// Status is how a tool call ended.
	Status = wire.Status
)

// The bounds of the images and files of a result; see [wire.Bounded].
const (
	MostMedia      = wire.MostMedia
	MostMediaItems = wire.MostMediaItems
)

// EnvelopeVersion is the version of the wire form that this build speaks.
const EnvelopeVersion = wire.EnvelopeVersion

// DefaultTimeout is how long a call may run where nothing says otherwise.
const DefaultTimeout = wire.DefaultTimeout

// The paths under which the worker knows what it can run.
const (
	CommandPath     = wire.CommandPath
	REPLPath        = wire.REPLPath
	ToolkitPath     = wire.ToolkitPath
	ToolkitListPath = wire.ToolkitListPath
	AgentPath       = wire.AgentPath
)

// The states (ENV-9).
const (
	StatusSuccess        = wire.StatusSuccess
	StatusError          = wire.StatusError
	StatusDoneWithErrors = wire.StatusDoneWithErrors
	StatusForbidden      = wire.StatusForbidden
	StatusPending        = wire.StatusPending
	StatusUnauthorized   = wire.StatusUnauthorized
)

// Statuses lists every state once.
func Statuses() []Status { return wire.Statuses() }

// NewNonce makes the nonce of one call.
func NewNonce() string { return wire.NewNonce() }

// DecodeEnvelope reads the JSON form strictly; see [wire.DecodeEnvelope].
func DecodeEnvelope(text []byte) (Envelope, error) { return wire.DecodeEnvelope(text) }

// Failure is a result that says what went wrong.
func Failure(status Status, text string) Result { return wire.Failure(status, text) }

// EncodeBlock gives the block that the worker prints; see [wire.EncodeBlock].
func EncodeBlock(r Result, nonce string) ([]byte, error) { return wire.EncodeBlock(r, nonce) }

// ReadResult finds the result in what the worker has written; see [wire.ReadResult].
func ReadResult(stdout []byte, nonce string) Result { return wire.ReadResult(stdout, nonce) }

// ProgressLine reads a line of progress of the call; see [wire.ReadProgress].
func ProgressLine(line []byte, nonce string) (Progress, bool) { return wire.ReadProgress(line, nonce) }

// NewToolkitList makes the envelope that asks a toolkit's server which tools it
// has. Its result is the list of them, as the server gave them.
func (t Toolkit) NewToolkitList() (Envelope, error) {
	return newEnvelope(ToolkitListPath, "", json.RawMessage("{}"), map[string]any{"name": t.Name, "command": t.Command})
}
