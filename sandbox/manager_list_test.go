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

// A session whose destruction failed is as it was, and so are its commands.
func TestAttackT65_ADestroyThatFailsLosesNoCommand(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := sandboxtest.NewFake()
		m := server(t, f, "a", sandbox.KeepNothing)
		s := create(t, m, sandbox.Spec{TTL: time.Hour})
		e, err := m.StartExec(t.Context(), alice, s.ID, sandbox.ExecSpec{Argv: []string{"sleep", "600"}})
		if err != nil {
			t.Fatal(err)
		}
		f.Fail(sandboxtest.OpDestroy, sandbox.Errorf("destroy", sandbox.KindUnavailable, "the link is cut"))
		if _, _, err := m.Destroy(t.Context(), alice, s.ID); sandbox.KindOf(err) != sandbox.KindUnavailable {
			t.Errorf("%v", err)
		}
		f.Fail(sandboxtest.OpDestroy, nil)
		if v := e.View(); v.Status != sandbox.StatusRunning {
			t.Errorf("%+v", v)
		}
		if killed, err := e.Kill(sandbox.SignalKill); !killed || err != nil {
			t.Errorf("%v %v", killed, err)
		}
	})
}

// What a session learns after its create is told too.
func TestAttackT61_NotesThatComeLaterAreShown(t *testing.T) {
	managed(t, sandbox.Limits{}, func(t *testing.T, m *sandbox.Manager, e *engine) {
		s := create(t, m, sandbox.Spec{})
		e.mu.Lock()
		e.sessions[s.ID].info.Notes = []sandbox.Note{{Code: "restarted"}}
		e.mu.Unlock()
		if info, err := m.Session(alice, s.ID); err != nil || len(info.Notes) != 1 || info.Notes[0].Code != "restarted" {
			t.Errorf("%+v %v", info, err)
		}
	})
}
