package sandbox_test

import (
	"context"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"caisson/sandbox"
	"caisson/sandbox/sandboxtest"
)

// measured is an engine whose sessions may be watched.
type measured struct {
	*engine

	mu      sync.Mutex
	watched bool // what is made from now on
	takes   time.Duration
	over    []sandbox.Overfull
	err     error
	at      []time.Time // when it was asked
}

// set changes what the engine does.
func (e *measured) set(f func()) {
	e.mu.Lock()
	defer e.mu.Unlock()
	f()
}

// asked is when it was asked to measure.
func (e *measured) asked() []time.Time {
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.Clone(e.at)
}

func (e *measured) Create(ctx context.Context, id string, spec sandbox.Spec, p sandbox.Progress) (sandbox.Session, error) {
	s, err := e.engine.Create(ctx, id, spec, p)
	e.mu.Lock()
	defer e.mu.Unlock()
	if r, ok := s.(*room); ok && e.watched {
		r.info.Notes = []sandbox.Note{{Code: sandbox.NoteDiskWatched, Text: "x"}}
	}
	return s, err
}

func (e *measured) Overfull(ctx context.Context) ([]sandbox.Overfull, error) {
	e.mu.Lock()
	e.at = append(e.at, time.Now())
	takes := e.takes
	e.mu.Unlock()
	select {
	case <-time.After(takes):
		e.mu.Lock()
		defer e.mu.Unlock()
		return e.over, e.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func watching(t *testing.T, f func(t *testing.T, m *sandbox.Manager, e *measured)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		e := &measured{engine: &engine{Provider: sandboxtest.NewFake(), sessions: map[string]*room{}, fail: map[string]error{}}}
		m := sandbox.NewManager(sandbox.Options{
			Provider: e, Instance: "test", Grace: 2 * time.Minute, Policy: policy, Spools: pool(t, 1024, 0, 0), Log: slog.New(slog.DiscardHandler),
			Limits: sandbox.Limits{ReapInterval: 30 * time.Second, Retention: time.Hour, LostRetention: 24 * time.Hour, DefaultTimeout: 300 * time.Second},
		})
		defer func() {
			if err := m.Close(context.Background()); err != nil {
				t.Error(err)
			}
		}()
		f(t, m, e)
	})
}

func TestD32_OnlyWatchedSessionsMakeTheEngineMeasure(t *testing.T) {
	watching(t, func(t *testing.T, m *sandbox.Manager, e *measured) {
		create(t, m, sandbox.Spec{})
		<-time.After(20 * time.Second)
		if at := e.asked(); len(at) != 0 {
			t.Fatalf("measured %d times for a session that is not watched", len(at))
		}
		const takes = 4 * time.Second
		e.set(func() { e.watched, e.takes = true, takes })
		create(t, m, sandbox.Spec{})
		<-time.After(60 * time.Second)
		at := e.asked()
		if len(at) < 3 || len(at) > 6 {
			t.Fatalf("a measurement of 4 s was made %d times in 60 s", len(at))
		}
		for i := range at[1:] {
			if pause := at[i+1].Sub(at[i]); pause != 3*takes {
				t.Errorf("the next one after %v", pause)
			}
		}
	})
}

func TestD32_ASessionPastItsDiskIsLostWithTheReason(t *testing.T) {
	watching(t, func(t *testing.T, m *sandbox.Manager, e *measured) {
		e.set(func() { e.watched = true })
		full, other := create(t, m, sandbox.Spec{}), create(t, m, sandbox.Spec{})
		exec, err := m.StartExec(t.Context(), alice, full.ID, sandbox.ExecSpec{Argv: []string{"x"}})
		if err != nil {
			t.Fatal(err)
		}
		e.set(func() { e.err = sandbox.Errorf("measure", sandbox.KindUnavailable, "away") })
		<-time.After(10 * time.Second) // the engine's absence ends nothing
		if _, err := m.Session(alice, full.ID); err != nil {
			t.Fatal(err)
		}
		e.set(func() {
			e.err = nil
			e.over = []sandbox.Overfull{{ID: full.ID, Reason: "it passed its disk limit of 7 MB"}, {ID: sandbox.NewSessionID(), Reason: "somebody else's"}}
		})
		<-exec.Done()
		synctest.Wait()
		v := exec.View()
		if v.Status != sandbox.StatusLost || !slices.Contains(v.Notes, sandbox.Note{Code: "no_space", Text: "the session was ended: it passed its disk limit of 7 MB"}) {
			t.Errorf("%+v", v)
		}
		if _, err := m.Session(alice, full.ID); sandbox.KindOf(err) != sandbox.KindSessionLost || !strings.Contains(err.Error(), "no_space: it passed its disk limit of 7 MB") {
			t.Errorf("%v", err)
		}
		if _, err := m.Session(alice, other.ID); err != nil || e.count() != 1 {
			t.Errorf("the other one: %v; %d on the engine", err, e.count())
		}
	})
}
