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
	return s.pipeIn(ctx, "/", argv, stdin, stdout, stderr)
}

func (s *Session) pipeIn(ctx context.Context, dir string, argv []string, stdin io.Reader, stdout, stderr io.Writer) (exitCode int, err error) {
	const op = "run in the session"
	execID, err := s.createExec(ctx, op, container.ExecOptions{
		User: s.user.String(), WorkingDir: dir, Cmd: argv,
		AttachStdin: stdin != nil, AttachStdout: true, AttachStderr: true,
	})
	if err != nil {
		return 0, err
	}
	st, err := s.p.attach(ctx, execID)
	if err != nil {
		return 0, s.failed(op, err)
	}
	defer st.close()
	stop := context.AfterFunc(ctx, st.close)
	defer stop()

	fed := make(chan error, 1)
	go func() { fed <- st.feed(stdin) }()
	_, err = stdcopy.StdCopy(stdout, stderr, st.reader)
	st.close() // frees the feeder from a command that ended without reading
	feedErr := <-fed
	if ctxErr := context.Cause(ctx); ctxErr != nil {
		return 0, s.p.failed(op, ctxErr)
	}
	if err = errors.Join(err, feedErr); err != nil {
		return 0, s.p.failed(op, err)
	}
	return s.p.exitCode(ctx, execID)
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
				return nil
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

// errNoExitCode says that the engine recorded no exit code in time.
var errNoExitCode = errors.New("the engine has recorded no exit code")

// exitCode waits, within exitWait, until the engine has recorded how an exec
// ended. An exec that the engine forgot is KindSessionLost: it forgets them with
// their container, and when it restarts.
func (p *Provider) exitCode(ctx context.Context, execID string) (int, error) {
	const op = "read the exit code"
	ctx, cancel := context.WithTimeout(ctx, exitWait)
	defer cancel()
	wait := 5 * time.Millisecond
	for {
		exec, err := p.inspectExec(ctx, execID)
		switch {
		case errdefs.IsNotFound(err):
			return 0, sandbox.Errorf(op, sandbox.KindSessionLost, "the engine knows nothing of the command (any more)").Because(err)
		case err == nil && !exec.Running && exec.Pid != 0:
			return exec.ExitCode, nil
		case err != nil && !isTimeout(err):
			return 0, p.failed(op, err)
		}
		select {
		case <-ctx.Done():
			return 0, sandbox.Errorf(op, sandbox.KindUnknownOutcome, "the engine has recorded no exit code").Because(errNoExitCode)
		case <-time.After(wait):
			wait = min(2*wait, 250*time.Millisecond)
		}
	}
}

func (p *Provider) inspectExec(ctx context.Context, execID string) (container.ExecInspect, error) {
	ctx, cancel := context.WithTimeout(ctx, inspectLimit)
	defer cancel()
	return p.api.ContainerExecInspect(ctx, execID)
}
