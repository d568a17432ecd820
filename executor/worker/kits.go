package worker

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"

	"caisson/executor/wire"
)

// mostKits bounds how many servers of toolkits one host runs.
const mostKits = 32

// kits are the servers of toolkits that a host runs, one for each name and command.
// Its methods may run concurrently.
type kits struct {
	children *children
	log      *slog.Logger
	group    bool // servers get process groups of their own
	mu       sync.Mutex
	all      map[string]*kit
}

func newKits(c *children, group bool, log *slog.Logger) *kits {
	return &kits{children: c, log: log, group: group, all: map[string]*kit{}}
}

// kit is a toolkit whose server is started at its first call, and again after it has
// died.
type kit struct {
	name  string
	argv  []string
	turn  chan struct{} // holds one while somebody starts it
	inner *server
}

func (k *kits) find(name string, argv []string) (*kit, error) {
	key := string(quotedList(append([]string{name}, argv...)))
	k.mu.Lock()
	defer k.mu.Unlock()
	if kit, ok := k.all[key]; ok {
		return kit, nil
	}
	if len(k.all) >= mostKits {
		return nil, fmt.Errorf("this container runs the servers of %d toolkits already, which is the most", mostKits)
	}
	kit := &kit{name: name, argv: slices.Clone(argv), turn: make(chan struct{}, 1)}
	k.all[key] = kit
	return kit, nil
}

func quotedList(texts []string) json.RawMessage {
	out, _ := json.Marshal(texts) // strings always have a form
	return out
}

// server returns the kit's live server, started and initialised where there is none.
// ctx bounds the start.
func (k *kits) server(ctx context.Context, kit *kit, w watch) (*server, error) {
	select {
	case kit.turn <- struct{}{}:
		defer func() { <-kit.turn }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if kit.inner != nil && kit.inner.alive() {
		return kit.inner, nil
	}
	if kit.inner != nil {
		w.stderr(fmt.Sprintf("%s: its server had ended (%v) and is started again", kit.name, kit.inner.fault()))
		kit.inner.close(0)
		kit.inner = nil
	}
	s, err := startServer(k.children, kit, k.group)
	if err != nil {
		return nil, err
	}
	leave := s.follow(w)
	defer leave()
	if err := s.initialize(ctx); err != nil {
		s.close(0)
		return nil, err
	}
	kit.inner = s
	return s, nil
}

// close ends every server, all at the same time, at once where hurried.
func (k *kits) close(hurried bool) {
	grace := politeness
	if hurried {
		grace = 0
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	var all sync.WaitGroup
	for _, kit := range k.all {
		all.Go(func() {
			kit.turn <- struct{}{} // nobody starts it from now on
			if kit.inner != nil {
				kit.inner.close(grace)
			}
		})
	}
	all.Wait()
}

// flush gives what ended servers have written to their standard error since the last
// call has ended.
func (k *kits) flush(log func(string)) {
	for _, kit := range k.all {
		if kit.inner != nil {
			kit.inner.tellUnheard(log)
		}
	}
}

// toolkit calls a tool of a toolkit's server, or lists its tools.
func (h *host) toolkit(ctx context.Context, e wire.Envelope, w watch) (wire.Result, error) {
	name, err := part[string](e, "name")
	if err != nil {
		return wire.Result{}, err
	}
	argv, err := argvOf(e)
	if err != nil {
		return wire.Result{}, err
	}
	kit, err := h.kits.find(name, argv)
	if err != nil {
		return wire.Result{}, err
	}
	s, err := h.kits.server(ctx, kit, w)
	if err != nil {
		return wire.Result{}, err
	}
	leave := s.follow(w)
	defer leave()
	var r wire.Result
	if e.ToolPath == wire.ToolkitListPath {
		r, err = s.list(ctx)
	} else {
		r, err = s.call(ctx, e.Method, e.Arguments, w)
	}
	var refusal *refusal
	if errors.As(err, &refusal) {
		r, err = wire.Failure(wire.StatusError, refusal.Error()), nil
	}
	s.describe(&r)
	return r, err
}
