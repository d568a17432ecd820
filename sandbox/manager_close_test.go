package sandbox_test

import (
	"testing"
	"testing/synctest"
	"time"

	"caisson/sandbox"
	"caisson/sandbox/sandboxtest"
)

// A session whose end a call has asked for is still going when the server ends: once it
// is gone nothing needs the lease any more.
func TestBugLC01_AServerThatEndsInTheMidstOfADestroyLeavesNoLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := sandboxtest.NewFake()
		m := server(t, f, "a", sandbox.KeepNothing)
		s := create(t, m, sandbox.Spec{TTL: time.Minute})
		release := f.Hold(sandboxtest.OpDestroy)
		destroyed, closed := make(chan error, 1), make(chan error, 1)
		go func() {
			_, _, err := m.Destroy(t.Context(), alice, s.ID)
			destroyed <- err
		}()
		synctest.Wait()
		go func() { closed <- m.Close(t.Context()) }()
		synctest.Wait()
		release()
		if err := <-destroyed; err != nil {
			t.Error(err)
		}
		if err := <-closed; err != nil {
			t.Error(err)
		}
		wantSessions(t, f)
		if leases, _, err := f.Leases(t.Context()); err != nil || len(leases) != 0 {
			t.Errorf("%v %v", leases, err)
		}
	})
}
