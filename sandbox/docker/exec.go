package docker

import (
	"context"
	"encoding/hex"
	"errors"
	"path"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/docker/docker/api/types/container"

	"caisson/sandbox"
	"caisson/wrapper"
)

const (
	// startLimit bounds a command's start, its engine calls together.
	startLimit = 30 * time.Second
	// quietStart is how long a start waits for the first output before it asks
	// the engine whether the command runs: a short command needs no question.
	quietStart = 150 * time.Millisecond
)

// Start runs a command in the session (sandbox.Session).
func (s *Session) Start(ctx context.Context, spec sandbox.ExecSpec, spool *sandbox.Spool) (*sandbox.Exec, error) {
	const op = "start command"
	cwd, err := workingDir(spec.Cwd)
	if err != nil {
		return nil, err
	}
	if err := checkWords(spec.Argv, spec.Env); err != nil {
		return nil, err
	}
	id, err := wrapperID(spec.ID)
	if err != nil {
		return nil, s.p.failed(op, err)
	}
	ctx, cancel := context.WithTimeout(ctx, startLimit)
	defer cancel()
	conn := s.p.dialAhead(ctx)
	command := wrapper.Command{ID: id, Argv: spec.Argv, Until: due(spec.Timeout), Linger: !spec.KeepsStdin()}
	execID, err := s.createExec(ctx, op, container.ExecOptions{
		User: s.user.String(), WorkingDir: cwd, Env: execEnv(spec.Env), Cmd: command.ExecArgv(),
		AttachStdin: true, AttachStdout: true, AttachStderr: true,
	})
	if err != nil {
		conn.drop()
		return nil, err
	}
	st, err := s.p.attachOn(ctx, conn, execID)
	if err != nil {
		// The engine may have started it all the same (STP-1). Its stop leaves a
		// marker that ends a wrapper which comes later.
		s.stopUnseen(ctx, id)
		return nil, s.startFailed(op, err)
	}
	r := newRunning(s, st, id, spec.KeepsStdin())
	r.exec = sandbox.NewExec(s.info.ID, spec, spool, s.p.log)
	r.run()
	r.exec.Attach(r)
	if err := r.confirm(ctx); err != nil {
		_ = r.exec.Close() // nothing was started that it could still tell of
		return nil, err
	}
	return r.exec, nil
}

// wrapperID is the wrapper's name for the exec of this handle: the same bits, so that
// who finds the wrapper on the engine later knows the handle.
func wrapperID(handle string) (string, error) {
	if bits, ok := sandbox.ExecBits(handle); ok {
		return hex.EncodeToString(bits[:]), nil
	}
	return wrapper.NewID()
}

// due is when a command that starts now has had its time; zero for never.
func due(timeout time.Duration) time.Time {
	if timeout <= 0 {
		return time.Time{}
	}
	return time.Now().Add(timeout)
}

// workingDir is where a command starts: the workspace, a folder below it, or an
// absolute path.
func workingDir(cwd string) (string, error) {
	if strings.ContainsRune(cwd, 0) {
		return "", sandbox.Invalid("cwd", "cwd has a NUL byte, which no path can carry")
	}
	if path.IsAbs(cwd) {
		return path.Clean(cwd), nil
	}
	dir := path.Join(workspacePath, cwd)
	if dir != workspacePath && !strings.HasPrefix(dir, workspacePath+"/") {
		e := sandbox.Errorf("start command", sandbox.KindPathEscapes, "a relative cwd starts at %s and may not leave it", workspacePath)
		e.Field = "cwd"
		return "", e
	}
	return dir, nil
}

// maxWord is the most that the kernel takes as one argument or one environment
// entry, its end included; maxWords as all of them together, under the usual
// limit of 8 MiB for a stack, with room left for the wrapper and for what the
// session's environment and the image's add.
const (
	maxWord  = 128 << 10
	maxWords = 3 << 19
)

// checkWords refuses what would not arrive as it is: the engine's API is JSON,
// which replaces bytes that are not UTF-8, and the kernel takes no longer words.
func checkWords(argv []string, env map[string]sandbox.Secret) error {
	all := 0
	for i, word := range argv {
		all += len(word) + 1
		switch {
		case !utf8.ValidString(word):
			return sandbox.Invalid("argv", "word %d of the command is not UTF-8; put such bytes into a file, or on stdin", i)
		case len(word) >= maxWord:
			return sandbox.Invalid("argv", "word %d of the command has %d bytes, and the kernel takes less than %d; put it into a file, or on stdin", i, len(word), maxWord)
		}
	}
	for name, value := range env {
		v := value.Reveal()
		all += len(name) + len(v) + 2
		switch {
		case !utf8.ValidString(v):
			return sandbox.Invalid("env", "the value of %s is not UTF-8", name)
		case len(name)+1+len(v) >= maxWord:
			return sandbox.Invalid("env", "the value of %s has %d bytes, and the kernel takes less than %d", name, len(v), maxWord-len(name)-1)
		}
	}
	if all > maxWords {
		return sandbox.Invalid("argv", "the command and its environment have %d bytes, and the kernel takes no more than about %d; put some into a file, or on stdin", all, maxWords)
	}
	return nil
}

// execEnv is what a command's environment has over the session's.
func execEnv(set map[string]sandbox.Secret) []string {
	env := make([]string, 0, len(set))
	for name, value := range set {
		env = append(env, name+"="+value.Reveal())
	}
	slices.Sort(env)
	return env
}

// confirm waits until it is known that the engine has started the command, and
// returns the engine's refusal if it has not: that comes in the command's own
// output, after a status that promised success (EXW-20, M13).
func (r *running) confirm(ctx context.Context) error {
	wait, began := quietStart, time.Now()
	for {
		timer := time.NewTimer(wait)
		select {
		case <-r.spoke:
			timer.Stop()
			return nil
		case <-r.done:
			timer.Stop()
			if r.refusal != nil && !r.engineSpoke() && !r.ended {
				r.s.stopUnseen(ctx, r.id) // not started, for all that is known
			}
			return r.refusal
		case <-ctx.Done():
			timer.Stop()
			r.s.stopUnseen(ctx, r.id)
			return r.s.p.failed("start command", context.Cause(ctx))
		case <-timer.C:
		}
		exec, err := r.s.p.inspectExec(ctx, r.st.execID)
		if err == nil && exec.Pid != 0 && (time.Since(began) > fullStart || !r.s.full(ctx) || r.s.forked(ctx, exec.Pid)) {
			return nil
		}
		wait = min(2*wait, time.Second)
	}
}

// stopUnseen stops a command whose start failed on us, as far as it was started.
// It is detached from the caller, who may be gone, and bounded.
func (s *Session) stopUnseen(ctx context.Context, id string) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), sandbox.StopLimit)
	defer cancel()
	_, err := s.stopOnce(ctx, id, sandbox.SignalKill)
	if errors.Is(err, errNoRoom) {
		// Never at the price of the session: nothing says that there is
		// anything to stop.
		_, err = s.stopWithHeadroom(ctx, id, sandbox.SignalKill)
	}
	if err != nil {
		s.p.log.Warn("a command whose start failed may run on", "session", sandbox.ShortID(s.info.ID), "error", err)
	}
}
