package sandbox_test

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"caisson/sandbox"
	"caisson/sandbox/sandboxtest"
)

const grace = 20 * time.Second

// server is a manager of an instance on a fake engine, closed with the test.
func server(t *testing.T, f *sandboxtest.Fake, instance string, keep sandbox.Keep) *sandbox.Manager {
	t.Helper()
	m := sandbox.NewManager(sandbox.Options{
		Provider: f.Server(instance), Instance: instance, Grace: grace, Keep: keep, Policy: policy, Spools: pool(t, 1024, 0, 0),
		Limits: sandbox.Limits{ReapInterval: 5 * time.Second, Retention: time.Hour, LostRetention: time.Hour, DefaultTimeout: time.Minute},
		Log:    slog.New(slog.DiscardHandler),
	})
	t.Cleanup(func() { _ = m.Close(context.WithoutCancel(t.Context())) })
	return m
}

// dies ends a server as SIGKILL does, as far as the engine can tell: it keeps all that it
// has, and its lease runs out.
func dies(t *testing.T, f *sandboxtest.Fake, m *sandbox.Manager) {
	t.Helper()
	for _, op := range []string{sandboxtest.OpDestroy, sandboxtest.OpLease, sandboxtest.OpStop} {
		f.Fail(op, sandbox.Errorf("die", sandbox.KindUnavailable, "the server is dead"))
		defer f.Fail(op, nil)
	}
	_ = m.Close(t.Context())
}

func wantSessions(t *testing.T, f *sandboxtest.Fake, ids ...string) {
	t.Helper()
	slices.Sort(ids)
	if got := f.Sessions(); !slices.Equal(got, ids) {
		t.Errorf("%v on the engine, want %v", got, ids)
	}
}

func TestTTL08_ARestartedServerHasItsSessionsAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := sandboxtest.NewFake()
		a := server(t, f, "a", sandbox.KeepAll)
		s := create(t, a, sandbox.Spec{TTL: time.Minute, WorkspaceKey: "w", Durability: sandbox.Persistent, Env: map[string]sandbox.Secret{"K": sandbox.NewSecret("v")}})
		half := create(t, a, sandbox.Spec{TTL: time.Minute})
		<-time.After(50 * time.Second)
		dies(t, f, a)
		f.SetState(half.ID, sandbox.StateCreating, time.Now())
		b := server(t, f, "a", sandbox.KeepNothing)
		if err := b.Recover(t.Context()); err != nil {
			t.Fatal(err)
		}
		wantSessions(t, f, s.ID)
		info, err := b.Session(alice, s.ID)
		if err != nil || time.Until(info.ExpiresAt) != time.Minute || len(info.Notes) != 1 || info.Notes[0].Code != "recovered" {
			t.Fatalf("%+v %v", info, err)
		}
		if _, err := b.Session(bob, s.ID); sandbox.KindOf(err) != sandbox.KindSessionNotFound {
			t.Errorf("another owner: %v", err)
		}
		// D10 compares with what the engine has.
		again, err := b.Create(t.Context(), sandbox.Spec{Owner: alice, WorkspaceKey: "w", Durability: sandbox.Persistent, Env: map[string]sandbox.Secret{"K": sandbox.NewSecret("v")}}, nil)
		if err != nil || again.ID != s.ID {
			t.Errorf("%v %v", again.ID, err)
		}
		_, err = b.Create(t.Context(), sandbox.Spec{Owner: alice, WorkspaceKey: "w", Durability: sandbox.Persistent}, nil)
		if sandbox.KindOf(err) != sandbox.KindWorkspaceInUse {
			t.Errorf("another env: %v", err)
		}
	})
}

func TestTTL08_BeforeTheEngineAnswersNothingIsSaidToBeUnknown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := sandboxtest.NewFake()
		a := server(t, f, "a", sandbox.KeepAll)
		s := create(t, a, sandbox.Spec{})
		dies(t, f, a)
		f.Fail(sandboxtest.OpList, sandbox.Errorf("list", sandbox.KindUnavailable, "down"))
		b := server(t, f, "a", sandbox.KeepNothing)
		if err := b.Recover(t.Context()); sandbox.KindOf(err) != sandbox.KindUnavailable {
			t.Fatal(err)
		}
		_, err := b.Session(alice, s.ID)
		_, execErr := b.Exec(alice, sandbox.NewExecID())
		_, _, destroyErr := b.Destroy(t.Context(), alice, s.ID)
		_, listErr := b.List(t.Context(), alice)
		_, execsErr := b.Execs(alice, "")
		for _, err := range []error{err, execErr, destroyErr, listErr, execsErr} {
			if sandbox.KindOf(err) != sandbox.KindUnavailable {
				t.Errorf("%v", err)
			}
		}
		f.Fail(sandboxtest.OpList, nil)
		<-time.After(10 * time.Second) // nobody asks again
		if _, err := b.Session(alice, s.ID); err != nil {
			t.Errorf("once the engine answers: %v", err)
		}
	})
}

// orphanBackend is a command of a dead server.
type orphanBackend struct{ stopped chan struct{} }

func (o orphanBackend) Stop(context.Context, sandbox.Signal) (sandbox.StopReport, error) {
	close(o.stopped)
	return sandbox.StopReport{Found: true, Status: code(137)}, nil
}
func (o orphanBackend) WriteStdin(context.Context, []byte) (int, error) { return 0, nil }
func (o orphanBackend) CloseStdin() error                               { return nil }
func (o orphanBackend) Close()                                          {}

func (o orphanBackend) running(context.Context) (bool, error) {
	select {
	case <-o.stopped:
		return false, nil
	default:
		return true, nil
	}
}

func TestTTL08_CommandsOfADeadServerAreLostAndEndInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := sandboxtest.NewFake()
		a := server(t, f, "a", sandbox.KeepAll)
		s := create(t, a, sandbox.Spec{TTL: 10 * time.Second})
		dies(t, f, a)
		due, killed := orphanBackend{make(chan struct{})}, orphanBackend{make(chan struct{})}
		first, second := sandbox.NewExecID(), sandbox.NewExecID()
		f.Abandon(
			s.ID,
			sandbox.Orphan{ExecID: first, Argv: []string{"sleep", "99"}, TimeoutAt: time.Now().Add(45 * time.Second), Backend: due, Running: due.running},
			sandbox.Orphan{ExecID: second, Backend: killed, Running: killed.running},
		)
		b := server(t, f, "a", sandbox.KeepNothing)
		if err := b.Recover(t.Context()); err != nil {
			t.Fatal(err)
		}
		e, err := b.Exec(alice, first)
		if err != nil {
			t.Fatal(err)
		}
		v := e.View()
		if v.Status != sandbox.StatusLost || v.LostReason != sandbox.LostServerRestarted || v.ExitCode != nil || v.Argv[1] != "99" {
			t.Errorf("%+v", v)
		}
		if e, err := b.Exec(alice, second); err != nil {
			t.Error(err)
		} else if ok, err := e.Kill(sandbox.SignalKill); !ok || err != nil {
			t.Errorf("kill: %v %v", ok, err)
		}
		<-time.After(40 * time.Second)
		if _, err := b.Session(alice, s.ID); err != nil {
			t.Fatalf("ended under a running command: %v", err)
		}
		<-time.After(10 * time.Second)
		select {
		case <-due.stopped:
		default:
			t.Fatal("not stopped when its timeout was due")
		}
		<-time.After(20 * time.Second)
		wantSessions(t, f)
	})
}

func TestAttackT63_AServerWhoseLeaseIsTakenEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := sandboxtest.NewFake()
		a := server(t, f, "a", sandbox.KeepNothing)
		s := create(t, a, sandbox.Spec{})
		b := server(t, f, "a", sandbox.KeepNothing)
		if err := b.Recover(t.Context()); err != nil {
			t.Fatal(err)
		}
		select {
		case <-a.Fenced():
		case <-time.After(grace):
			t.Fatal("not fenced")
		}
		_, err := a.Session(alice, s.ID)
		_, createErr := a.Create(t.Context(), sandbox.Spec{Owner: alice}, nil)
		_, _, destroyErr := a.Destroy(t.Context(), alice, s.ID)
		for _, err := range []error{err, createErr, destroyErr, a.DeleteWorkspace(t.Context(), alice, "w")} {
			if sandbox.KindOf(err) != sandbox.KindFenced {
				t.Errorf("%v", err)
			}
		}
		if err := a.Close(t.Context()); err != nil {
			t.Error(err)
		}
		wantSessions(t, f, s.ID) // it is the other's now
		if _, err := b.Session(alice, s.ID); err != nil {
			t.Error(err)
		}
	})
}

func TestTTL09_BugLC05_AnotherServersSessionsAreLeftAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := sandboxtest.NewFake()
		a, b := server(t, f, "a", sandbox.KeepNothing), server(t, f, "b", sandbox.KeepNothing)
		theirs := create(t, a, sandbox.Spec{TTL: time.Hour})
		short := create(t, a, sandbox.Spec{TTL: 2 * time.Minute})
		ours := create(t, b, sandbox.Spec{TTL: time.Hour})
		<-time.After(90 * time.Second)
		wantSessions(t, f, theirs.ID, short.ID, ours.ID)
		if list, err := b.List(t.Context(), alice); err != nil || len(list) != 1 {
			t.Errorf("%v %v", list, err)
		}
		dies(t, f, a)
		<-time.After(grace + time.Minute)
		wantSessions(t, f, theirs.ID, short.ID, ours.ID) // dead, and its time to live is not over
		<-time.After(time.Minute)
		wantSessions(t, f, theirs.ID, ours.ID)
		b.Touch(alice, ours.ID)
		<-time.After(59 * time.Minute)
		wantSessions(t, f, ours.ID)
		if leases, _, err := f.Leases(t.Context()); err != nil || len(leases) != 1 {
			t.Errorf("leases %v %v", leases, err)
		}
	})
}

func TestAttackT72_ClocksThatDifferEndNothingEarly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := sandboxtest.NewFake()
		for _, skew := range []time.Duration{-10 * time.Minute, 10 * time.Minute, 24 * time.Hour} {
			f.Skew(skew)
			a, b := server(t, f, "a", sandbox.KeepNothing), server(t, f, "b", sandbox.KeepNothing)
			s, other := create(t, a, sandbox.Spec{TTL: 2 * time.Minute}), create(t, b, sandbox.Spec{TTL: time.Hour})
			<-time.After(110 * time.Second)
			wantSessions(t, f, s.ID, other.ID)
			<-time.After(20 * time.Second)
			wantSessions(t, f, other.ID)
			for _, m := range []*sandbox.Manager{a, b} {
				if err := m.Close(t.Context()); err != nil {
					t.Error(err)
				}
			}
		}
	})
}

func TestDUR09_AWorkspaceOfADeadServerIsTakenOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := sandboxtest.NewFake()
		a, b := server(t, f, "a", sandbox.KeepNothing), server(t, f, "b", sandbox.KeepNothing)
		spec := sandbox.Spec{Owner: alice, WorkspaceKey: "w", Durability: sandbox.Persistent, TTL: time.Hour}
		held := create(t, a, spec)
		if _, err := b.Create(t.Context(), spec, nil); sandbox.KindOf(err) != sandbox.KindWorkspaceInUse {
			t.Fatalf("%v", err)
		}
		other := create(t, b, sandbox.Spec{Owner: bob, WorkspaceKey: "w", Durability: sandbox.Persistent})
		wantSessions(t, f, held.ID, other.ID)
		dies(t, f, a)
		<-time.After(grace) // the lease has run out, and not for as long as the grace
		if _, err := b.Create(t.Context(), spec, nil); sandbox.KindOf(err) != sandbox.KindWorkspaceInUse {
			t.Fatalf("before its grace is over: %v", err)
		}
		<-time.After(2 * grace)
		ours := create(t, b, spec)
		wantSessions(t, f, ours.ID, other.ID)
	})
}

func TestAttackT60_WhatNobodyKnowsOfIsRemovedAfterAGrace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := sandboxtest.NewFake()
		a := server(t, f, "a", sandbox.KeepNothing)
		mine := create(t, a, sandbox.Spec{TTL: time.Hour})
		unheard := sandbox.NewSessionID() // the engine made it, and its answer was lost
		if _, err := f.Server("a").Create(t.Context(), unheard, sandbox.Spec{Owner: alice, TTL: time.Hour}, nil); err != nil {
			t.Fatal(err)
		}
		<-time.After(time.Minute)
		wantSessions(t, f, mine.ID, unheard)
		<-time.After(90 * time.Second)
		wantSessions(t, f, mine.ID)
	})
}

func TestTTL03_DUR04_TheSweepKeepsPersistentWorkspaces(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := sandboxtest.NewFake()
		m := server(t, f, "a", sandbox.KeepNothing)
		spec := sandbox.Spec{Owner: alice, WorkspaceKey: "w", Durability: sandbox.Persistent, TTL: 10 * time.Second}
		s := create(t, m, spec)
		session, release, err := m.Acquire(alice, s.ID)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := session.WriteFiles(t.Context(), []sandbox.FileWrite{{Path: "f", Content: []byte("kept")}}); err != nil {
			t.Fatal(err)
		}
		release()
		<-time.After(20 * time.Second)
		wantSessions(t, f)
		session, release, err = m.Acquire(alice, create(t, m, spec).ID)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := session.ReadFile(t.Context(), sandbox.FileRead{Path: "f", Limit: 100}); err != nil || string(got.Content) != "kept" {
			t.Errorf("%q %v", got.Content, err)
		}
		release()
		if _, _, err := m.Destroy(t.Context(), alice, create(t, m, spec).ID); err != nil {
			t.Fatal(err)
		}
		if all, err := m.Workspaces(t.Context(), alice); err != nil || len(all) != 1 {
			t.Fatalf("after a destroy: %v %v", all, err)
		}
		if err := m.DeleteWorkspace(t.Context(), alice, "w"); err != nil {
			t.Error(err)
		}
		if all, err := m.Workspaces(t.Context(), alice); err != nil || len(all) != 0 {
			t.Errorf("after its removal: %v %v", all, err)
		}
	})
}

func TestTTL07_AttackT69_UsedAtTheLastMomentIsNeverRemoved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := sandboxtest.NewFake()
		m := server(t, f, "a", sandbox.KeepNothing)
		var all sync.WaitGroup
		for i := range 200 {
			ttl := 10*time.Second + time.Duration(i)*250*time.Millisecond
			s := create(t, m, sandbox.Spec{TTL: ttl, Owner: sandbox.Owner{Name: fmt.Sprint(i)}})
			all.Go(func() {
				owner := sandbox.Owner{Name: fmt.Sprint(i)}
				for range 5 {
					<-time.After(ttl - time.Duration(i)) // as it expires, or just before
					if _, err := m.Extend(owner, s.ID, 0, nil); err != nil {
						t.Errorf("ttl %v: %v", ttl, err)
						return
					}
				}
				used := time.Now()
				for {
					<-time.After(time.Second)
					if _, err := m.Session(owner, s.ID); err != nil {
						break
					}
				}
				// A sweep each 5 s, and one look a second.
				if idle := time.Since(used); idle < ttl || idle > ttl+7*time.Second {
					t.Errorf("ttl %v: gone after %v of idleness", ttl, idle)
				}
			})
		}
		all.Wait()
		wantSessions(t, f)
	})
}

func TestTTL06_ASessionThatIsBeingEndedSaysWhy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := sandboxtest.NewFake()
		m := server(t, f, "a", sandbox.KeepNothing)
		idle, asked := create(t, m, sandbox.Spec{TTL: 10 * time.Second}), create(t, m, sandbox.Spec{TTL: time.Hour})
		release := f.Hold(sandboxtest.OpDestroy)
		<-time.After(20 * time.Second)
		if _, err := m.Session(alice, idle.ID); sandbox.KindOf(err) != sandbox.KindSessionLost {
			t.Errorf("%v", err)
		}
		destroyed := make(chan error, 1)
		go func() {
			_, _, err := m.Destroy(t.Context(), alice, asked.ID)
			destroyed <- err
		}()
		synctest.Wait()
		if _, err := m.Session(alice, asked.ID); sandbox.KindOf(err) != sandbox.KindSessionNotFound {
			t.Errorf("%v", err)
		}
		release()
		if err := <-destroyed; err != nil {
			t.Error(err)
		}
	})
}
