package sandbox_test

import (
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"caisson/sandbox"
	"caisson/sandbox/sandboxtest"
)

// TestAttackT55_QuotaOfAPrincipalIsExact creates 50 at once against a quota of 10, again
// after destroys, and after the server was killed.
func TestAttackT55_QuotaOfAPrincipalIsExact(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := sandboxtest.NewFake()
		m := server(t, f, "a", sandbox.KeepAll)
		rush := func(want int64) (ids []string) {
			t.Helper()
			release := f.Hold(sandboxtest.OpCreate)
			var made atomic.Int64
			var mu sync.Mutex
			var all sync.WaitGroup
			for range 50 {
				all.Go(func() {
					info, err := m.Create(t.Context(), bounded(sandbox.Ceilings{Sessions: 10}, sandbox.Spec{Owner: alice}), nil)
					switch {
					case err == nil:
						made.Add(1)
						mu.Lock()
						defer mu.Unlock()
						ids = append(ids, info.ID)
					case sandbox.KindOf(err) != sandbox.KindLimit || !strings.Contains(err.Error(), "10"):
						t.Error(err)
					}
				})
			}
			synctest.Wait()
			release()
			all.Wait()
			if made.Load() != want {
				t.Errorf("%d made, want %d", made.Load(), want)
			}
			return ids
		}
		ids := rush(10)
		create(t, m, bounded(sandbox.Ceilings{Sessions: 1}, sandbox.Spec{Owner: bob}))
		if _, _, err := m.Destroy(t.Context(), alice, ids[0]); err != nil {
			t.Fatal(err)
		}
		rush(1)
		dies(t, f, m)
		m = server(t, f, "a", sandbox.KeepAll)
		if err := m.Recover(t.Context()); err != nil {
			t.Fatal(err)
		}
		rush(0)
		if _, _, err := m.Destroy(t.Context(), alice, ids[1]); err != nil {
			t.Fatal(err)
		}
		rush(1)
	})
}

func TestAttackT55_TheServersQuotaStaysTheTighter(t *testing.T) {
	managed(t, sandbox.Limits{PerOwner: 2}, func(t *testing.T, m *sandbox.Manager, _ *engine) {
		for i := range 3 {
			_, err := m.Create(t.Context(), bounded(sandbox.Ceilings{Sessions: 10}, sandbox.Spec{Owner: alice}), nil)
			if (err == nil) != (i < 2) {
				t.Errorf("create %d: %v", i, err)
			}
		}
		// Tool containers are counted on their own, and by the server's bound.
		tools := sandbox.Owner{Name: alice.Name, Principal: true, Tools: true}
		for i := range 3 {
			_, err := m.Create(t.Context(), bounded(sandbox.Ceilings{Sessions: 1}, sandbox.Spec{Owner: tools}), nil)
			if (err == nil) != (i < 2) || err != nil && !strings.Contains(err.Error(), "tools") {
				t.Errorf("tools %d: %v", i, err)
			}
		}
		mine, err := m.List(t.Context(), alice)
		if err != nil || len(mine) != 2 {
			t.Errorf("%d sessions are listed, %v", len(mine), err)
		}
	})
}

func TestAttackT55_CFG14_AnExtensionKeepsToThePrincipalsCeiling(t *testing.T) {
	managed(t, sandbox.Limits{}, func(t *testing.T, m *sandbox.Manager, _ *engine) {
		s := create(t, m, sandbox.Spec{TTL: time.Minute})
		bounds := &sandbox.Ceilings{MaxTTL: time.Hour}
		if _, err := m.Extend(alice, s.ID, 2*time.Hour, bounds); sandbox.KindOf(err) != sandbox.KindRejected || !strings.Contains(err.Error(), "you may have is 3600") {
			t.Error(err)
		}
		if info, err := m.Extend(alice, s.ID, time.Hour, bounds); err != nil || info.TTL != time.Hour {
			t.Errorf("%v, %v", info.TTL, err)
		}
	})
}

// TestTX08_ContainersOfToolsOutliveNoServer closes a server that keeps all, and kills one.
func TestTX08_ContainersOfToolsOutliveNoServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := sandboxtest.NewFake()
		tools := sandbox.Owner{Name: "alice", Principal: true, Tools: true}
		m := server(t, f, "a", sandbox.KeepAll)
		kept := create(t, m, sandbox.Spec{})
		create(t, m, sandbox.Spec{Owner: tools})
		if err := m.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		wantSessions(t, f, kept.ID)

		m = server(t, f, "a", sandbox.KeepAll)
		tool := create(t, m, sandbox.Spec{Owner: tools})
		dies(t, f, m)
		wantSessions(t, f, kept.ID, tool.ID)
		m = server(t, f, "a", sandbox.KeepAll)
		if err := m.Recover(t.Context()); err != nil {
			t.Fatal(err)
		}
		wantSessions(t, f, kept.ID)
		if _, err := m.Session(tools, tool.ID); sandbox.KindOf(err) != sandbox.KindSessionNotFound {
			t.Error(err)
		}
	})
}
