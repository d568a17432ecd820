package worker

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"caisson/executor/wire"
)

// shownStderr is how much of a failed command's standard error its result repeats,
// in bytes: the end of it, where the reason mostly stands.
const shownStderr = 4 << 10

// command runs a tool that is a command: its arguments go to its standard input as
// JSON, what it prints is the result.
func (h *host) command(ctx context.Context, e wire.Envelope, w watch) (wire.Result, error) {
	argv, err := argvOf(e)
	if err != nil {
		return wire.Result{}, err
	}
	end, err := h.children.run(ctx, argv, e.Arguments, w)
	if err != nil {
		return wire.Result{}, err
	}
	if end.code != 0 || end.signal != "" {
		return failed(end, "the command"), nil
	}
	return shape(end.stdout), nil
}

// failed is the result of a program that ended with another status than 0.
func failed(end ending, what string) wire.Result {
	text := fmt.Sprintf("%s ended with exit status %d", what, end.code)
	if end.signal != "" {
		text = fmt.Sprintf("%s was ended by the signal %s", what, end.signal)
	}
	if end.oom {
		text += " after the container ran out of memory and the kernel killed a process in it"
	}
	if tail := strings.TrimSpace(end.stderr.String()); tail != "" {
		text += ": " + tail
	} else {
		text += " and wrote nothing to its standard error"
	}
	r := wire.Failure(wire.StatusError, text)
	r.Metadata = map[string]json.RawMessage{}
	if end.signal == "" {
		r.Metadata["exit_code"] = json.RawMessage(fmt.Sprint(end.code))
	}
	return r
}
