package executor

import (
	"bytes"
	"context"
	"log/slog"
	"os"
	"os/exec"
	"sync"
	"time"

	"caisson/sandbox"
)

// The bounds of a process on the server's own host.
const (
	localMemory = 4 << 30 // bytes of address space
	localFiles  = 1024    // open at one time
	localPath   = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
	// localEnd is how long what a process has left may hold its output.
	localEnd = 2 * time.Second
)

// local runs each call in a process of its own on this server's host, which the
// operator has allowed (SANDBOX_MCP_ALLOW_LOCAL): in its own group, with limits and
// a deadline, with nothing of the server's environment, in a folder that goes with
// it. It is no sandbox: the process has the server's user and network.
type local struct {
	instance *Instance
	argv     []string
	log      *slog.Logger
	scrub    *scrubber
	owner    sandbox.Owner
	large    *largeResults
	life     context.Context
	end      context.CancelCauseFunc

	mu     sync.Mutex
	closed bool
	calls  sync.WaitGroup
}

func newLocal(p site, argv []string) *local {
	life, end := context.WithCancelCause(context.Background()) // the executor's own life, until Close
	return &local{instance: p.instance, argv: argv, log: p.log, scrub: p.scrub, owner: p.owner, large: p.large, life: life, end: end}
}

// Execute implements Executor.
func (l *local) Execute(ctx context.Context, e Envelope, watch Watch) Result {
	at := site{instance: l.instance, owner: l.owner, log: l.log, scrub: l.scrub, large: l.large}
	began, limit := time.Now(), e.Timeout
	more := map[string]string{"mode": "process"}
	if !l.enter() {
		return at.stamp(at.refused(ctx, limit, closedError()), began, more)
	}
	defer l.calls.Done()
	ctx, cancel := budget(ctx, e)
	defer cancel()
	ctx, cut := context.WithCancelCause(ctx)
	defer cut(nil)
	defer context.AfterFunc(l.life, func() { cut(errClosed) })()
	e.Timeout = given(ctx, e)
	o := newOutput(e, watch, &at, ctx.Done())
	defer o.close()
	ending, err := l.run(ctx, e, o)
	if err != nil {
		return at.stamp(at.refused(ctx, limit, err), began, more)
	}
	r, found := toolsOwn(o.result(ending))
	if !found && ctx.Err() != nil {
		r = stopped(ctx, limit, "; it may have done a part of its work")
	}
	return at.stamp(r, began, more)
}

func (l *local) enter() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return false
	}
	l.calls.Add(1)
	return true
}

// run runs a worker on an envelope to its end, in a folder that is removed
// afterwards.
func (l *local) run(ctx context.Context, e Envelope, o *output) (ending string, err error) {
	envelope, err := e.Encode()
	if err != nil {
		return "", err
	}
	dir, err := os.MkdirTemp("", "caisson-tool-")
	if err != nil {
		return "", err
	}
	defer func() {
		if err := os.RemoveAll(dir); err != nil {
			l.log.Warn("the folder of a local tool call was not removed", "error", err)
		}
	}()
	// It is not the command that ends with ctx, but its whole group, below.
	cmd := exec.CommandContext(context.WithoutCancel(ctx), l.argv[0], append(append([]string(nil), l.argv[1:]...), "--envelope", "-")...)
	cmd.Dir, cmd.Env, cmd.SysProcAttr, cmd.WaitDelay = dir, l.environment(dir), ownGroup(), localEnd
	var mu sync.Mutex // two goroutines bring the output
	cmd.Stdout = writerFunc(func(p []byte) { mu.Lock(); defer mu.Unlock(); o.stdout(p) })
	cmd.Stderr = writerFunc(func(p []byte) { mu.Lock(); defer mu.Unlock(); o.stderr(p) })
	ending, err = l.await(ctx, cmd, envelope, remaining(ctx))
	mu.Lock()
	defer mu.Unlock()
	o.finish()
	return ending, err
}

// await starts a worker, gives it its envelope and waits for its end, or ctx, and
// ends what it has left of its group.
func (l *local) await(ctx context.Context, cmd *exec.Cmd, envelope []byte, timeout time.Duration) (ending string, err error) {
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return "", err
	}
	group, err := startGroup(func() (int, error) {
		if err := cmd.Start(); err != nil {
			return 0, err
		}
		return cmd.Process.Pid, nil
	})
	if err != nil {
		return "", err
	}
	var feed sync.WaitGroup
	// The worker does nothing before it has its envelope: what it starts is limited.
	if err = group.limit(timeout); err == nil {
		feed.Go(func() {
			_, _ = bytes.NewReader(envelope).WriteTo(stdin) // a worker that does not read tells by its end
			_ = stdin.Close()
		})
		select {
		case <-ctx.Done():
			group.kill()
			<-group.done
		case <-group.done: // the worker alone
		}
	}
	group.kill() // and what it has left
	<-group.done
	ending = endOf(cmd)
	feed.Wait() // the end has closed its pipe
	return ending, err
}

// endOf says how a process ended.
func endOf(cmd *exec.Cmd) string {
	_ = cmd.Wait() // its state tells more than its error
	if cmd.ProcessState == nil {
		return ""
	}
	return "its worker ended: " + cmd.ProcessState.String()
}

// environment is the rule's, and what no program does without.
func (l *local) environment(dir string) []string {
	env := map[string]string{"PATH": localPath, "HOME": dir, "TMPDIR": dir, "LANG": "C.UTF-8"}
	for name, value := range l.instance.Options.Env {
		env[name] = value.Reveal()
	}
	all := make([]string, 0, len(env))
	for name, value := range env {
		all = append(all, name+"="+value)
	}
	return all
}

// Close implements Executor.
func (l *local) Close(ctx context.Context) error {
	l.mu.Lock()
	l.closed = true
	l.mu.Unlock()
	l.end(errClosed)
	return wait(ctx, &l.calls)
}

type writerFunc func(p []byte)

func (f writerFunc) Write(p []byte) (int, error) {
	f(p)
	return len(p), nil
}
