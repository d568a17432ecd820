package sandbox_test

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"caisson/sandbox"
	"caisson/sandbox/sandboxtest"
)

func asError(err error, e **sandbox.Error) bool { return errors.As(err, e) }

// engine is a provider that keeps sessions in a map; its commands run until
// they are stopped. Leases are the fake's that it embeds.
type engine struct {
	sandbox.Provider
	mu       sync.Mutex
	sessions map[string]*room
	fail     map[string]error // by method, or by session id for Destroy
	block    chan struct{}    // Create waits for it
}

type room struct {
	sandbox.Session
	engine *engine
	info   sandbox.Info
	last   *backend
}

func (e *engine) Create(ctx context.Context, id string, spec sandbox.Spec, _ sandbox.Progress) (sandbox.Session, error) {
	if e.block != nil {
		select {
		case <-e.block:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if err := e.fail["create"]; err != nil {
		return nil, err
	}
	r := &room{engine: e, info: sandbox.Info{ID: id, Image: spec.Image, Durability: spec.Durability, WorkspaceKey: spec.WorkspaceKey, CreatedAt: time.Now(), TTL: spec.TTL, State: sandbox.StateRunning}}
	e.sessions[id] = r
	return r, nil
}

func (e *engine) Open(_ context.Context, id string) (sandbox.Session, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if r, ok := e.sessions[id]; ok {
		return r, nil
	}
	return nil, sandbox.Errorf("open", sandbox.KindSessionNotFound, "none")
}

func (e *engine) List(context.Context) ([]sandbox.Info, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if err := e.fail["list"]; err != nil {
		return nil, err
	}
	var all []sandbox.Info
	for _, r := range e.sessions {
		all = append(all, r.info)
	}
	return all, nil
}

func (e *engine) Destroy(_ context.Context, id string) (bool, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if err := e.fail[id]; err != nil {
		return false, err
	}
	_, ok := e.sessions[id]
	delete(e.sessions, id)
	return ok, nil
}

func (e *engine) count() int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return len(e.sessions)
}

func (r *room) Info() sandbox.Info { return r.info }

func (r *room) Start(_ context.Context, spec sandbox.ExecSpec, spool *sandbox.Spool) (*sandbox.Exec, error) {
	r.engine.mu.Lock()
	_, there := r.engine.sessions[r.info.ID]
	refusal := r.engine.fail["start"]
	r.engine.mu.Unlock()
	if refusal != nil {
		return nil, refusal
	}
	if !there {
		return nil, sandbox.Errorf("start", sandbox.KindSessionLost, "gone")
	}
	b := &backend{report: sandbox.StopReport{Found: true, Status: code(137)}, ends: &sandbox.StreamEnd{Code: code(137), Complete: true}}
	b.exec = sandbox.NewExec(r.info.ID, spec, spool, slog.New(slog.DiscardHandler))
	b.exec.Attach(b)
	r.last = b
	return b.exec, nil
}

// managed runs f with a manager on an engine, in fake time, and closes it.
func managed(t *testing.T, limits sandbox.Limits, f func(t *testing.T, m *sandbox.Manager, e *engine)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		e := &engine{Provider: sandboxtest.NewFake(), sessions: map[string]*room{}, fail: map[string]error{}}
		if limits.ReapInterval == 0 {
			limits.ReapInterval = 30 * time.Second
		}
		limits.Retention, limits.LostRetention, limits.DefaultTimeout = time.Hour, 24*time.Hour, 300*time.Second
		m := sandbox.NewManager(sandbox.Options{Provider: e, Instance: "test", Grace: 2 * time.Minute, Policy: policy, Spools: pool(t, 1024, 0, 0), Limits: limits, Log: slog.New(slog.DiscardHandler)})
		defer func() {
			if err := m.Close(context.Background()); err != nil {
				t.Error(err)
			}
			if e.count() != 0 {
				t.Errorf("%d sessions left after Close", e.count())
			}
		}()
		f(t, m, e)
	})
}

var (
	alice = sandbox.Owner{Name: "alice", Principal: true}
	bob   = sandbox.Owner{Name: "bob", Principal: true}
)

func create(t *testing.T, m *sandbox.Manager, s sandbox.Spec) sandbox.Info {
	t.Helper()
	if s.Owner.Name == "" {
		s.Owner = alice
	}
	info, err := m.Create(t.Context(), s, nil)
	if err != nil {
		t.Fatal(err)
	}
	return info
}

func TestTTL01_TTL02_TTL06_IdleSessionEndsAndSaysWhy(t *testing.T) {
	managed(t, sandbox.Limits{ReapInterval: time.Second}, func(t *testing.T, m *sandbox.Manager, e *engine) {
		s := create(t, m, sandbox.Spec{TTL: 10 * time.Second})
		<-time.After(8 * time.Second)
		if _, err := m.Extend(alice, s.ID, 0, nil); err != nil {
			t.Fatal(err)
		}
		<-time.After(8 * time.Second)
		if _, err := m.Session(alice, s.ID); err != nil {
			t.Fatalf("gone %v after it was renewed", err)
		}
		<-time.After(4 * time.Second)
		if _, err := m.Session(alice, s.ID); sandbox.KindOf(err) != sandbox.KindSessionLost {
			t.Fatalf("%v", err)
		}
		if e.count() != 0 {
			t.Fatal("still on the engine")
		}
		<-time.After(25 * time.Hour)
		if _, err := m.Session(alice, s.ID); sandbox.KindOf(err) != sandbox.KindSessionNotFound {
			t.Fatalf("after a day: %v", err)
		}
	})
}

func TestTTL04_OneFailingSessionDoesNotKeepTheOthers(t *testing.T) {
	managed(t, sandbox.Limits{ReapInterval: time.Hour}, func(t *testing.T, m *sandbox.Manager, e *engine) {
		stuck := create(t, m, sandbox.Spec{TTL: time.Second})
		create(t, m, sandbox.Spec{TTL: time.Second})
		e.fail[stuck.ID] = errors.New("no")
		<-time.After(2 * time.Second)
		if ended := m.Sweep(); len(ended) != 1 || e.count() != 1 {
			t.Fatalf("ended %v, %d left", ended, e.count())
		}
		delete(e.fail, stuck.ID)
		if ended := m.Sweep(); len(ended) != 1 {
			t.Fatalf("the stuck one was not tried again: %v", ended)
		}
	})
}

func TestBugLC04_D05_ExpiryNeverMovesEarlier(t *testing.T) {
	managed(t, sandbox.Limits{}, func(t *testing.T, m *sandbox.Manager, e *engine) {
		s := create(t, m, sandbox.Spec{TTL: 1800 * time.Second})
		last := s.ExpiresAt
		for _, step := range []func(){
			func() { _, _ = m.List(t.Context(), alice) },
			func() { _, _ = m.Extend(alice, s.ID, time.Second, nil) },
			func() {
				exec, err := m.StartExec(t.Context(), alice, s.ID, sandbox.ExecSpec{Argv: []string{"x"}})
				if err != nil {
					t.Fatal(err)
				}
				_, _ = exec.Kill(sandbox.SignalKill)
			},
			func() { m.Touch(alice, s.ID) },
		} {
			<-time.After(time.Second)
			step()
			synctest.Wait()
			info, err := m.Session(alice, s.ID)
			if err != nil || info.ExpiresAt.Before(last) {
				t.Fatalf("%v → %v, %v", last, info.ExpiresAt, err)
			}
			last = info.ExpiresAt
		}
	})
}

func TestAttackT47_ForeignHandleIsOneThatNeverWas(t *testing.T) {
	managed(t, sandbox.Limits{}, func(t *testing.T, m *sandbox.Manager, e *engine) {
		s := create(t, m, sandbox.Spec{})
		exec, err := m.StartExec(t.Context(), alice, s.ID, sandbox.ExecSpec{Argv: []string{"x"}})
		if err != nil {
			t.Fatal(err)
		}
		never := sandbox.NewSessionID()
		for name, ask := range map[string]func(id string) error{
			"session": func(id string) error { _, err := m.Session(bob, id); return err },
			"acquire": func(id string) error { _, _, err := m.Acquire(bob, id); return err },
			"extend":  func(id string) error { _, err := m.Extend(bob, id, 0, nil); return err },
			"exec": func(id string) error {
				_, err := m.StartExec(t.Context(), bob, id, sandbox.ExecSpec{Argv: []string{"x"}})
				return err
			},
		} {
			foreign, unknown := ask(s.ID), ask(never)
			if foreign == nil || foreign.Error() != unknown.Error() {
				t.Errorf("%s: foreign %v, unknown %v", name, foreign, unknown)
			}
		}
		if existed, _, err := m.Destroy(t.Context(), bob, s.ID); existed || err != nil || e.count() != 1 {
			t.Errorf("foreign destroy: %v, %v", existed, err)
		}
		if _, err := m.Exec(bob, exec.ID()); sandbox.KindOf(err) != sandbox.KindExecNotFound {
			t.Errorf("foreign exec: %v", err)
		}
		if got := len(listed(t, m, bob)) + len(execs(t, m, bob, s.ID)); got != 0 {
			t.Errorf("bob sees %d things of alice's", got)
		}
	})
}

func TestBugLC06_AttackT55_QuotaHoldsUnderConcurrentCreates(t *testing.T) {
	managed(t, sandbox.Limits{PerOwner: 10, Sessions: 15}, func(t *testing.T, m *sandbox.Manager, e *engine) {
		e.block = make(chan struct{})
		results := make(chan error, 50)
		for range 50 {
			go func() {
				_, err := m.Create(context.Background(), sandbox.Spec{Owner: alice}, nil)
				results <- err
			}()
		}
		synctest.Wait()
		close(e.block)
		ok := 0
		for range 50 {
			switch err := <-results; {
			case err == nil:
				ok++
			case sandbox.KindOf(err) != sandbox.KindLimit:
				t.Errorf("%v", err)
			}
		}
		if ok != 10 || e.count() != 10 {
			t.Fatalf("%d created, %d on the engine", ok, e.count())
		}
		for range 5 {
			create(t, m, sandbox.Spec{Owner: bob})
		}
		if _, err := m.Create(t.Context(), sandbox.Spec{Owner: bob}, nil); sandbox.KindOf(err) != sandbox.KindLimit {
			t.Fatalf("over all: %v", err)
		}
		if existed, _, err := m.Destroy(t.Context(), alice, listed(t, m, alice)[0].ID); !existed || err != nil {
			t.Fatal(existed, err)
		}
		create(t, m, sandbox.Spec{Owner: alice})
	})
}

func TestD10_LiveWorkspaceIsSharedOrRefused(t *testing.T) {
	managed(t, sandbox.Limits{}, func(t *testing.T, m *sandbox.Manager, e *engine) {
		first := create(t, m, sandbox.Spec{WorkspaceKey: "main"})
		if again := create(t, m, sandbox.Spec{WorkspaceKey: "main", TTL: time.Minute, Labels: map[string]string{"a": "b"}}); again.ID != first.ID {
			t.Errorf("a second session %s", again.ID)
		}
		_, err := m.Create(t.Context(), sandbox.Spec{Owner: alice, WorkspaceKey: "main", Network: sandbox.NetworkInternal}, nil)
		if sandbox.KindOf(err) != sandbox.KindWorkspaceInUse {
			t.Errorf("another network: %v", err)
		}
		if other := create(t, m, sandbox.Spec{Owner: bob, WorkspaceKey: "main"}); other.ID == first.ID {
			t.Error("bob got alice's session")
		}
		if err := m.DeleteWorkspace(t.Context(), alice, "main"); sandbox.KindOf(err) != sandbox.KindWorkspaceInUse {
			t.Errorf("delete while in use: %v", err)
		}
		if e.count() != 2 {
			t.Errorf("%d sessions", e.count())
		}
	})
}

// listed is what an owner sees while the engine answers.
func listed(t *testing.T, m *sandbox.Manager, owner sandbox.Owner) []sandbox.Info {
	t.Helper()
	list, err := m.List(t.Context(), owner)
	if err != nil {
		t.Error(err)
	}
	return list
}

func TestListWithoutEngineSaysSo(t *testing.T) {
	managed(t, sandbox.Limits{}, func(t *testing.T, m *sandbox.Manager, e *engine) {
		create(t, m, sandbox.Spec{})
		e.fail["list"] = errors.New("dead")
		list, err := m.List(t.Context(), alice)
		if err == nil || len(list) != 1 || len(list[0].Notes) != 1 || list[0].Notes[0].Code != "engine_unavailable" {
			t.Fatalf("%+v", list)
		}
		delete(e.fail, "list")
	})
}

func TestSES17_FailedCreateFreesItsPlace(t *testing.T) {
	managed(t, sandbox.Limits{PerOwner: 1}, func(t *testing.T, m *sandbox.Manager, e *engine) {
		e.fail["create"] = sandbox.Errorf("create", sandbox.KindCapacity, "full")
		if _, err := m.Create(t.Context(), sandbox.Spec{Owner: alice}, nil); sandbox.KindOf(err) != sandbox.KindCapacity {
			t.Fatal(err)
		}
		delete(e.fail, "create")
		create(t, m, sandbox.Spec{})
	})
}
