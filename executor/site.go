package executor

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"sync"
	"time"

	"caisson/sandbox"
)

const (
	// cleanupLimit bounds the removal of a container, on a context of its own.
	cleanupLimit = 30 * time.Second
	// lingerLimit is how long a worker may take to end after its result: what it
	// has started may hold its output for ever.
	lingerLimit = 5 * time.Second
	// stopGrace is how long a worker that was asked to end may take: its own bounds for
	// the end of what it has started are shorter.
	stopGrace = 5 * time.Second
	// pieceRead is how much is read of an output at a time.
	pieceRead = 256 << 10
	// mostPieces are read before anything else is looked at: an output may come
	// faster than it is read.
	mostPieces = 16
)

var (
	errBudget = errors.New("the call's time is over")
	errClosed = errors.New("the executor is closed")
)

// site is what the executors on containers have in common: whose containers they
// are, what they are made with, and what has to be known to run a worker in one.
type site struct {
	manager  *sandbox.Manager
	instance *Instance
	owner    sandbox.Owner
	ceilings *sandbox.Ceilings
	log      *slog.Logger
	worker   []string // argv of the worker in the container
	scrub    *scrubber
	large    *largeResults
	// spare gives a container of the owner's up that nobody uses, and says whether there
	// was one. It waits for its removal, within ctx.
	spare func(context.Context, sandbox.Owner) bool
}

// label names an executor in a log.
func (i *Instance) label() string {
	if i.Name != "" {
		return i.Name
	}
	return i.Executor
}

// spec is the container that the options ask for (TX-12, TX-13).
func (p *site) spec(idle time.Duration, files ...sandbox.InitialFile) sandbox.Spec {
	o := p.instance.Options
	cpu, pids := float64(o.NanoCPUs)/1e9, o.Pids
	return sandbox.Spec{
		Owner: p.owner, Image: o.Image, Network: o.Network, CPU: &cpu, Pids: &pids, Env: p.path(), Labels: o.Labels, TTL: idle, Ceilings: p.ceilings,
		Operator: &sandbox.OperatorSpec{
			MemoryBytes: o.Memory, CapDrop: o.CapDrop, SecurityOpt: o.SecurityOpt,
			Runtime: o.Runtime, User: o.User, PullPolicy: o.PullPolicy, Files: files,
		},
	}
}

// create makes a container. Where there may be no more of them, one that nobody uses
// makes room: it is the container that was refused, so nothing of the call has run.
func (p *site) create(ctx context.Context, spec sandbox.Spec) (sandbox.Info, error) {
	info, err := p.manager.Create(ctx, spec, nil)
	if err != nil && sandbox.KindOf(err) == sandbox.KindLimit && p.spare(ctx, p.owner) {
		return p.manager.Create(ctx, spec, nil)
	}
	return info, err
}

// path is the PATH of the rule's env, or nothing. It stands with the container, where
// the system's folders are added to it; all else of env goes with the worker, whose
// environment no inspect shows.
func (p *site) path() map[string]sandbox.Secret {
	path, ok := p.instance.Options.Env["PATH"]
	if !ok {
		return nil
	}
	return map[string]sandbox.Secret{"PATH": path}
}

// budget bounds a call by its envelope's timeout (TX-22).
func budget(ctx context.Context, e Envelope) (context.Context, context.CancelFunc) {
	return context.WithTimeoutCause(ctx, e.Timeout, errBudget)
}

// remaining is what is left of a call's time, and never nothing: what has none is
// ended by its context.
func remaining(ctx context.Context) time.Duration {
	deadline, ok := ctx.Deadline()
	if !ok {
		return DefaultTimeout
	}
	return max(time.Until(deadline), time.Millisecond)
}

const (
	// workerGrace is what a worker has beyond the call's time: its own deadline is
	// for a server that is gone, and must not race the server's (TX-9).
	workerGrace = 5 * time.Second
	// replGrace is what a REPL has less than the call's time: it ends its own
	// process at the deadline, so that no other state in the container is lost.
	replGrace = time.Second
	// longestTime is the most that an envelope may say.
	longestTime = 31536000 * time.Second
)

// given is how long a worker is told that its call may take.
func given(ctx context.Context, e Envelope) time.Duration {
	left := remaining(ctx)
	if e.ToolPath == REPLPath {
		return max(left-replGrace, left/2)
	}
	return min(left+workerGrace, longestTime)
}

// command is the worker as an exec of a session. The envelope is its input, which
// neither inspect nor ps shows (D19); with a file it reads that instead. The rule's
// env is the worker's own, and what it starts inherits it (AGT-4): the engine takes a
// command's environment and shows it nowhere, unlike a container's.
func (p *site) command(ctx context.Context, envelope []byte, args ...string) sandbox.ExecSpec {
	env := maps.Clone(p.instance.Options.Env)
	delete(env, "PATH")
	argv := append(append([]string(nil), p.worker...), args...)
	return sandbox.ExecSpec{Argv: argv, Env: env, Stdin: envelope, Timeout: remaining(ctx)}
}

// follow reads an exec's output as it comes, until the exec ends, or a little
// after the result has come, or ctx ends, or stop is closed.
func follow(ctx context.Context, exec *sandbox.Exec, o *output, stop <-chan struct{}) {
	defer o.finish()
	var at [2]int64
	var late <-chan time.Time
	for {
		changed := exec.Spool().Changed()
		ended := isClosed(exec.Done()) // before the last look
		some := o.drain(exec.Spool(), &at)
		switch {
		case some && (ended || ctx.Err() == nil && !isClosed(stop)):
			continue
		case ended:
			return
		}
		if o.whole && late == nil {
			timer := time.NewTimer(lingerLimit)
			defer timer.Stop()
			late = timer.C
		}
		select {
		case <-changed:
		case <-exec.Done():
		case <-late:
			return
		case <-stop:
			return
		case <-ctx.Done():
			return
		}
	}
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// drain takes a part of what has come since at, of both outputs, and says whether
// there was any.
func (o *output) drain(spool *sandbox.Spool, at *[2]int64) bool {
	some := false
	for i, take := range []func([]byte){o.stdout, o.stderr} {
		for range mostPieces {
			chunk, err := spool.Read(sandbox.Stream(i), at[i], pieceRead)
			if err != nil || len(chunk.Data) == 0 {
				o.gap = o.gap || err != nil
				break
			}
			if chunk.Offset > at[i] && i == 0 {
				o.gap = true
			}
			at[i] = chunk.Offset + int64(len(chunk.Data))
			take(chunk.Data)
			some = true
		}
	}
	return some
}

// ending says in half a sentence how a worker's exec ended that gave no result.
func (p *site) ending(v sandbox.ExecView) string {
	memory := showBytes(p.instance.Options.Memory)
	switch {
	case v.OOMKilled != nil && *v.OOMKilled:
		return "it ran out of memory, of which it may have " + memory
	case v.Status == sandbox.StatusExited && v.ExitCode != nil && *v.ExitCode == 127:
		return fmt.Sprintf("the image %s has no worker that could be started", p.instance.Options.Image)
	case v.Status == sandbox.StatusExited && v.ExitCode != nil:
		return fmt.Sprintf("its worker ended with exit code %d", *v.ExitCode)
	case v.Status == sandbox.StatusLost && v.LostReason == sandbox.LostContainerGone:
		return "its container ended while the call ran; the call may have done a part of its work, and is not repeated"
	case v.Status == sandbox.StatusLost:
		return "the connection to it broke; the call may have done its work, and is not repeated"
	case v.Status == sandbox.StatusKilled:
		return "it was killed"
	default:
		return ""
	}
}

// result is what a worker's exec has given, or how it ended without a result.
func (p *site) result(o *output, v sandbox.ExecView) (r Result, found bool) {
	return toolsOwn(o.result(p.ending(v)))
}

// toolsOwn takes out of a tool's own result what only the server says of a call: what
// became of it (failure, started), and where it ran.
func toolsOwn(r Result, found bool) (Result, bool) {
	for _, name := range []string{"failure", "started", "executor", "mode", "rule", "container", "exec_id", "duration_ms"} {
		delete(r.Metadata, name)
	}
	return r, found
}

// timedOut is the failure of a call that has had its time (TX-20).
func timedOut(limit time.Duration, where string) Result {
	return failed("timeout", fmt.Sprintf("the tool did not finish within %s s%s", seconds(limit), where))
}

// failed is a failure that a program can tell from others by its word.
func failed(word, text string) Result {
	r := Failure(StatusError, text)
	r.Metadata = map[string]json.RawMessage{"failure": quoted(word)}
	return r
}

// stoppedByBudget says whether it was the call's time that ended ctx.
func stoppedByBudget(ctx context.Context) bool {
	return errors.Is(context.Cause(ctx), errBudget)
}

// wait waits for what a group still does, or for ctx.
func wait(ctx context.Context, group *sync.WaitGroup) error {
	done := make(chan struct{})
	go func() { // ends with the group, whose parts are all bounded
		defer close(done)
		group.Wait()
	}()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return sandbox.Errorf("close executor", sandbox.KindUnknownOutcome, "its containers were still being removed").Because(ctx.Err())
	}
}

// stopped is the failure of a call whose context has ended.
func stopped(ctx context.Context, limit time.Duration, where string) Result {
	switch {
	case stoppedByBudget(ctx):
		return timedOut(limit, where)
	case errors.Is(context.Cause(ctx), errClosed):
		return failed("closed", "the executor was closed while the call ran")
	default:
		return failed("cancelled", "the call was cancelled"+where)
	}
}

// refused is the failure of a call that never began: the container could not be
// made, or took no command.
func (p *site) refused(ctx context.Context, limit time.Duration, err error) Result {
	if ctx.Err() != nil {
		r := stopped(ctx, limit, ": it had not begun")
		r.Metadata["started"] = json.RawMessage("false")
		return r
	}
	kind := sandbox.KindOf(err)
	text := textOf(err)
	switch kind {
	case sandbox.KindInternal:
		p.log.Error("a tool's container could not be used", "error", err)
		text = "something went wrong in the server"
	case sandbox.KindSessionLost, sandbox.KindSessionNotFound:
		text = "its container was gone"
	case sandbox.KindLimit:
		text = "as many tools run as may at one time; call again when one of them has ended"
	}
	r := failed(kind.String(), "the tool was not run: "+text)
	r.Metadata["started"] = json.RawMessage("false")
	return r
}

// unstarted is the failure of a call whose worker's start has failed. Where the engine
// gave no answer nobody knows whether it had begun.
func (p *site) unstarted(ctx context.Context, limit time.Duration, err error) Result {
	const unknown = "whether it had begun is not known"
	switch {
	case sandbox.KindOf(err) != sandbox.KindUnknownOutcome:
		return p.refused(ctx, limit, err)
	case ctx.Err() != nil:
		return stopped(ctx, limit, "; "+unknown)
	default:
		return failed(sandbox.KindUnknownOutcome.String(), "the engine gave no answer when the tool was started; "+unknown)
	}
}

// stamp says who ran a call, over what the worker says of itself (TX-21), and takes
// out of all of it what is not to be seen.
func (p *site) stamp(r Result, began time.Time, more map[string]string) Result {
	r = plainResult(p.scrub.result(r))
	if r.Metadata == nil {
		r.Metadata = map[string]json.RawMessage{}
	}
	if r.Timestamp.IsZero() {
		r.Timestamp = time.Now().UTC()
	}
	r.Metadata["executor"] = quoted(p.instance.Executor)
	for name, value := range more {
		r.Metadata[name] = quoted(value)
	}
	r.Metadata["duration_ms"], _ = json.Marshal(time.Since(began).Milliseconds())
	return r
}

func quoted(text string) json.RawMessage {
	b, _ := json.Marshal(text) // a string always has a form
	return b
}
