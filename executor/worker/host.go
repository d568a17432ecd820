package worker

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"sync/atomic"
	"time"

	"caisson/executor/wire"
)

// watch is told about a call under way. Both may be called concurrently.
type watch struct {
	progress func(wire.Progress)
	stderr   func(line string)
}

// host runs calls, and keeps what lives between them.
type host struct {
	options  options
	log      *slog.Logger
	children *children
	kits     *kits
	repls    *repls
	hurried  atomic.Bool // what is left is killed at once
}

// newHost makes a host; it starts nothing.
func newHost(o options, log *slog.Logger) *host {
	c := newChildren(log)
	return &host{options: o, log: log, children: c, kits: newKits(c, o.serve, log), repls: newREPLs(c, o.serve)}
}

// close ends everything that the host runs and waits for it.
func (h *host) close() {
	h.kits.close(h.hurried.Load())
	h.repls.close()
	h.children.close()
}

// call runs one call under its deadline. It never fails otherwise than by its
// result; ctx ends it early.
func (h *host) call(ctx context.Context, e wire.Envelope, w watch) wire.Result {
	within := deadline(e.Timeout)
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	r, err := h.dispatch(ctx, e, w)
	if ctx.Err() != nil {
		h.hurried.Store(true)
	}
	if err != nil {
		r = wire.Failure(wire.StatusError, sentence(ctx, err, within))
	}
	stamp(&r, e)
	return r
}

// dispatch runs what the envelope's path names.
func (h *host) dispatch(ctx context.Context, e wire.Envelope, w watch) (wire.Result, error) {
	switch e.ToolPath {
	case wire.CommandPath:
		return h.command(ctx, e, w)
	case wire.AgentPath:
		return h.agent(ctx, e, w)
	case wire.ToolkitPath, wire.ToolkitListPath:
		return h.toolkit(ctx, e, w)
	case wire.REPLPath:
		return h.repl(ctx, e, w)
	default:
		return wire.Result{}, fmt.Errorf("the worker knows no tool %q", e.ToolPath)
	}
}

// sentence says why a call failed, its end by the deadline or from outside first.
func sentence(ctx context.Context, err error, within time.Duration) string {
	switch {
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		text := fmt.Sprintf("the tool did not finish within %s and was stopped", within)
		var mute *unanswered
		if errors.As(err, &mute) {
			text += mute.junk
		}
		return text
	case ctx.Err() != nil:
		return "the call was cancelled and the tool stopped"
	default:
		return err.Error()
	}
}

// stamp adds what every result says of its call (ENV-8), without replacing what the
// tool said.
func stamp(r *wire.Result, e wire.Envelope) {
	all := map[string]json.RawMessage{"tool_import_path": quoted(e.ToolPath)}
	if e.Method != "" {
		all["method_name"] = quoted(e.Method)
	}
	maps.Copy(all, r.Metadata)
	r.Metadata = all
	if r.Timestamp.IsZero() {
		r.Timestamp = time.Now().UTC()
	}
}

// quoted is a text as JSON.
func quoted(text string) json.RawMessage {
	out, _ := json.Marshal(text) // a string always has a form
	return out
}

// part reads one of the parts that a tool is made from.
func part[T any](e wire.Envelope, name string) (T, error) {
	var value T
	text, ok := e.InitArgs[name]
	if !ok {
		return value, fmt.Errorf("tool_init_kwargs has no %s", name)
	}
	if err := json.Unmarshal(text, &value); err != nil {
		return value, fmt.Errorf("tool_init_kwargs: %s has the wrong type", name)
	}
	return value, nil
}

// argvOf reads the command of a tool or a toolkit.
func argvOf(e wire.Envelope) ([]string, error) {
	argv, err := part[[]string](e, "command")
	if err == nil && (len(argv) == 0 || argv[0] == "") {
		err = errors.New("tool_init_kwargs: command names no program")
	}
	return argv, err
}
