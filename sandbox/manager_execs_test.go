package sandbox_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"caisson/sandbox"
)

func TestCFG11_ExecLimits(t *testing.T) {
	managed(t, sandbox.Limits{ExecsPerSession: 2, MaxTimeout: time.Hour}, func(t *testing.T, m *sandbox.Manager, e *engine) {
		s := create(t, m, sandbox.Spec{})
		start := func(spec sandbox.ExecSpec) error {
			_, err := m.StartExec(t.Context(), alice, s.ID, spec)
			return err
		}
		if err := start(sandbox.ExecSpec{Argv: []string{"x"}, Timeout: 2 * time.Hour}); sandbox.KindOf(err) != sandbox.KindRejected {
			t.Errorf("timeout over the ceiling: %v", err)
		}
		if err := start(sandbox.ExecSpec{}); sandbox.KindOf(err) != sandbox.KindInvalid {
			t.Errorf("no argv: %v", err)
		}
		if err := start(sandbox.ExecSpec{Argv: []string{"a\x00b"}}); sandbox.KindOf(err) != sandbox.KindInvalid {
			t.Errorf("NUL: %v", err)
		}
		for range 2 {
			if err := start(sandbox.ExecSpec{Argv: []string{"x"}}); err != nil {
				t.Fatal(err)
			}
		}
		if v := execs(t, m, alice, s.ID)[0].View(); v.TimeoutAt.Sub(v.StartedAt) != 300*time.Second {
			t.Errorf("default timeout %v", v.TimeoutAt.Sub(v.StartedAt))
		}
		if err := start(sandbox.ExecSpec{Argv: []string{"x"}}); sandbox.KindOf(err) != sandbox.KindLimit {
			t.Errorf("third: %v", err)
		}
		if _, err := execs(t, m, alice, "")[0].Kill(sandbox.SignalKill); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if err := start(sandbox.ExecSpec{Argv: []string{"x"}}); err != nil {
			t.Errorf("after one ended: %v", err)
		}
	})
}

// TestAttackT55_OnePrincipalsCommandsPushOutNobodyElses: the number of records is bounded.
func TestAttackT55_OnePrincipalsCommandsPushOutNobodyElses(t *testing.T) {
	managed(t, sandbox.Limits{Records: 6}, func(t *testing.T, m *sandbox.Manager, e *engine) {
		ended := func(owner sandbox.Owner, session string) string {
			exec, err := m.StartExec(t.Context(), owner, session, sandbox.ExecSpec{Argv: []string{"x"}})
			if err != nil {
				t.Fatal(err)
			}
			e.sessions[session].last.exec.StreamEnded(exit7)
			<-exec.Done()
			<-time.After(time.Second)
			return exec.ID()
		}
		hers := create(t, m, sandbox.Spec{TTL: time.Hour})
		his, err := m.Create(t.Context(), sandbox.Spec{Owner: bob, TTL: time.Hour}, nil)
		if err != nil {
			t.Fatal(err)
		}
		kept := []string{ended(alice, hers.ID), ended(alice, hers.ID)}
		var last string
		for range 20 {
			last = ended(bob, his.ID)
		}
		for _, id := range kept {
			if _, err := m.Exec(alice, id); err != nil {
				t.Errorf("hers is gone: %v", err)
			}
		}
		if _, err := m.Exec(bob, last); err != nil || len(execs(t, m, bob, "")) != 4 {
			t.Errorf("his last: %v, %d kept", err, len(execs(t, m, bob, "")))
		}
	})
}

func TestD13_RecordsOutliveTheirSessionUntilRetention(t *testing.T) {
	managed(t, sandbox.Limits{Records: 3}, func(t *testing.T, m *sandbox.Manager, e *engine) {
		s := create(t, m, sandbox.Spec{TTL: 2 * time.Hour})
		var ids []string
		for range 5 {
			exec, err := m.StartExec(t.Context(), alice, s.ID, sandbox.ExecSpec{Argv: []string{"x"}})
			if err != nil {
				t.Fatal(err)
			}
			e.sessions[s.ID].last.exec.StreamEnded(exit7)
			<-exec.Done()
			<-time.After(time.Second)
			ids = append(ids, exec.ID())
		}
		if got := len(execs(t, m, alice, "")); got != 3 {
			t.Errorf("%d records kept", got)
		}
		if _, err := m.Exec(alice, ids[4]); err != nil {
			t.Errorf("the youngest is gone: %v", err)
		}
		if _, _, err := m.Destroy(t.Context(), alice, s.ID); err != nil {
			t.Fatal(err)
		}
		<-time.After(59 * time.Minute)
		if _, err := m.Exec(alice, ids[4]); err != nil {
			t.Errorf("gone before its retention: %v", err)
		}
		<-time.After(2 * time.Minute)
		if got := len(execs(t, m, alice, "")); got != 0 {
			t.Errorf("%d records after the retention", got)
		}
	})
}

func TestTTL05_D05_BugLC03_RunningCommandKeepsItsSession(t *testing.T) {
	managed(t, sandbox.Limits{ReapInterval: time.Second}, func(t *testing.T, m *sandbox.Manager, e *engine) {
		s := create(t, m, sandbox.Spec{TTL: 20 * time.Second})
		exec, err := m.StartExec(t.Context(), alice, s.ID, sandbox.ExecSpec{Argv: []string{"x"}})
		if err != nil {
			t.Fatal(err)
		}
		<-time.After(45 * time.Second)
		e.sessions[s.ID].last.exec.StreamEnded(exit7)
		<-exec.Done()
		synctest.Wait()
		info, err := m.Session(alice, s.ID)
		if err != nil || info.RunningExecs != 0 {
			t.Fatalf("%+v, %v", info, err)
		}
		<-time.After(19 * time.Second)
		if _, err := m.Session(alice, s.ID); err != nil {
			t.Fatalf("idle time did not begin at the command's end: %v", err)
		}
		<-time.After(3 * time.Second)
		if _, err := m.Session(alice, s.ID); err == nil {
			t.Fatal("never reaped")
		}
		if _, err := m.Exec(alice, exec.ID()); err != nil {
			t.Fatalf("the record went with its session: %v", err)
		}
	})
}

func TestBugEX07_SessionRemovedBehindOurBackIsLost(t *testing.T) {
	managed(t, sandbox.Limits{}, func(t *testing.T, m *sandbox.Manager, e *engine) {
		s, other := create(t, m, sandbox.Spec{}), create(t, m, sandbox.Spec{})
		exec, err := m.StartExec(t.Context(), alice, s.ID, sandbox.ExecSpec{Argv: []string{"x"}})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := e.Destroy(t.Context(), s.ID); err != nil {
			t.Fatal(err)
		}
		if _, err := m.StartExec(t.Context(), alice, s.ID, sandbox.ExecSpec{Argv: []string{"x"}}); sandbox.KindOf(err) != sandbox.KindSessionLost {
			t.Fatalf("first call: %v", err)
		}
		if v, err := exec.Wait(t.Context()); err != nil || v.LostReason != sandbox.LostContainerGone {
			t.Fatalf("%+v, %v", v, err)
		}
		if list := listed(t, m, alice); len(list) != 1 || list[0].ID != other.ID {
			t.Fatalf("listing %+v", list)
		}
		if existed, _, err := m.Destroy(t.Context(), alice, s.ID); existed || err != nil {
			t.Fatalf("destroy of a gone one: %v, %v", existed, err)
		}
	})
}

// A container that stops as soon as it is started answers every call with
// KindSessionLost while it still lies on the engine, with its volume.
func TestSES17_RemainsOfALostSessionAreRemoved(t *testing.T) {
	managed(t, sandbox.Limits{}, func(t *testing.T, m *sandbox.Manager, e *engine) {
		s := create(t, m, sandbox.Spec{})
		e.fail["start"] = sandbox.Errorf("start", sandbox.KindSessionLost, "its container stops as soon as it is started")
		if _, err := m.StartExec(t.Context(), alice, s.ID, sandbox.ExecSpec{Argv: []string{"x"}}); sandbox.KindOf(err) != sandbox.KindSessionLost {
			t.Fatal(err)
		}
		synctest.Wait()
		if e.count() != 0 {
			t.Error("its container is still on the engine, and no handle leads there")
		}
		if _, err := m.Session(alice, s.ID); err == nil || !strings.Contains(err.Error(), "stops as soon as it is started") {
			t.Errorf("the reason is not told: %v", err)
		}
	})
}

func execs(t *testing.T, m *sandbox.Manager, owner sandbox.Owner, session string) []*sandbox.Exec {
	t.Helper()
	all, err := m.Execs(owner, session)
	if err != nil {
		t.Fatal(err)
	}
	return all
}
