package sandbox_test

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"caisson/sandbox"
	"caisson/sandbox/sandboxtest"
)

func wantStopped(t *testing.T, err error) {
	t.Helper()
	if sandbox.KindOf(err) != sandbox.KindUnavailable || !errors.Is(err, sandbox.ErrHalted) || !strings.Contains(err.Error(), "stopped by the operator") {
		t.Errorf("after a halt: %v", err)
	}
}

func TestAttackT57_HaltEndsEverySessionAndTakesNoMore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := sandboxtest.NewFake()
		other := create(t, server(t, f, "other", sandbox.KeepAll), sandbox.Spec{})
		m := server(t, f, "a", sandbox.KeepAll)
		var last sandbox.Info
		for range 40 {
			last = create(t, m, sandbox.Spec{})
		}
		for range 9 {
			create(t, m, sandbox.Spec{Owner: sandbox.Owner{Name: "bob", Principal: true, Tools: true}})
		}
		create(t, m, sandbox.Spec{WorkspaceKey: "w"})
		exec, err := m.StartExec(t.Context(), alice, last.ID, sandbox.ExecSpec{Argv: []string{"sleep", "1000"}})
		if err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		ended, err := m.Halt(t.Context())
		if ended != 50 || err != nil || time.Since(began) > sandbox.HaltLimit {
			t.Errorf("%d ended in %v, %v", ended, time.Since(began), err)
		}
		wantSessions(t, f, other.ID)
		if v, _ := exec.Wait(t.Context()); v.Status != sandbox.StatusLost {
			t.Errorf("%+v", v)
		}
		_, err = m.Create(t.Context(), sandbox.Spec{Owner: alice}, nil)
		wantStopped(t, err)
		_, err = m.StartExec(t.Context(), alice, last.ID, sandbox.ExecSpec{Argv: []string{"true"}})
		wantStopped(t, err)
		wantStopped(t, m.Ready(t.Context()))
		if _, err := m.Session(alice, last.ID); sandbox.KindOf(err) != sandbox.KindSessionLost || !strings.Contains(err.Error(), "operator") {
			t.Errorf("%v", err)
		}
		if ended, err := m.Halt(t.Context()); ended != 0 || err != nil {
			t.Errorf("a second time: %d, %v", ended, err)
		}
		if w, err := m.Workspaces(t.Context(), alice); err != nil || len(w) != 1 {
			t.Errorf("workspaces %v, %v", w, err)
		}
	})
}

// TestAttackT57_ASlowEngine holds the destroys past the halt's time: it says what may be
// left, refuses meanwhile, and the rest goes when the engine answers.
func TestAttackT57_ASlowEngine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := sandboxtest.NewFake()
		m := server(t, f, "a", sandbox.KeepAll)
		for range 5 {
			create(t, m, sandbox.Spec{})
		}
		release := f.Hold(sandboxtest.OpDestroy)
		var halted sync.WaitGroup
		began := time.Now()
		halted.Go(func() {
			ended, err := m.Halt(t.Context())
			if ended != 0 || sandbox.KindOf(err) != sandbox.KindUnknownOutcome || strings.Count(err.Error(), "sbx_") != 5 || time.Since(began) != sandbox.HaltLimit {
				t.Errorf("%d in %v, %v", ended, time.Since(began), err)
			}
		})
		synctest.Wait()
		_, err := m.Create(t.Context(), sandbox.Spec{Owner: alice}, nil)
		wantStopped(t, err)
		halted.Wait()
		release()
		synctest.Wait()
		wantSessions(t, f)
	})
}

// TestAttackT57_WhatFailsIsTriedAgain fails the destroys for longer than the halt: a later
// sweep ends the sessions, idle or not.
func TestAttackT57_WhatFailsIsTriedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := sandboxtest.NewFake()
		m := server(t, f, "a", sandbox.KeepAll)
		create(t, m, sandbox.Spec{})
		f.Fail(sandboxtest.OpDestroy, sandbox.Errorf("x", sandbox.KindUnavailable, "no"))
		time.AfterFunc(time.Second, func() { f.Fail(sandboxtest.OpDestroy, nil) })
		if ended, err := m.Halt(t.Context()); ended != 1 || err != nil {
			t.Errorf("within its time: %d, %v", ended, err)
		}
		m = server(t, f, "b", sandbox.KeepAll)
		create(t, m, sandbox.Spec{})
		f.Fail(sandboxtest.OpDestroy, sandbox.Errorf("x", sandbox.KindUnavailable, "no"))
		if ended, err := m.Halt(t.Context()); ended != 0 || err == nil {
			t.Errorf("%d, %v", ended, err)
		}
		synctest.Wait() // the last try has failed
		wantSessions(t, f, f.Sessions()[0])
		f.Fail(sandboxtest.OpDestroy, nil)
		<-time.After(6 * time.Second)
		synctest.Wait()
		wantSessions(t, f)
	})
}

// TestAttackT57_CreatesUnderWayAreCutOff halts while the engine makes a session, and where
// the engine has sessions that no books have.
func TestAttackT57_CreatesUnderWayAndStrays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := sandboxtest.NewFake()
		a := server(t, f, "a", sandbox.KeepAll)
		create(t, a, sandbox.Spec{})
		dies(t, f, a)
		m := server(t, f, "a", sandbox.KeepAll)
		f.Fail(sandboxtest.OpLease, sandbox.Errorf("x", sandbox.KindUnavailable, "no lease"))
		if ended, err := m.Halt(t.Context()); ended != 1 || err != nil {
			t.Errorf("before the recovery: %d, %v", ended, err)
		}
		f.Fail(sandboxtest.OpLease, nil)

		m = server(t, f, "c", sandbox.KeepAll)
		release := f.Hold(sandboxtest.OpCreate)
		defer release()
		var made sync.WaitGroup
		made.Go(func() {
			_, err := m.Create(context.WithoutCancel(t.Context()), sandbox.Spec{Owner: alice}, nil)
			wantStopped(t, err)
		})
		synctest.Wait()
		if ended, err := m.Halt(t.Context()); ended != 0 || err != nil {
			t.Errorf("a create under way: %d, %v", ended, err)
		}
		made.Wait()
		wantSessions(t, f)
	})
}

// killer is a fake that can kill, too.
type killer struct {
	*sandboxtest.Fake
	killed atomic.Int64
}

func (k *killer) Kill(context.Context, string) error {
	k.killed.Add(1)
	return nil
}

// TestAttackT57_WhatIsKilledHasEnded holds the removals: all sessions are dead in time, and
// that is what is told.
func TestAttackT57_WhatIsKilledHasEnded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := &killer{Fake: sandboxtest.NewFake()}
		m := sandbox.NewManager(sandbox.Options{
			Provider: k, Instance: "test", Grace: grace, Policy: policy, Spools: pool(t, 1024, 0, 0),
			Limits: sandbox.Limits{ReapInterval: 5 * time.Second, LostRetention: time.Hour}, Log: slog.New(slog.DiscardHandler),
		})
		for range 3 {
			create(t, m, sandbox.Spec{})
		}
		release := k.Hold(sandboxtest.OpDestroy)
		if ended, err := m.Halt(t.Context()); ended != 3 || err != nil || k.killed.Load() != 3 {
			t.Errorf("%d ended, %d killed, %v", ended, k.killed.Load(), err)
		}
		release()
		if err := m.Close(t.Context()); err != nil {
			t.Error(err)
		}
		wantSessions(t, k.Fake)
	})
}
