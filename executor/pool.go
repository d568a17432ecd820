package executor

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"reflect"
	"slices"
	"sync"

	"caisson/sandbox"
)

// pool makes executors when they are first needed, one for each declared executor
// and owner (POL-11, D26), and closes them. All methods may be called concurrently.
type pool struct {
	manager *sandbox.Manager
	log     *slog.Logger
	local   []string // argv of the worker on this host
	worker  []string // and in a container
	large   *largeResults
	work    sync.WaitGroup

	mu     sync.Mutex
	closed bool
	slots  map[slotKey]*slot
	left   map[*slot]bool // retired ones that calls still use
}

type slotKey struct {
	instance *Instance
	owner    sandbox.Owner
}

// slot is one executor in use.
type slot struct {
	Executor
	ceilings *sandbox.Ceilings
	calls    int // under pool.mu
}

// take returns the executor of an instance for an owner, made now if there is none
// yet; drop gives it back. It makes nothing on an engine.
func (p *pool) take(i *Instance, owner sandbox.Owner, ceilings *sandbox.Ceilings) (x Executor, drop func(), err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return nil, nil, closedError()
	}
	key := slotKey{i, owner}
	s := p.slots[key]
	if s != nil && !reflect.DeepEqual(s.ceilings, ceilings) {
		p.retire(key) // what it keeps was made under other bounds
		s = nil
	}
	if s == nil {
		x, err := p.build(i, owner, ceilings)
		if err != nil {
			return nil, nil, err
		}
		s = &slot{Executor: x, ceilings: ceilings}
		p.slots[key] = s
	}
	s.calls++
	return s.Executor, func() { p.drop(s) }, nil
}

func (p *pool) drop(s *slot) {
	p.mu.Lock()
	defer p.mu.Unlock()
	s.calls--
	if s.calls == 0 && p.left[s] {
		delete(p.left, s)
		p.endLater(s)
	}
}

// build makes an executor. One that this server does not build was refused before
// anybody came here; it is refused again, and never replaced by another (D9).
func (p *pool) build(i *Instance, owner sandbox.Owner, ceilings *sandbox.Ceilings) (Executor, error) {
	if i.Refusal != "" {
		return nil, sandbox.Errorf("run tool", sandbox.KindToolUnavailable, "its executor cannot be used: %s", i.Refusal)
	}
	at := site{
		manager: p.manager, instance: i, owner: owner, ceilings: ceilings, worker: p.worker, scrub: newScrubber(i.Options.Env), spare: p.spare, large: p.large,
		log: p.log.With("executor", i.label(), "owner", owner.Hash()),
	}
	switch {
	case i.Executor == Local && len(p.local) > 0:
		return newLocal(at, p.local), nil
	case i.Executor == Docker && i.Options.Mode == Warm:
		return newWarm(at), nil
	case i.Executor == Docker && i.Options.Mode == Ephemeral:
		return newEphemeral(at), nil
	default:
		return nil, sandbox.Errorf("run tool", sandbox.KindToolUnavailable, "the executor %s is not available in this server", i.label())
	}
}

// retire takes an executor out: no new call gets it, and it is closed once those in
// flight have ended. p.mu is held.
func (p *pool) retire(key slotKey) {
	s := p.slots[key]
	delete(p.slots, key)
	if s.calls > 0 {
		p.left[s] = true
		return
	}
	p.endLater(s)
}

// endLater closes one executor in the background; what fails is logged. p.mu is held,
// and the pool is not closed.
func (p *pool) endLater(s *slot) {
	p.work.Go(func() { _ = p.end(context.Background(), s) })
}

// end closes one executor, within bounds of its own.
func (p *pool) end(ctx context.Context, s *slot) (err error) {
	defer func() {
		if r := recover(); r != nil { // one that fails keeps no other open (POL-15)
			err = fmt.Errorf("an executor panicked: %v", r)
		}
		if err != nil {
			p.log.Warn("a tool executor was not closed", "error", err)
		}
	}()
	ctx, cancel := context.WithTimeout(ctx, cleanupLimit)
	defer cancel()
	return s.Close(ctx)
}

// move carries executors over to a new manifest: those whose declaration is the
// same stay, with what they keep; the others are retired.
func (p *pool) move(renewed map[*Instance]*Instance) {
	p.mu.Lock()
	defer p.mu.Unlock()
	old := p.slots
	p.slots = map[slotKey]*slot{}
	var gone []slotKey
	for key, s := range old {
		if i := renewed[key.instance]; i != nil {
			p.slots[slotKey{i, key.owner}] = s
		} else {
			p.slots[key] = s
			gone = append(gone, key)
		}
	}
	for _, key := range gone {
		p.retire(key)
	}
}

// renewed pairs the executors of two manifests that are declared in the same place
// and in the same way.
func renewed(old, next *Manifest) map[*Instance]*Instance {
	places := map[string]*Instance{}
	for _, u := range next.Uses() {
		places[u.What] = u.Instance
	}
	pairs := map[*Instance]*Instance{}
	for _, u := range old.Uses() {
		if i := places[u.What]; i != nil && sameInstance(u.Instance, i) {
			pairs[u.Instance] = i
		}
	}
	return pairs
}

func sameInstance(a, b *Instance) bool {
	return a.Name == b.Name && a.Executor == b.Executor && a.Refusal == b.Refusal && reflect.DeepEqual(a.Options, b.Options)
}

// spare removes a container that nobody uses of an owner that has as many as it
// may, and says whether there was one.
func (p *pool) spare(ctx context.Context, owner sandbox.Owner) bool {
	p.mu.Lock()
	var idle []*warm
	for key, s := range p.slots {
		if w, ok := s.Executor.(*warm); ok && key.owner == owner && s.calls == 0 {
			idle = append(idle, w)
		}
	}
	p.mu.Unlock()
	return slices.ContainsFunc(idle, func(w *warm) bool { return w.spare(ctx) })
}

// close closes all executors side by side, also when one fails (POL-15), and those
// that were retired and have calls in flight, and waits for them within ctx.
func (p *pool) close(ctx context.Context) error {
	p.mu.Lock()
	p.closed = true
	var all []*slot
	for key, s := range p.slots {
		all = append(all, s)
		delete(p.slots, key)
	}
	for s := range p.left {
		all = append(all, s)
		delete(p.left, s) // nobody adds to p.work from here on
	}
	p.mu.Unlock()
	errs := make([]error, len(all)+1)
	var group sync.WaitGroup
	for i, s := range all {
		group.Go(func() { errs[i] = p.end(ctx, s) })
	}
	group.Wait()
	errs[len(all)] = wait(ctx, &p.work)
	return errors.Join(errs...)
}
