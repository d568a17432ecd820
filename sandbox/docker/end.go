package docker

import (
	"context"
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
	// cutAbove is how much output must have come before its end can have been cut
	// off by the engine: less than that always fits into what is on its way.
	cutAbove = 64 << 10
	// attachFailedCode is what it records when the attach fails.
	attachFailedCode = 126
)

// conclude says how the stream ended. err is nil where the engine ended it.
//
// The engine's exit code is the wrapper's, which is the command's own when the
// wrapper came to its end. Its end markers tell that. Without them the code is
// believed only where the engine may have cut the output's end off, as it does
// with much of it on a slow link; and then neither 137, which may be the wrapper's
// own death, nor 126, which an old engine records when an attach breaks and the
// command runs on [M, 20.10]. The code of an exec that was never started is the
// engine's.
func (r *running) conclude(err error) sandbox.StreamEnd {
	if r.closed.Load() {
		return sandbox.StreamEnd{Reason: sandbox.LostStreamCut}
	}
	// No caller's context: the command's end is recorded whoever still waits.
	ctx, cancel := context.WithTimeout(r.life, endLimit)
	defer cancel()
	complete := r.filter.Complete()
	withheld := complete && r.withheld.Load()
	wait := cutWait
	switch {
	case withheld:
		wait = 0
	case complete:
		wait = codeWait
	case err != nil:
		wait = 0
	}
	exec, inspectErr := r.awaitEnd(ctx, wait)
	switch {
	case errdefs.IsNotFound(inspectErr):
		return r.forgotten(ctx)
	case withheld && (inspectErr != nil || exec.Running):
		return endNotTold()
	case inspectErr != nil || exec.Running:
		return streamCut(complete)
	case exec.Pid == 0:
		r.refusal = startRefused(string(r.head))
		return sandbox.StreamEnd{Reason: sandbox.LostStatusUnknown, Notes: []sandbox.Note{
			{Code: "not_started", Text: textOf(r.refusal)},
		}}
	case r.ended:
	case exec.ExitCode == attachFailedCode:
		return streamCut(false)
	case exec.ExitCode == killedCode, r.received < cutAbove:
		return r.unwatched(ctx)
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

func streamCut(complete bool) sandbox.StreamEnd {
	return sandbox.StreamEnd{Reason: sandbox.LostStreamCut, Complete: complete, Notes: []sandbox.Note{
		{Code: "stream_cut", Text: "the connection to the engine broke before the command's end; it may be running, and kill still works"},
	}}
}

// endNotTold is the end of a command whose output is whole and whose exit code the
// engine keeps to itself (STR-7).
func endNotTold() sandbox.StreamEnd {
	return sandbox.StreamEnd{Reason: sandbox.LostStatusUnknown, Complete: true, Notes: []sandbox.Note{
		{Code: "end_withheld", Text: "all output has come, but the engine does not tell how the command ended: it waits for the output of another command of the session to be taken from it"},
	}}
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

// unwatched is the end of an exec whose wrapper ended without a word.
func (r *running) unwatched(ctx context.Context) sandbox.StreamEnd {
	if !r.s.runs(ctx) {
		return containerGone()
	}
	return sandbox.StreamEnd{Reason: sandbox.LostStatusUnknown, OOM: r.s.outOfMemory(ctx), Notes: []sandbox.Note{
		{Code: "wrapper_killed", Text: "the process that watches over the command was killed or could not run, so its exit status is not known"},
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
	for try := range runsTries {
		c, err := s.p.api.ContainerInspect(ctx, s.containerID)
		if err != nil {
			return !errdefs.IsNotFound(err)
		}
		if c.State == nil || !c.State.Running || c.State.Dead || c.State.Status == container.StateRemoving {
			return false
		}
		if pause(ctx, runsPause<<try) != nil {
			break
		}
	}
	return true
}

// A container that is on its way out is shown as running for a moment longer than
// the commands in it.
const (
	runsTries = 4
	runsPause = 50 * time.Millisecond // doubled each time: 0.75 s together
)

// startRefused puts the engine's refusal to start a command into a kind. The
// text is the engine's and its runtime's, and holds what the caller asked for.
func startRefused(text string) *sandbox.Error {
	const op = "start command"
	cause := errEngineSays(oneLine(text, headLimit))
	has := func(words ...string) bool { return mentions(text, words) }
	switch {
	case has("chdir to cwd"), has("failed: chdir `"), has("failed: chdir to `"), has("mkdir"), has("Cwd must be an absolute path"):
		return cwdRefused(text, cause)
	case has("resource temporarily unavailable"), has("cannot allocate memory"), has("can't fork"), has("procReady"), has("EAGAIN"),
		has("read init-p"), has("reading error from init"):
		return noRoom().Because(cause)
	case has("argument list too long"):
		return sandbox.Invalid("argv", "the command line and the environment are together longer than the kernel takes").Because(cause)
	case has("executable file not found"), has("no such file or directory"):
		return imageUnusable("the image has no /bin/sh, in which every command runs").Because(cause)
	default:
		return sandbox.Errorf(op, sandbox.KindUnavailable, "the engine could not start the command").Because(cause)
	}
}

func noRoom() *sandbox.Error {
	return sandbox.Errorf("start command", sandbox.KindCapacity, "the session has no room for another process: its cap of processes or of memory is reached; kill something in it first")
}

func cwdRefused(text string, cause error) *sandbox.Error {
	switch {
	case mentions(text, []string{"permission denied"}):
		return sandbox.Invalid("cwd", "the session's user may not enter this directory").Because(cause)
	case mentions(text, []string{"not a directory"}):
		return sandbox.Invalid("cwd", "this is not a directory").Because(cause)
	default:
		return sandbox.Invalid("cwd", "there is no such directory").Because(cause)
	}
}

// errEngineSays carries the engine's words for the log.
type errEngineSays string

func (e errEngineSays) Error() string { return "the engine says: " + string(e) }
