package docker

import (
	"context"
	"errors"
	"io"
	"time"

	"github.com/containerd/errdefs"
	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/pkg/stdcopy"

	"caisson/sandbox"
)

// pipe runs a bare command (no wrapper) as the session's user in "/", for the
// provider's own work in a session, and returns its exit code. Where stdin is
// nil the command sees end of file at once.
//
// ctx ends it at any point; the command itself may go on then, so pipe is for
// commands that end by themselves. stdin's Read must not block for ever: pipe
// waits for it. An error of stdout or stderr ends the transfer and is returned.
//
// The engine cuts a slow link's stream about 2 s after the command's end without
// a word (D27): a caller that needs all of an output must be able to tell.
func (s *Session) pipe(ctx context.Context, argv []string, stdin io.Reader, stdout, stderr io.Writer) (exitCode int, err error) {
	const op = "run in the session"
	conn := s.p.dialAhead(ctx)
	execID, err := s.createExec(ctx, op, container.ExecOptions{
		User: s.user.String(), WorkingDir: "/", Cmd: argv,
		AttachStdin: stdin != nil, AttachStdout: true, AttachStderr: true,
	})
	if err != nil {
		conn.drop()
		return 0, err
	}
	st, err := s.p.attachOn(ctx, conn, execID)
	if err != nil {
		return 0, s.attachFailed(op, err)
	}
	defer st.close()
	stop := context.AfterFunc(ctx, st.close)
	defer stop()

	fed := make(chan error, 1)
	go func() { fed <- st.feed(stdin) }()
	var head cappedBuffer // the engine's refusal, if it is one
	_, err = stdcopy.StdCopy(io.MultiWriter(&head, stdout), stderr, st.reader)
	st.close() // frees the feeder from a command that ended without reading
	feedErr := <-fed
	if ctxErr := context.Cause(ctx); ctxErr != nil {
		return 0, s.p.failed(op, ctxErr)
	}
	if err = errors.Join(err, feedErr); err != nil {
		return 0, s.p.failed(op, err)
	}
	code, started, err := s.p.exitCode(ctx, execID)
	if err == nil && !started {
		return 0, startRefused(string(head))
	}
	return code, err
}

// feed sends r and then the end of input. A command that takes no more is no
// failure; one of r is.
func (s *stream) feed(r io.Reader) error {
	if r == nil {
		return nil
	}
	buf := make([]byte, 64<<10)
	for {
		n, err := r.Read(buf)
		if n > 0 {
			if _, werr := s.conn.Write(buf[:n]); werr != nil {
				return nil //nolint:nilerr // how the command ended tells more than a write that it did not wait for
			}
		}
		if errors.Is(err, io.EOF) {
			_ = s.closeWrite() // the command has ended, or will say so
			return nil
		}
		if err != nil {
			return err
		}
	}
}

const (
	// exitWait bounds the wait for an exit code after a stream's end; the engine
	// records it up to about 4 s later while a process holds the output.
	exitWait = 5 * time.Second
	// inspectLimit bounds one inspect: a newer engine may hold the exec's lock
	// for as long as it waits for its streams.
	inspectLimit = 4 * time.Second
)

// exitCode waits, within exitWait, until the engine has recorded how an exec
// ended; started is false for one that it could not start. An exec that the
// engine forgot is KindSessionLost: it forgets them with their container, and
// when it restarts.
func (p *Provider) exitCode(ctx context.Context, execID string) (code int, started bool, err error) {
	const op = "read the exit code"
	ctx, cancel := context.WithTimeout(ctx, exitWait)
	defer cancel()
	for wait := 5 * time.Millisecond; ; wait = min(2*wait, 250*time.Millisecond) {
		exec, err := p.inspectExec(ctx, execID)
		switch {
		case errdefs.IsNotFound(err):
			return 0, false, sandbox.Errorf(op, sandbox.KindSessionLost, "the engine knows nothing of the command (any more)").Because(err)
		case err != nil && !isTimeout(err):
			return 0, false, p.failed(op, err)
		case err == nil && !exec.Running && (exec.Pid != 0 || exec.ExitCode != 0):
			return exec.ExitCode, exec.Pid != 0, nil
		}
		if pause(ctx, wait) != nil {
			return 0, false, sandbox.Errorf(op, sandbox.KindUnknownOutcome, "the engine has recorded no exit code").Because(context.Cause(ctx))
		}
	}
}

func (p *Provider) inspectExec(ctx context.Context, execID string) (container.ExecInspect, error) {
	ctx, cancel := context.WithTimeout(ctx, inspectLimit)
	defer cancel()
	return p.api.ContainerExecInspect(ctx, execID)
}
