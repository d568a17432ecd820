package executor

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"sync"

	"caisson/sandbox"
)

// ToolboxOptions is what a Toolbox is made of. All but Local is required.
type ToolboxOptions struct {
	Manager  *sandbox.Manager
	Manifest *Manifest
	Owner    sandbox.Owner // who lists the tools of toolkits
	Log      *slog.Logger
	Local    []string // argv of the worker on this host; empty: there is no local executor

	worker []string // argv of the worker in a container; empty: the one that images have
}

// Toolbox is the tools of a manifest: what there are, and the calling of them, each
// where the execution policy says. A tool whose rule cannot be used runs nowhere
// (D9).
//
// All methods may be called concurrently.
type Toolbox struct {
	owner sandbox.Owner
	log   *slog.Logger
	pool  *pool

	life  context.Context
	end   context.CancelFunc
	lists sync.WaitGroup // one goroutine for each toolkit

	mu       sync.Mutex
	closed   bool
	manifest *Manifest
	kits     []*kit
	entries  map[string]*entry
	watchers []func()
}

// NewToolbox makes one, and begins to list the tools of its toolkits in the
// background. Close ends it.
func NewToolbox(o ToolboxOptions) *Toolbox {
	life, end := context.WithCancel(context.Background()) // the toolbox's own life, until Close
	t := &Toolbox{
		owner: o.Owner, log: o.Log, life: life, end: end,
		pool: &pool{manager: o.Manager, log: o.Log, local: o.Local, worker: o.worker, large: newLargeResults(), slots: map[slotKey]*slot{}, left: map[*slot]bool{}},
	}
	if len(t.pool.worker) == 0 {
		t.pool.worker = []string{"caisson-worker"}
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.load(o.Manifest)
	return t
}

// load puts a manifest in force and begins to list its toolkits. t.mu is held.
func (t *Toolbox) load(m *Manifest) {
	before := t.kits
	t.manifest, t.kits = m, nil
	for _, declared := range m.Toolkits {
		k := newKit(t.life, declared)
		if i := slices.IndexFunc(before, func(b *kit) bool { return b.same(declared) }); i >= 0 {
			k.tools = k.formed(before[i].tools) // until the new list is there
		}
		t.kits = append(t.kits, k)
	}
	for _, k := range before {
		k.end()
	}
	for _, k := range t.kits {
		t.lists.Go(func() { t.list(k) })
	}
	t.assemble()
}

// assemble makes the entries anew from the manifest and what toolkits have listed.
// t.mu is held.
func (t *Toolbox) assemble() {
	entries, taken := map[string]*entry{}, map[string]bool{}
	for _, e := range t.manifest.own() {
		entries[e.Name], taken[e.Name] = e, true
	}
	for _, k := range t.kits {
		for _, e := range k.entries(k.tools, taken) {
			if why := k.changed[e.method]; why != "" && e.Blocked == "" {
				e.Blocked = why
			}
			entries[e.Name] = e
		}
	}
	t.entries = entries
}

// Definitions returns the tools there are now, by name: those of toolkits as soon
// as they have been listed. A blocked one is among them.
func (t *Toolbox) Definitions() []Definition {
	t.mu.Lock()
	defer t.mu.Unlock()
	all := make([]Definition, 0, len(t.entries))
	for _, e := range t.entries {
		d := e.Definition
		d.InputSchema = slices.Clone(d.InputSchema)
		all = append(all, d)
	}
	slices.SortFunc(all, func(a, b Definition) int { return cmp.Compare(a.Name, b.Name) })
	return all
}

// Listed waits until every toolkit has been listed, or has failed once, or for ctx.
func (t *Toolbox) Listed(ctx context.Context) {
	for {
		k := t.untried()
		if k == nil {
			return
		}
		select {
		case <-k.tried:
		case <-k.life.Done(): // a reload has put others in its place, or the toolbox is closed
			if t.life.Err() != nil {
				return
			}
		case <-ctx.Done():
			return
		}
	}
}

// untried is a toolkit in force that has neither been listed nor failed yet, or nil.
func (t *Toolbox) untried() *kit {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, k := range t.kits {
		if !isClosed(k.tried) {
			return k
		}
	}
	return nil
}

// Listing says whether the list of a toolkit is not there yet and still asked for, so
// that Definitions may soon be others.
func (t *Toolbox) Listing() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.ContainsFunc(t.kits, func(k *kit) bool { return k.listing })
}

// OnChange has f called, from a goroutine of the toolbox's own, after Definitions
// has changed. f may call any method but Close.
func (t *Toolbox) OnChange(f func()) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.watchers = append(t.watchers, f)
}

// tell calls the watchers. t.mu is not held.
func (t *Toolbox) tell() {
	t.mu.Lock()
	watchers := slices.Clone(t.watchers)
	t.mu.Unlock()
	for _, f := range watchers {
		f()
	}
}

// Call runs a tool and waits for its result, or for ctx, which cancels it. The
// error is an *sandbox.Error and means that nothing ran: there is no such tool, the
// arguments do not fit it (KindInvalid, with the field), or the policy refuses it
// (KindToolUnavailable, with the rule and the reason). All else is told in the
// result. progress may be nil.
func (t *Toolbox) Call(ctx context.Context, c Caller, name string, arguments json.RawMessage, progress func(Progress)) (Result, error) {
	if len(arguments) == 0 || string(arguments) == "null" {
		arguments = json.RawMessage("{}")
	}
	r, e, err := t.resolve(c, name)
	if err != nil {
		return Result{}, err
	}
	if err := e.checker.check(arguments); err != nil {
		return Result{}, err
	}
	envelope, err := e.envelope(arguments, c.Client)
	if err != nil {
		return Result{}, sandbox.Errorf("run tool", sandbox.KindInternal, "").Because(err)
	}
	envelope.Permission, envelope.Timeout, envelope.Webhook = c.Permission, r.Timeout, r.Webhook
	owner := c.tools()
	log := t.log.With("tool", name, "rule", r.name())
	watch := Watch{Progress: progress, Stderr: func(line string) { log.Debug("tool's standard error", "line", line) }}
	result, err := t.execute(ctx, r.Rule.Instance, owner, c.Ceilings, envelope, watch)
	if err != nil {
		return Result{}, err
	}
	result.Metadata["rule"] = quoted(r.name())
	t.review(e, r, owner, c.Ceilings, word(result, "container"), string(result.Metadata["toolkit_list_changed"]) == "true")
	return result, nil
}

// execute runs an envelope on the executor of an instance for an owner.
func (t *Toolbox) execute(ctx context.Context, i *Instance, owner sandbox.Owner, ceilings *sandbox.Ceilings, e Envelope, w Watch) (Result, error) {
	x, drop, err := t.pool.take(i, owner, ceilings)
	if err != nil {
		return Result{}, err
	}
	defer drop()
	return x.Execute(ctx, e, w), nil
}

// resolve finds a tool and where it runs, or says why it does not.
func (t *Toolbox) resolve(c Caller, name string) (Resolution, *entry, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return Resolution{}, nil, sandbox.Errorf("run tool", sandbox.KindUnavailable, "the server is shutting down")
	}
	unavailable := func(format string, args ...any) (Resolution, *entry, error) {
		return Resolution{}, nil, sandbox.Errorf("run tool", sandbox.KindToolUnavailable, format, args...)
	}
	policy, err := t.manifest.Policy(c.Policy)
	if err != nil {
		return unavailable("%s", textOf(err))
	}
	e, ok := t.entries[name]
	if !ok {
		for _, k := range t.kits {
			if strings.HasPrefix(name, k.Prefix+"_") && k.tools == nil {
				return unavailable("%s", k.missing())
			}
		}
		return Resolution{}, nil, sandbox.Invalid("name", "there is no tool %s; %s", shown(name), meant(name, t.names()))
	}
	r := policy.Resolve(e.subject)
	changed := t.changedFor(e, slotKey{r.Rule.Instance, c.tools()})
	switch reason := r.Refusal(); {
	case e.Blocked != "":
		return unavailable("%s", e.Blocked)
	case reason != "":
		return unavailable("%s", reason)
	case changed != "":
		return unavailable("%s", changed)
	}
	return r, e, nil
}

// names are those of the tools there are; t.mu is held.
func (t *Toolbox) names() []string {
	var names []string
	for name := range t.entries {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// name is how a result and the log call what decided where a tool runs.
func (r Resolution) name() string {
	switch r.Reason {
	case Explicit:
		return "the tool's own executor"
	case NoRule:
		return "none"
	default:
		return r.Rule.Key
	}
}

// Reload puts another manifest in force. Executors whose declaration is the same
// stay, with what they keep; others are closed once their calls have ended. Toolkits
// are listed anew, and what they list now is what counts (T54).
func (t *Toolbox) Reload(m *Manifest) {
	t.mu.Lock()
	if t.closed {
		t.mu.Unlock()
		return
	}
	t.pool.move(renewed(t.manifest, m))
	t.load(m)
	t.mu.Unlock()
	t.tell()
}

// Close ends all calls and closes all executors, also when one fails (POL-15), and
// the named ones with them (D30). Closing again is harmless. ctx bounds the wait.
func (t *Toolbox) Close(ctx context.Context) error {
	t.mu.Lock()
	t.closed = true
	t.mu.Unlock()
	t.end()
	return errors.Join(t.pool.close(ctx), wait(ctx, &t.lists))
}
