package sandbox_test

import (
	"context"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"caisson/sandbox"
	"caisson/sandbox/sandboxtest"
)

// slowAnswer is an engine whose lists are on their way for a while.
type slowAnswer struct{ *sandboxtest.Fake }

func (s slowAnswer) List(ctx context.Context) ([]sandbox.Info, error) {
	all, err := s.Fake.List(ctx)
	<-time.After(10 * time.Second)
	return all, err
}

// A session that is made while a list is on its way is not in it, and not lost for it.
func TestBugLC06_ASessionMadeDuringAListIsNotLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := sandboxtest.NewFake()
		m := sandbox.NewManager(sandbox.Options{
			Provider: slowAnswer{f}, Instance: "test", Grace: grace, Policy: policy, Spools: pool(t, 1024, 0, 0),
			Limits: sandbox.Limits{ReapInterval: time.Hour}, Log: slog.New(slog.DiscardHandler),
		})
		create(t, m, sandbox.Spec{}) // the lease is there
		listed := make(chan error, 1)
		go func() {
			_, err := m.List(t.Context(), alice)
			listed <- err
		}()
		<-time.After(time.Second)
		s := create(t, m, sandbox.Spec{})
		if err := <-listed; err != nil {
			t.Fatal(err)
		}
		if _, err := m.Session(alice, s.ID); err != nil || len(f.Sessions()) != 2 {
			t.Errorf("%v %v", err, f.Sessions())
		}
		if err := m.Close(t.Context()); err != nil {
			t.Error(err)
		}
	})
}
