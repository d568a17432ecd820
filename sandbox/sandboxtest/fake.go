// Package sandboxtest is for tests of what stands on a sandbox.Provider.
package sandboxtest

import (
	"cmp"
	"context"
	"fmt"
	"io/fs"
	"log/slog"
	"slices"
	"sync"
	"time"

	"caisson/sandbox"
)

// Fake is a provider without an engine: sessions in a map, files in memory, and
// a handful of commands that are Go functions. What it hands out is real:
// sandbox.Exec with its states, timeouts and stops, and sandbox.Spool. It holds
// the promises of sandbox.Provider as far as they can be seen without a kernel,
// so that what stands above a provider can be tested without one.
//
// All methods may be called concurrently.
type Fake struct {
	*engine
	instance string
}

// engine is what all Fakes of one engine share.
type engine struct {
	log *slog.Logger

	mu         sync.Mutex
	leases     map[string]sandbox.Lease // by instance
	skew       time.Duration            // of the engine's clock
	sessions   map[string]*fakeSession
	workspaces map[workspaceName]*fakeWorkspace
	faults     map[string]error
	gates      map[string]chan struct{}
	guests     map[string]func(Command) int
}

type workspaceName struct {
	owner sandbox.Owner
	key   string
}

type fakeWorkspace struct {
	files   *fakeFiles
	created time.Time
}

// NewFake makes an engine without sessions, and the provider of the instance "test".
func NewFake() *Fake {
	return &Fake{instance: "test", engine: &engine{
		log: slog.New(slog.DiscardHandler), sessions: map[string]*fakeSession{}, leases: map[string]sandbox.Lease{},
		workspaces: map[workspaceName]*fakeWorkspace{}, faults: map[string]error{}, gates: map[string]chan struct{}{}, guests: map[string]func(Command) int{},
	}}
}

// Server is the provider of another instance on the same engine.
func (f *Fake) Server(instance string) *Fake { return &Fake{engine: f.engine, instance: instance} }

// The operations that Fail and Hold know.
const (
	OpCreate     = "create"
	OpOpen       = "open"
	OpList       = "list"
	OpDestroy    = "destroy"
	OpWorkspaces = "workspaces"
	OpDelete     = "delete workspace"
	OpPing       = "ping"
	OpStart      = "start"
	OpWrite      = "write"
	OpRead       = "read"
	OpReadDir    = "read directory"
	OpStop       = "stop"
	OpLease      = "lease" // all of sandbox.Leaser
)

// Fail makes an operation return err from now on, until it is called with nil.
func (f *Fake) Fail(op string, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.faults[op] = err
}

// Hold makes an operation wait, until the returned function is called or its
// context ends.
func (f *Fake) Hold(op string) (release func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	gate := make(chan struct{})
	f.gates[op] = gate
	return sync.OnceFunc(func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		delete(f.gates, op)
		close(gate)
	})
}

// Vanish takes a session's container away, as an engine's operator would.
func (f *Fake) Vanish(id string) {
	f.mu.Lock()
	s := f.sessions[id]
	delete(f.sessions, id)
	f.mu.Unlock()
	if s != nil {
		s.end()
	}
}

// Sessions lists the ids of the sessions there are, sorted.
func (f *Fake) Sessions() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	var ids []string
	for id := range f.sessions {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	return ids
}

// Running is how many commands run in all sessions.
func (f *Fake) Running() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	n := 0
	for _, s := range f.sessions {
		n += s.running()
	}
	return n
}

// pass stands at the beginning of every operation.
func (f *engine) pass(ctx context.Context, op string) error {
	f.mu.Lock()
	err, gate := f.faults[op], f.gates[op]
	f.mu.Unlock()
	if gate != nil {
		select {
		case <-gate:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	if err == nil {
		err = ctx.Err()
	}
	return err
}

// Create implements sandbox.Provider.
func (f *Fake) Create(ctx context.Context, id string, spec sandbox.Spec, progress sandbox.Progress) (sandbox.Session, error) {
	if progress != nil {
		progress(sandbox.Stage{Text: "making the container"})
	}
	if err := f.pass(ctx, OpCreate); err != nil {
		return nil, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	files := newFakeFiles()
	if spec.Durability == sandbox.Persistent {
		name := workspaceName{spec.Owner, spec.WorkspaceKey}
		if f.workspaces[name] == nil {
			f.workspaces[name] = &fakeWorkspace{files, time.Now()}
		}
		files = f.workspaces[name].files
	}
	if spec.Operator != nil {
		for _, file := range spec.Operator.Files {
			mode := fs.FileMode(cmp.Or(file.Mode, 0o600))
			if _, err := files.write([]sandbox.FileWrite{{Path: file.Path, Content: []byte(file.Content.Reveal()), Mode: &mode}}); err != nil {
				return nil, err
			}
		}
	}
	s := &fakeSession{fake: f.engine, spec: spec.WithoutFiles(), files: files, info: infoOf(id, f.instance, spec)}
	f.sessions[id] = s
	return s, nil
}

func infoOf(id, instance string, spec sandbox.Spec) sandbox.Info {
	info := sandbox.Info{
		ID: id, Instance: instance, OwnerHash: spec.Owner.Hash(), Image: spec.Image, ImageID: "sha256:" + fmt.Sprintf("%064d", len(spec.Image)),
		Network: spec.Network, Durability: spec.Durability, WorkspaceKey: spec.WorkspaceKey, WorkspacePath: workspacePath,
		Labels: spec.Labels, CreatedAt: time.Now(), TTL: spec.TTL, State: sandbox.StateRunning, Tools: spec.Owner.Tools,
	}
	for name := range spec.Env {
		info.EnvNames = append(info.EnvNames, name)
	}
	slices.Sort(info.EnvNames)
	if spec.CPU != nil {
		info.CPU = *spec.CPU
	}
	if memory := spec.Memory(); memory != nil {
		info.MemoryMB = (*memory-1)>>20 + 1
	}
	if spec.Pids != nil {
		info.Pids = *spec.Pids
	}
	return info
}

// Open implements sandbox.Provider.
func (f *Fake) Open(ctx context.Context, id string) (sandbox.Session, error) {
	if err := f.pass(ctx, OpOpen); err != nil {
		return nil, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if s, ok := f.sessions[id]; ok {
		return s, nil
	}
	return nil, sandbox.Errorf("open session", sandbox.KindSessionNotFound, "no such session")
}

// List implements sandbox.Provider.
func (f *Fake) List(ctx context.Context) ([]sandbox.Info, error) {
	if err := f.pass(ctx, OpList); err != nil {
		return nil, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	var all []sandbox.Info
	for _, s := range f.sessions {
		all = append(all, s.Info())
	}
	return all, nil
}

// Destroy implements sandbox.Provider.
func (f *Fake) Destroy(ctx context.Context, id string) (bool, error) {
	if err := f.pass(ctx, OpDestroy); err != nil {
		return false, err
	}
	f.mu.Lock()
	s := f.sessions[id]
	delete(f.sessions, id)
	f.mu.Unlock()
	if s == nil {
		return false, nil
	}
	s.end()
	return true, nil
}

// Workspaces implements sandbox.Provider.
func (f *Fake) Workspaces(ctx context.Context, owner sandbox.Owner) ([]sandbox.Workspace, error) {
	if err := f.pass(ctx, OpWorkspaces); err != nil {
		return nil, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	var all []sandbox.Workspace
	for name, w := range f.workspaces {
		if name.owner == owner {
			all = append(all, sandbox.Workspace{Key: name.key, CreatedAt: w.created, InUse: f.held(name)})
		}
	}
	return all, nil
}

// held says whether a session has the workspace; f.mu is held.
func (f *engine) held(name workspaceName) bool {
	for _, s := range f.sessions {
		if s.spec.Durability == sandbox.Persistent && (workspaceName{s.spec.Owner, s.spec.WorkspaceKey}) == name {
			return true
		}
	}
	return false
}

// DeleteWorkspace implements sandbox.Provider.
func (f *Fake) DeleteWorkspace(ctx context.Context, owner sandbox.Owner, key string) error {
	if err := f.pass(ctx, OpDelete); err != nil {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	name := workspaceName{owner, key}
	switch {
	case f.workspaces[name] == nil:
		return sandbox.Errorf("delete workspace", sandbox.KindWorkspaceNotFound, "no workspace %q", key)
	case f.held(name):
		return sandbox.Errorf("delete workspace", sandbox.KindWorkspaceInUse, "the workspace %q is in use", key)
	}
	delete(f.workspaces, name)
	return nil
}

// Ping implements sandbox.Provider.
func (f *Fake) Ping(ctx context.Context) error { return f.pass(ctx, OpPing) }

// Close implements sandbox.Provider.
func (f *Fake) Close() error { return nil }
