package mcp

import (
	"errors"
	"strings"

	"caisson/sandbox"
)

// loggable is an error as the log has it: what was being done, what kind of
// failure it is, and its causes. Sentences for the caller often quote what it has
// sent, a secret in the wrong argument for one; they are kept only where they are
// about the server and the engine (T59).
func loggable(err error) string {
	var f *failure
	var e *sandbox.Error
	switch {
	case err == nil:
		return ""
	case errors.As(err, &f):
		return f.code
	case !errors.As(err, &e):
		return err.Error()
	}
	parts := []string{e.Op, e.Kind.String()}
	if e.Text != "" && aboutUs(e.Kind) {
		parts[1] = e.Text
	}
	if e.Err != nil {
		parts = append(parts, loggable(e.Err))
	}
	return strings.Join(parts, ": ")
}

// aboutUs says whether errors of a kind speak of the server and the engine alone.
func aboutUs(kind sandbox.Kind) bool {
	switch kind {
	case sandbox.KindInternal, sandbox.KindUnavailable, sandbox.KindUnknownOutcome, sandbox.KindCapacity, sandbox.KindFirewall,
		sandbox.KindFenced, sandbox.KindKillFailed, sandbox.KindBusy, sandbox.KindLimit, sandbox.KindCancelled:
		return true
	}
	return false
}
