package executor

import (
	"context"
	"encoding/json"
	"sync"
	"time"

	"caisson/sandbox"
)

// mostTries is how many containers a call may find gone before it gives up.
const mostTries = 3

// warm runs calls in one container, which is made with the first of them and
// removed when there was none for the idle time (TX-7, TX-8). Calls share what is
// in it (TX-10).
type warm struct {
	site
	life context.Context
	end  context.CancelCauseFunc
	work sync.WaitGroup // creates and removals

	mu     sync.Mutex
	box    *box // the container for the next call; nil: there is none yet
	closed bool
	repls  map[string]*box // where REPLs live, for mostREPLs of them
}

// box is one container of a warm executor. All but the channels is under warm.mu.
type box struct {
	made   chan struct{} // closed when id or err is there
	cancel context.CancelFunc
	id     string
	err    error
	calls  int           // that use it or wait for it
	gone   chan struct{} // closed when it is given up
	why    string        // and for what, as calls in flight are told
	idle   *time.Timer

	removed chan struct{} // closed once its removal is over, where it was given up after it had been made
}

func newWarm(p site) *warm {
	life, end := context.WithCancelCause(context.Background()) // the executor's own life, until Close
	return &warm{site: p, life: life, end: end, repls: map[string]*box{}}
}

// Execute implements Executor.
func (w *warm) Execute(ctx context.Context, e Envelope, watch Watch) Result {
	began := time.Now()
	limit := e.Timeout
	ctx, cancel := budget(ctx, e)
	defer cancel()
	more := map[string]string{"mode": string(Warm)}
	for try := 1; ; try++ {
		b, err := w.enter(ctx)
		if err != nil {
			return w.stamp(w.refused(ctx, limit, err), began, more)
		}
		r, again := w.call(ctx, b, e, limit, watch, more)
		w.leave(b)
		if !again || try == mostTries {
			return w.stamp(r, began, more)
		}
	}
}

// enter waits for a container and counts the call in, until leave.
func (w *warm) enter(ctx context.Context) (*box, error) {
	w.mu.Lock()
	if w.closed {
		w.mu.Unlock()
		return nil, closedError()
	}
	b := w.box
	if b == nil {
		b = w.begin()
	}
	b.calls++
	if b.idle != nil {
		b.idle.Stop()
	}
	w.mu.Unlock()
	select {
	case <-b.made:
	case <-ctx.Done():
		w.leave(b)
		return nil, context.Cause(ctx)
	}
	if b.err != nil {
		w.leave(b)
		return nil, b.err
	}
	return b, nil
}

func closedError() error {
	return sandbox.Errorf("run tool", sandbox.KindUnavailable, "the executor is closed")
}

// begin starts to make a container, for all calls that wait for it (POL-11). When
// the last of them has gone away it is given up. w.mu is held.
func (w *warm) begin() *box {
	ctx, cancel := context.WithCancel(w.life)
	b := &box{made: make(chan struct{}), gone: make(chan struct{}), removed: make(chan struct{}), cancel: cancel}
	w.box = b
	w.work.Go(func() {
		defer cancel()
		info, err := w.create(ctx, w.spec(w.instance.Options.IdleTTL))
		w.mu.Lock()
		defer w.mu.Unlock()
		b.id, b.err = info.ID, err
		close(b.made)
		switch {
		case err != nil && w.box == b:
			w.box = nil // the next call tries again
		case err == nil && (w.box != b || b.why != ""):
			w.work.Go(func() { w.destroy(b.id) }) // nobody waits for it any more
		case err == nil:
			w.log.Info("tool container made", "container", sandbox.ShortID(b.id), "image", w.instance.Options.Image)
		}
	})
	return b
}

// leave counts a call out. A container without calls begins to be idle.
func (w *warm) leave(b *box) {
	w.mu.Lock()
	defer w.mu.Unlock()
	b.calls--
	switch {
	case b.calls > 0 || w.box != b:
	case !isClosed(b.made):
		w.box = nil
		b.cancel()
	default:
		ttl := w.instance.Options.IdleTTL
		b.idle = time.AfterFunc(ttl, func() { w.retireIdle(b, "nobody had used it for "+seconds(ttl)+" s") })
	}
}

// retireIdle gives a container up that no call uses, and says whether it did.
func (w *warm) retireIdle(b *box, why string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.box != b || b == nil || b.calls > 0 || !isClosed(b.made) {
		return false
	}
	w.retireLocked(b, why)
	return true
}

// spare gives the container up now if no call uses it, to make room for others, and
// waits for its removal alone, or for ctx: the next container may be in the making.
func (w *warm) spare(ctx context.Context) bool {
	w.mu.Lock()
	b := w.box
	w.mu.Unlock()
	if b == nil || !w.retireIdle(b, "nobody used it, and another container needed its room") {
		return false
	}
	select {
	case <-b.removed:
		return true
	case <-ctx.Done():
		return false
	}
}

// retire gives a container up. Calls in flight in it are told why; the next call
// gets another.
func (w *warm) retire(b *box, why string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.retireLocked(b, why)
}

func (w *warm) retireLocked(b *box, why string) {
	if b.why != "" {
		return
	}
	b.why = why
	close(b.gone)
	if b.idle != nil {
		b.idle.Stop()
	}
	if w.box == b {
		w.box = nil
	}
	if !isClosed(b.made) {
		b.cancel() // who makes it removes it
		return
	}
	if b.err == nil {
		w.work.Go(func() {
			defer close(b.removed)
			w.destroy(b.id)
		})
	}
}

// destroy removes a container, on a clock of its own.
func (p *site) destroy(id string) {
	ctx, cancel := context.WithTimeout(context.Background(), cleanupLimit)
	defer cancel()
	if _, _, err := p.manager.Destroy(ctx, p.owner, id); err != nil {
		p.log.Warn("tool container not removed; it is when its idle time is over", "container", sandbox.ShortID(id), "error", err)
	}
}

// call runs a call in a container. again says that nothing ran, since the
// container had gone before.
func (w *warm) call(ctx context.Context, b *box, e Envelope, limit time.Duration, watch Watch, more map[string]string) (r Result, again bool) {
	more["container"] = sandbox.ShortID(b.id)
	e.Timeout = given(ctx, e)
	envelope, err := e.Encode()
	if err != nil {
		return w.refused(ctx, limit, err), false
	}
	exec, err := w.manager.StartExec(ctx, w.owner, b.id, w.command(ctx, envelope, "--envelope", "-", "--resident"))
	if err != nil {
		return w.notStarted(ctx, b, limit, err)
	}
	defer w.manager.Drop(exec)
	more["exec_id"] = sandbox.ShortID(exec.ID())
	o := newOutput(e, watch, &w.site, ctx.Done(), b.gone)
	defer o.close()
	follow(ctx, exec, o, b.gone)
	view := exec.View()
	if view.Status == sandbox.StatusTimedOut || view.Status == sandbox.StatusRunning && ctx.Err() != nil {
		return w.cut(ctx, b, exec, limit), false
	}
	r, found := w.result(o, view)
	switch {
	case found:
		w.settle(b, exec)
		r = w.sameREPL(b, e, r)
	case isClosed(b.gone):
		w.mu.Lock()
		defer w.mu.Unlock()
		r = failed("container_lost", "the tool's container was given up while the call ran: "+b.why+"; the call may have done a part of its work, and is not repeated")
	case view.Status == sandbox.StatusLost:
		r.Metadata = map[string]json.RawMessage{"failure": quoted("container_lost")}
		w.retire(b, "its container ended, or the connection to it broke")
	}
	return r, false
}

// notStarted says what becomes of a call whose worker could not be started.
func (w *warm) notStarted(ctx context.Context, b *box, limit time.Duration, err error) (Result, bool) {
	kind := sandbox.KindOf(err)
	switch {
	case kind == sandbox.KindSessionLost || kind == sandbox.KindSessionNotFound:
		w.log.Info("tool container was gone; the next one is made", "container", sandbox.ShortID(b.id))
		w.retire(b, "it was gone")
		return w.refused(ctx, limit, err), ctx.Err() == nil
	case ctx.Err() != nil && stoppedByBudget(ctx):
		w.retire(b, w.reset(limit))
	}
	return w.unstarted(ctx, limit, err), false
}

func (w *warm) reset(limit time.Duration) string {
	return "another call in it did not finish within " + seconds(limit) + " s, which resets the container"
}

// cut ends a call that has had its time, which resets the container (TX-9), or
// that its caller has given up, which does not.
func (w *warm) cut(ctx context.Context, b *box, exec *sandbox.Exec, limit time.Duration) Result {
	if ctx.Err() == nil || stoppedByBudget(ctx) {
		w.retire(b, w.reset(limit))
		return timedOut(limit, "; its container was reset")
	}
	r := stopped(ctx, limit, "; the call may have done a part of its work")
	if err := stopWorker(exec); err != nil {
		w.log.Warn("a cancelled tool call could not be stopped: its container is reset", "container", sandbox.ShortID(b.id), "error", err)
		w.retire(b, "another call in it could not be stopped")
	}
	return r
}

// stopWorker asks a worker to end, and waits for it. It alone finds the processes of its
// call that have left its group, and ends them before it ends: one that is killed would
// leave them running, with the call's environment. On a context of its own: the call's is
// over.
func stopWorker(exec *sandbox.Exec) error {
	ctx, cancel := context.WithTimeout(context.Background(), stopGrace)
	defer cancel()
	if _, err := exec.Kill(sandbox.SignalTerm); err != nil {
		return err
	}
	_, err := exec.Wait(ctx)
	return err
}

// settle ends what a call has left of its exec: a process that holds the output of
// a worker which has given its result. The worker has had lingerLimit to end all others.
func (w *warm) settle(b *box, exec *sandbox.Exec) {
	if isClosed(exec.Done()) || isClosed(b.gone) {
		return
	}
	if _, err := exec.Kill(sandbox.SignalKill); err != nil {
		w.log.Warn("what a tool call has left could not be stopped", "container", sandbox.ShortID(b.id), "error", err)
	}
}

// Close implements Executor.
func (w *warm) Close(ctx context.Context) error {
	w.mu.Lock()
	if !w.closed {
		w.closed = true
		w.end(errClosed)
		if w.box != nil {
			w.retireLocked(w.box, "the executor was closed")
		}
	}
	w.mu.Unlock()
	return wait(ctx, &w.work)
}
