package sandbox

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Kind says what went wrong, in a closed set. Every edge maps it once: the
// engine's answers to a Kind in the provider, a Kind to a tool error code in
// the MCP face.
type Kind uint8

// The kinds. Kinds returns all of them, so that mapping tables can be tested
// for completeness.
const (
	KindInternal          Kind = iota // a bug, or an answer that nobody foresaw
	KindInvalid                       // an argument is wrong; Error.Field names it
	KindRejected                      // a ceiling, a policy or the engine forbids the spec
	KindLimit                         // a quota of ours is used up
	KindBusy                          // the same thing is being worked on; try again
	KindCapacity                      // the engine has run out of something
	KindSessionNotFound               // no such session for this owner
	KindSessionLost                   // the session was there and is gone
	KindExecNotFound                  // no such exec for this owner
	KindStdinClosed                   // the command takes no more input
	KindKillFailed                    // a stop failed or did not finish in time
	KindFileNotFound                  // no such file
	KindIsDirectory                   // a file was asked for, a directory is there
	KindNotDirectory                  // a directory was asked for, something else is there
	KindPermission                    // the session's user may not
	KindPathEscapes                   // a relative path leaves the workspace
	KindTooLarge                      // larger than one call may carry
	KindNoSpace                       // the disk behind the session is full
	KindImageNotFound                 // no such image, and none may be pulled
	KindImagePulling                  // the image is still on its way
	KindImagePullFailed               // the registry refused or the pull broke
	KindImageUnusable                 // the image lacks what a session needs
	KindWorkspaceInUse                // the workspace is held by a session
	KindWorkspaceNotFound             // no such workspace for this owner
	KindFirewall                      // the egress firewall is not in force
	KindUnavailable                   // the engine cannot be reached or fails
	KindFenced                        // another server has taken this instance's lease
	KindUnknownOutcome                // the engine was asked and the answer never came
	KindNotSupported                  // this provider cannot do that at all
	KindCancelled                     // the caller went away
	KindToolUnavailable               // the execution policy refuses a tool, or cannot run it
	KindToolFailed                    // a tool ran and failed
	kindEnd
)

var kindNames = [kindEnd]string{
	"internal", "invalid", "rejected", "limit", "busy", "capacity", "session not found", "session lost",
	"exec not found", "stdin closed", "kill failed", "file not found", "is a directory", "not a directory",
	"permission denied", "path escapes workspace", "too large", "no space", "image not found", "image pulling",
	"image pull failed", "image unusable", "workspace in use", "workspace not found", "egress firewall not in force",
	"engine unavailable", "fenced", "unknown outcome", "not supported", "cancelled",
	"tool unavailable", "tool failed",
}

func (k Kind) String() string {
	if k >= kindEnd {
		return fmt.Sprintf("kind %d", uint8(k))
	}
	return kindNames[k]
}

// Kinds lists every kind once, in the order of their declaration.
func Kinds() []Kind {
	all := make([]Kind, kindEnd)
	for i := range all {
		all[i] = Kind(i)
	}
	return all
}

// Error is the one error type of the contract.
//
// Text is a sentence for whoever called: it names what is wrong and, where
// there is one, the mend, and never carries secrets, output or the engine's
// internals. Err is the cause for the log; it does not reach a client.
type Error struct {
	Op         string        // what was being done: "create session"
	Kind       Kind          // what went wrong
	Field      string        // the argument at fault, for KindInvalid, KindRejected and a quota of one argument
	Text       string        // for the caller
	RetryAfter time.Duration // zero: unknown
	Err        error         // the cause, for the log
}

// Errorf makes an Error whose Text is formatted from format and args. The text
// reaches clients: pass it nothing that they may not see.
func Errorf(op string, kind Kind, format string, args ...any) *Error {
	return &Error{Op: op, Kind: kind, Text: fmt.Sprintf(format, args...)}
}

// Invalid makes a KindInvalid error about one argument.
func Invalid(field, format string, args ...any) *Error {
	return &Error{Op: "check arguments", Kind: KindInvalid, Field: field, Text: fmt.Sprintf(format, args...)}
}

// Rejected makes a KindRejected error about one field of a spec.
func Rejected(field, format string, args ...any) *Error {
	return &Error{Op: "check spec", Kind: KindRejected, Field: field, Text: fmt.Sprintf(format, args...)}
}

// Because returns e with err as its cause.
func (e *Error) Because(err error) *Error {
	e.Err = err
	return e
}

// Error gives the text for logs: operation, sentence and cause.
func (e *Error) Error() string {
	text := e.Text
	if text == "" {
		text = e.Kind.String()
	}
	if e.Err != nil {
		return e.Op + ": " + text + ": " + e.Err.Error()
	}
	return e.Op + ": " + text
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// KindOf returns the kind of the outermost Error in err's tree. A context error
// that nothing wrapped is KindCancelled or, past a deadline of ours,
// KindUnknownOutcome; anything foreign is KindInternal.
func KindOf(err error) Kind {
	var e *Error
	switch {
	case errors.As(err, &e):
		return e.Kind
	case errors.Is(err, context.Canceled):
		return KindCancelled
	case errors.Is(err, context.DeadlineExceeded):
		return KindUnknownOutcome
	default:
		return KindInternal
	}
}
