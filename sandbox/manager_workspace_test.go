package sandbox_test

import (
	"context"
	"fmt"
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

// keeping is a manager on p whose owners may have a number of workspaces.
func keeping(t *testing.T, p sandbox.Provider, most int) *sandbox.Manager {
	t.Helper()
	m := sandbox.NewManager(sandbox.Options{
		Provider: p, Instance: "test", Grace: grace, Policy: policy, Spools: pool(t, 1024, 0, 0),
		Limits: sandbox.Limits{ReapInterval: 30 * time.Second, Retention: time.Hour, LostRetention: time.Hour, WorkspacesPerOwner: most},
		Log:    slog.New(slog.DiscardHandler),
	})
	t.Cleanup(func() { _ = m.Close(context.WithoutCancel(t.Context())) })
	return m
}

// kept makes a session with a workspace and ends it.
func kept(t *testing.T, m *sandbox.Manager, s sandbox.Spec) {
	t.Helper()
	info := create(t, m, s)
	if _, _, err := m.Destroy(t.Context(), alice, info.ID); err != nil {
		t.Fatal(err)
	}
}

// full asks for one workspace more, which must be refused.
func full(t *testing.T, m *sandbox.Manager, s sandbox.Spec, most string) {
	t.Helper()
	if s.Owner.Name == "" {
		s.Owner = alice
	}
	_, err := m.Create(t.Context(), s, nil)
	var e *sandbox.Error
	if !asError(err, &e) || e.Kind != sandbox.KindLimit || e.Field != "workspace_key" || !strings.Contains(e.Text, "may have is "+most) || !strings.Contains(e.Text, "workspace_delete") {
		t.Errorf("%s: %v", s.WorkspaceKey, err)
	}
}

// TestAttackT55_WorkspacesOfAnOwnerAreBounded makes and ends sessions in a loop, and goes on
// after a restart of the server.
func TestAttackT55_WorkspacesOfAnOwnerAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := sandboxtest.NewFake()
		m := keeping(t, f, 3)
		for i := range 3 {
			kept(t, m, sandbox.Spec{WorkspaceKey: fmt.Sprint("k", i)})
		}
		full(t, m, sandbox.Spec{WorkspaceKey: "k3"}, "3")
		if n := len(f.Sessions()); n != 0 {
			t.Errorf("%d sessions after a refusal", n)
		}
		if err := m.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		m = keeping(t, f, 3)
		full(t, m, sandbox.Spec{WorkspaceKey: "k3"}, "3")
		// What is there can be used, what keeps nothing can be made, and nobody else is kept out.
		kept(t, m, sandbox.Spec{WorkspaceKey: "k1"})
		kept(t, m, sandbox.Spec{})
		create(t, m, sandbox.Spec{Owner: bob, WorkspaceKey: "k3"})
		full(t, m, bounded(sandbox.Ceilings{MaxWorkspaces: 1}, sandbox.Spec{Owner: bob, WorkspaceKey: "k4"}), "1")
		full(t, m, bounded(sandbox.Ceilings{MaxWorkspaces: 9}, sandbox.Spec{WorkspaceKey: "k3"}), "3")
		if err := m.DeleteWorkspace(t.Context(), alice, "k0"); err != nil {
			t.Fatal(err)
		}
		// A create that fails keeps no place.
		f.Fail(sandboxtest.OpCreate, sandbox.Errorf("create", sandbox.KindUnavailable, "no"))
		if _, err := m.Create(t.Context(), sandbox.Spec{Owner: alice, WorkspaceKey: "k3"}, nil); sandbox.KindOf(err) != sandbox.KindUnavailable {
			t.Error(err)
		}
		f.Fail(sandboxtest.OpCreate, nil)
		kept(t, m, sandbox.Spec{WorkspaceKey: "k4"})
		full(t, m, sandbox.Spec{WorkspaceKey: "k5"}, "3")
	})
}

func TestAttackT55_TheBoundOfWorkspacesIsExactUnderARush(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := sandboxtest.NewFake()
		m := keeping(t, f, 10)
		kept(t, m, sandbox.Spec{WorkspaceKey: "old"})
		answer, release := f.Hold(sandboxtest.OpWorkspaces), f.Hold(sandboxtest.OpCreate)
		var made atomic.Int64
		var all sync.WaitGroup
		for i := range 50 {
			all.Go(func() {
				_, err := m.Create(t.Context(), sandbox.Spec{Owner: alice, WorkspaceKey: fmt.Sprint("k", i)}, nil)
				switch {
				case err == nil:
					made.Add(1)
				case sandbox.KindOf(err) != sandbox.KindLimit:
					t.Error(err)
				}
			})
		}
		synctest.Wait()
		answer() // whoever counts at the same time as others counts none of them
		synctest.Wait()
		release()
		all.Wait()
		if left, err := m.Workspaces(t.Context(), alice); made.Load() != 9 || len(left) != 10 || err != nil {
			t.Errorf("%d made, %d workspaces, %v", made.Load(), len(left), err)
		}
	})
}

// late is an engine whose list of workspaces is old when it arrives.
type late struct {
	*sandboxtest.Fake
	gate chan struct{} // nil: it is not
}

func (l *late) Workspaces(ctx context.Context, owner sandbox.Owner) ([]sandbox.Workspace, error) {
	all, err := l.Fake.Workspaces(ctx, owner)
	if l.gate != nil {
		<-l.gate
	}
	return all, err
}

func TestAttackT55_AWorkspaceThatIsMadeWhileTheEngineAnswersCounts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &late{Fake: sandboxtest.NewFake()}
		m := keeping(t, l, 1)
		release := l.Hold(sandboxtest.OpCreate)
		results := make(chan error, 2)
		ask := func(key string) {
			_, err := m.Create(t.Context(), sandbox.Spec{Owner: alice, WorkspaceKey: key}, nil)
			results <- err
		}
		go ask("first")
		synctest.Wait() // it has its place, and is being made
		l.gate = make(chan struct{})
		go ask("second")
		synctest.Wait()
		release()
		if err := <-results; err != nil {
			t.Fatal(err)
		}
		close(l.gate)
		if err := <-results; sandbox.KindOf(err) != sandbox.KindLimit {
			t.Error(err)
		}
	})
}

// TestAWaitForTheCountEndsWithItsCall cancels a create that waits for another's count.
func TestAWaitForTheCountEndsWithItsCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := sandboxtest.NewFake()
		m := keeping(t, f, 5)
		release := f.Hold(sandboxtest.OpWorkspaces)
		results := make(chan error, 1)
		go func() {
			_, err := m.Create(t.Context(), sandbox.Spec{Owner: alice, WorkspaceKey: "a"}, nil)
			results <- err
		}()
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := m.Create(ctx, sandbox.Spec{Owner: alice, WorkspaceKey: "b"}, nil); sandbox.KindOf(err) != sandbox.KindCancelled {
			t.Error(err)
		}
		release()
		if err := <-results; err != nil {
			t.Error(err)
		}
		create(t, m, sandbox.Spec{WorkspaceKey: "c"})
	})
}
