package docker

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"strings"
	"syscall"

	"github.com/containerd/errdefs"
	"github.com/docker/docker/client"

	"caisson/sandbox"
)

// engineKinds maps the engine's error classes to ours, where the object asked
// about does not say more. First match wins.
var engineKinds = []struct {
	is   func(error) bool
	kind sandbox.Kind
	text string
}{
	{errdefs.IsInvalidArgument, sandbox.KindRejected, "the engine refuses the request"},
	{errdefs.IsNotFound, sandbox.KindSessionLost, "the engine knows nothing of it (any more)"},
	{errdefs.IsConflict, sandbox.KindBusy, "the engine is busy with it"},
	{errdefs.IsUnauthorized, sandbox.KindUnavailable, "the engine refuses our identity"},
	{errdefs.IsPermissionDenied, sandbox.KindRejected, "the engine forbids it"},
	{errdefs.IsNotImplemented, sandbox.KindNotSupported, "the engine cannot do that"},
	{errdefs.IsUnavailable, sandbox.KindUnavailable, "the engine is not ready"},
	{errdefs.IsInternal, sandbox.KindUnavailable, "the engine failed"},
}

// failed turns an error of an engine call into the contract's, with the engine's
// own words as its cause (CON-8). They stay out of the text, which reaches
// clients. An error that is ours already is returned as it is.
func (p *Provider) failed(op string, err error) *sandbox.Error {
	var own *sandbox.Error
	if errors.As(err, &own) {
		return own
	}
	e := p.understood(op, err)
	if e.Kind != sandbox.KindCancelled && p.cfg.Observer != nil {
		p.cfg.Observer.EngineFailed(e.Kind)
	}
	return e
}

// understood is failed for what is an engine's or its link's error.
func (p *Provider) understood(op string, err error) *sandbox.Error {
	if kind, text, ok := p.linkFailure(err); ok {
		if kind == sandbox.KindUnavailable {
			p.unsettle()
		}
		return sandbox.Errorf(op, kind, "%s", text).Because(err)
	}
	switch message := err.Error(); {
	case isNoSpace(err):
		return sandbox.Errorf(op, sandbox.KindNoSpace, "the engine's disk is full").Because(err)
	case errdefs.IsInvalidArgument(err) && strings.Contains(message, "client version"):
		p.unsettle()
		return sandbox.Errorf(op, sandbox.KindUnavailable, "the engine does not speak our API version %s: %s", p.apiVersion(), afterColon(message)).Because(err)
	}
	for _, row := range engineKinds {
		if row.is(err) {
			return sandbox.Errorf(op, row.kind, "%s", row.text).Because(err)
		}
	}
	if isStrange(err) {
		return sandbox.Errorf(op, sandbox.KindUnavailable, "what answers at %s does not answer like an engine", p.host).Because(err)
	}
	return sandbox.Errorf(op, sandbox.KindInternal, "the engine gave an answer that is not understood").Because(err)
}

// isStrange tells of answers that no engine gives: the 502 of a gateway before it,
// words where there should be JSON.
func isStrange(err error) bool {
	var syntax *json.SyntaxError
	var mistyped *json.UnmarshalTypeError
	return errors.As(err, &syntax) || errors.As(err, &mistyped) ||
		strings.Contains(err.Error(), "Error response from daemon: ") || strings.Contains(err.Error(), "request returned ")
}

// linkFailure tells errors of the way to the engine from answers of the engine.
func (p *Provider) linkFailure(err error) (sandbox.Kind, string, bool) {
	var dial *dialError
	var op *net.OpError
	switch {
	case errors.As(err, &dial):
		return sandbox.KindUnavailable, dial.text, true
	case errors.Is(err, context.Canceled):
		return sandbox.KindCancelled, "cancelled", true
	case errors.Is(err, context.DeadlineExceeded):
		return sandbox.KindUnavailable, "the engine at " + p.host.String() + " did not answer in time", true
	case client.IsErrConnectionFailed(err), errors.As(err, &op), errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF),
		errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE), errors.Is(err, net.ErrClosed):
		return sandbox.KindUnavailable, "lost the engine at " + p.host.String() + ": " + failureClass(err), true
	}
	return 0, "", false
}

// isPaused, isStopped and isGoing tell apart what the engine answers with the
// same 409 (KIL-10, KIL-11); only the message says which.
func isPaused(err error) bool {
	return errdefs.IsConflict(err) && strings.Contains(err.Error(), "is paused")
}

func isStopped(err error) bool {
	return errdefs.IsConflict(err) && strings.Contains(err.Error(), "is not running")
}

func isGoing(err error) bool {
	return errdefs.IsConflict(err) && (strings.Contains(err.Error(), "removal of container") ||
		strings.Contains(err.Error(), "marked for removal"))
}

// afterColon drops the client library's "Error response from daemon: ".
func afterColon(message string) string {
	_, rest, found := strings.Cut(message, "daemon: ")
	if !found {
		return message
	}
	return rest
}

// isNoSpace tells of a full disk or quota.
func isNoSpace(err error) bool {
	return strings.Contains(err.Error(), "no space left on device") || strings.Contains(err.Error(), "disk quota exceeded")
}
