package docker

import (
	"context"
	"log/slog"
	"sync"
	"testing"
	"time"

	"caisson/sandbox"
)

// TestAttackT57_FiftySessionsEndWithinTenSeconds runs a command in each of 50 sessions, half
// of them tools', and stops all.
func TestAttackT57_FiftySessionsEndWithinTenSeconds(t *testing.T) {
	const sessions = 50
	p := provider(t)
	spools, err := testSpools()
	if err != nil {
		t.Fatal(err)
	}
	m := sandbox.NewManager(sandbox.Options{
		Provider: p, Instance: p.cfg.Instance, Grace: time.Minute, Keep: sandbox.KeepAll, Policy: sandbox.Policy{DefaultImage: busybox, DefaultTTL: time.Hour}, Spools: spools,
		Limits: sandbox.Limits{ReapInterval: time.Minute, Retention: time.Hour, LostRetention: time.Hour, DefaultTimeout: time.Hour}, Log: slog.New(slog.DiscardHandler),
	})
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		if err := m.Close(ctx); err != nil {
			t.Error(err)
		}
	})
	var all sync.WaitGroup
	rooms := make(chan struct{}, 6)
	for i := range sessions {
		all.Go(func() {
			rooms <- struct{}{}
			defer func() { <-rooms }()
			spec := toolSpec(nil)
			spec.Owner.Tools = i%2 == 0
			info, err := m.Create(t.Context(), spec, nil)
			if err != nil {
				t.Error(err)
				return
			}
			if _, err := m.StartExec(t.Context(), spec.Owner, info.ID, sandbox.ExecSpec{Argv: []string{"sleep", "600"}}); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if got := len(containers(t, p)); got < sessions {
		t.Fatalf("%d containers", got)
	}
	began := time.Now()
	ended, err := m.Halt(t.Context())
	t.Logf("%d ended in %v", ended, time.Since(began))
	if ended != sessions || err != nil {
		t.Errorf("%d ended, %v", ended, err)
	}
	left, err := p.List(t.Context()) // what is dead may not be removed yet
	for _, info := range left {
		if info.Instance == p.cfg.Instance && info.State != sandbox.StateStopped {
			t.Errorf("on the engine: %s, %s", info.ID, info.State)
		}
	}
	if err != nil {
		t.Error(err)
	}
	if _, err := m.Create(t.Context(), toolSpec(nil), nil); sandbox.KindOf(err) != sandbox.KindUnavailable {
		t.Errorf("a create after it: %v", err)
	}
}
