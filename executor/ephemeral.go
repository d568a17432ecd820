package executor

import (
	"context"
	"encoding/json"
	"sync"
	"time"

	"caisson/sandbox"
)

const (
	// leastLife is the idle time of an ephemeral container: it is removed when its
	// call ends, and by this only where the server dies before.
	leastLife = time.Minute
	// removeWait is how long a result waits for the removal of its container.
	removeWait = 10 * time.Second
)

// ephemeral runs each call in a container of its own (TX-11).
type ephemeral struct {
	site
	life context.Context
	end  context.CancelCauseFunc
	work sync.WaitGroup // removals

	mu     sync.Mutex
	closed bool
	calls  sync.WaitGroup
}

func newEphemeral(p site) *ephemeral {
	life, end := context.WithCancelCause(context.Background()) // the executor's own life, until Close
	return &ephemeral{site: p, life: life, end: end}
}

// Execute implements Executor.
func (x *ephemeral) Execute(ctx context.Context, e Envelope, watch Watch) Result {
	began := time.Now()
	limit := e.Timeout
	more := map[string]string{"mode": string(Ephemeral)}
	if !x.enter() {
		return x.stamp(x.refused(ctx, limit, closedError()), began, more)
	}
	defer x.calls.Done()
	ctx, cancel := budget(ctx, e)
	defer cancel()
	return x.stamp(x.call(ctx, e, limit, watch, more), began, more)
}

func (x *ephemeral) enter() bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.closed {
		return false
	}
	x.calls.Add(1)
	return true
}

// call makes a container with the envelope in it, runs the worker on that, and
// removes the container, whatever happens in between.
func (x *ephemeral) call(ctx context.Context, e Envelope, limit time.Duration, watch Watch, more map[string]string) Result {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(x.life, func() { cancel(errClosed) })()
	e.Timeout = given(ctx, e)
	envelope, err := e.Encode()
	if err != nil {
		return x.refused(ctx, limit, err)
	}
	// A name that cannot be guessed (TX-17); the worker removes it as soon as it has
	// read it (TX-18), and it goes with the container.
	path := "/tmp/caisson-envelope-" + NewNonce() + ".json"
	info, err := x.create(ctx, x.spec(leastLife, sandbox.InitialFile{Path: path, Mode: 0o600, Content: sandbox.NewSecret(string(envelope))}))
	if err != nil {
		return x.refused(ctx, limit, err)
	}
	more["container"] = sandbox.ShortID(info.ID)
	defer x.remove(info.ID)
	exec, err := x.manager.StartExec(ctx, x.owner, info.ID, x.command(ctx, nil, "--envelope", path))
	if err != nil {
		return x.unstarted(ctx, limit, err)
	}
	defer x.manager.Drop(exec)
	more["exec_id"] = sandbox.ShortID(exec.ID())
	o := newOutput(e, watch, &x.site, ctx.Done())
	defer o.close()
	follow(ctx, exec, o, nil)
	view := exec.View()
	r, found := x.result(o, view)
	switch {
	case found:
	case view.Status == sandbox.StatusTimedOut:
		r = timedOut(limit, "")
	case view.Status == sandbox.StatusRunning && ctx.Err() != nil:
		r = stopped(ctx, limit, "; the call may have done a part of its work")
	case view.Status == sandbox.StatusLost:
		r.Metadata = map[string]json.RawMessage{"failure": quoted("container_lost")}
	}
	return r
}

// remove destroys a call's container on a context of its own: neither a caller that
// went away nor a panic leaves it behind. Mostly it is gone when the call answers;
// an engine that takes long for it does not hold the answer up.
func (x *ephemeral) remove(id string) {
	done := make(chan struct{})
	x.work.Go(func() {
		defer close(done)
		x.destroy(id)
	})
	timer := time.NewTimer(removeWait)
	defer timer.Stop()
	select {
	case <-done:
	case <-timer.C:
	}
}

// Close implements Executor.
func (x *ephemeral) Close(ctx context.Context) error {
	x.mu.Lock()
	x.closed = true
	x.mu.Unlock()
	x.end(errClosed)
	if err := wait(ctx, &x.calls); err != nil {
		return err
	}
	return wait(ctx, &x.work)
}
