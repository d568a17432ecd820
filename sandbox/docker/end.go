package docker

import (
	"context"
	"strings"
	"time"

	"github.com/containerd/errdefs"
	"github.com/docker/docker/api/types/container"

	"caisson/sandbox"
)

const (
	// codeWait is how long the engine may take to record the exit code of a
	// command whose output has come whole.
	codeWait = 5 * time.Second
	// cutWait is the same for one whose output has not: it may be running, and
	// only the stream is cut.
	cutWait = 1500 * time.Millisecond
	// killedCode is what the engine records for a process that SIGKILL ended.
	killedCode = 137
)

// conclude says how the stream ended. err is nil where the engine ended it.
//
// The engine's exit code is the wrapper's, which is the command's own when the
// wrapper came to its end. It is reported only then: 137 without an end marker
// may as well be the wrapper's own death, and a code of an exec that was never
// started is the engine's.
func (r *running) conclude(err error) sandbox.StreamEnd {
	if r.closed.Load() {
		return sandbox.StreamEnd{Reason: sandbox.LostStreamCut}
	}
	// No caller's context: the command's end is recorded whoever still waits.
	ctx, cancel := context.WithTimeout(r.s.p.life, endLimit)
	defer cancel()
	complete := r.filter.Complete()
	wait := cutWait
	if complete {
		wait = codeWait
	} else if err != nil {
		wait = 0
	}
	exec, inspectErr := r.awaitEnd(ctx, wait)
	switch {
	case errdefs.IsNotFound(inspectErr):
		return r.forgotten(ctx)
	case inspectErr != nil || exec.Running:
		return sandbox.StreamEnd{Reason: sandbox.LostStreamCut, Complete: complete, Notes: []sandbox.Note{
			{Code: "stream_cut", Text: "the connection to the engine broke before the command's end; it may be running, and kill still works"},
		}}
	case exec.Pid == 0:
		r.refusal = startRefused(string(r.head))
		return sandbox.StreamEnd{Reason: sandbox.LostStatusUnknown, Notes: []sandbox.Note{
			{Code: "not_started", Text: textOf(r.refusal)},
		}}
	case exec.ExitCode == killedCode && !r.ended:
		return r.wrapperKilled(ctx)
	}
	end := sandbox.StreamEnd{Code: &exec.ExitCode, Complete: complete}
	if !complete {
		end.Notes = append(end.Notes, sandbox.Note{Code: "output_incomplete", Text: "the output's end did not arrive: the engine cuts a stream about 2 s after its command's end"})
	}
	if exec.ExitCode == killedCode && !r.killed.Load() {
		end.OOM = r.s.outOfMemory(ctx)
	}
	return end
}

// awaitEnd inspects the exec until the engine has recorded its end, or wait is
// over.
func (r *running) awaitEnd(ctx context.Context, wait time.Duration) (exec container.ExecInspect, err error) {
	deadline := time.Now().Add(wait)
	for step := 5 * time.Millisecond; ; step = min(2*step, 250*time.Millisecond) {
		exec, err = r.s.p.inspectExec(ctx, r.st.execID)
		if err == nil && !exec.Running || errdefs.IsNotFound(err) || time.Now().After(deadline) {
			return exec, err
		}
		if err := pause(ctx, step); err != nil {
			return exec, err
		}
	}
}

// forgotten is the end of an exec that the engine does not know (any more): it
// forgets them with their container, and when it restarts.
func (r *running) forgotten(ctx context.Context) sandbox.StreamEnd {
	if !r.s.runs(ctx) {
		return containerGone()
	}
	return sandbox.StreamEnd{Reason: sandbox.LostStatusUnknown, Notes: []sandbox.Note{
		{Code: "engine_restarted", Text: "the engine was restarted and does not know how the command ended; it may be running, and kill still works"},
	}}
}

func (r *running) wrapperKilled(ctx context.Context) sandbox.StreamEnd {
	if !r.s.runs(ctx) {
		return containerGone()
	}
	return sandbox.StreamEnd{Reason: sandbox.LostStatusUnknown, OOM: r.s.outOfMemory(ctx), Notes: []sandbox.Note{
		{Code: "wrapper_killed", Text: "the process that watches over the command was killed, so its exit status is not known"},
	}}
}

func containerGone() sandbox.StreamEnd {
	return sandbox.StreamEnd{Reason: sandbox.LostContainerGone, Notes: []sandbox.Note{
		{Code: "container_gone", Text: "the session's container is gone or was stopped, and the command with it"},
	}}
}

// runs says whether the session's container runs. Where the engine does not say,
// it does: what is not known to be gone is not called so.
func (s *Session) runs(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, inspectLimit)
	defer cancel()
	c, err := s.p.api.ContainerInspect(ctx, s.containerID)
	if err != nil {
		return !errdefs.IsNotFound(err)
	}
	return c.State != nil && c.State.Running
}

// startRefused puts the engine's refusal to start a command into a kind. The
// text is the engine's and its runtime's, and holds what the caller asked for.
func startRefused(text string) *sandbox.Error {
	const op = "start command"
	cause := errEngineSays(oneLine(text, headLimit))
	has := func(words ...string) bool { return mentions(text, words) }
	switch {
	case has("chdir to cwd"), has("mkdir"), has("Cwd must be an absolute path"):
		return cwdRefused(text, cause)
	case has("resource temporarily unavailable"), has("cannot allocate memory"), has("can't fork"), has("procReady"), has("EAGAIN"),
		has("read init-p"), has("reading error from init"):
		return sandbox.Errorf(op, sandbox.KindCapacity, "the session has no room for another process: its cap of processes or of memory is reached; kill something in it first").Because(cause)
	case has("argument list too long"):
		return sandbox.Invalid("argv", "the command line and the environment are together longer than the kernel takes").Because(cause)
	case has("executable file not found"), has("no such file or directory"):
		return imageUnusable("the image has no /bin/sh, in which every command runs").Because(cause)
	default:
		return sandbox.Errorf(op, sandbox.KindUnavailable, "the engine could not start the command").Because(cause)
	}
}

func cwdRefused(text string, cause error) *sandbox.Error {
	switch {
	case strings.Contains(text, "permission denied"):
		return sandbox.Invalid("cwd", "the session's user may not enter this directory").Because(cause)
	case strings.Contains(text, "not a directory"):
		return sandbox.Invalid("cwd", "this is not a directory").Because(cause)
	default:
		return sandbox.Invalid("cwd", "there is no such directory").Because(cause)
	}
}

// errEngineSays carries the engine's words for the log.
type errEngineSays string

func (e errEngineSays) Error() string { return "the engine says: " + string(e) }
