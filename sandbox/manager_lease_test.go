package sandbox_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"caisson/sandbox"
	"caisson/sandbox/sandboxtest"
)

func TestTTL08_ACallRightAfterTheStartWaitsForTheFirstTry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := sandboxtest.NewFake()
		a := server(t, f, "a", sandbox.KeepAll)
		s := create(t, a, sandbox.Spec{})
		dies(t, f, a)
		release := f.Hold(sandboxtest.OpList)
		b := server(t, f, "a", sandbox.KeepNothing)
		b.BeginRecovery()
		short, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		b.AwaitRecovery(short)
		if _, err := b.Session(alice, s.ID); sandbox.KindOf(err) != sandbox.KindUnavailable {
			t.Fatalf("while the engine is slow: %v", err)
		}
		time.AfterFunc(time.Second, release)
		b.AwaitRecovery(t.Context())
		if _, err := b.Session(alice, s.ID); err != nil {
			t.Error(err)
		}
		b.AwaitRecovery(t.Context()) // costs nothing any more
	})
}
