package executor

import (
	"context"
	"encoding/json"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"caisson/sandbox"
	"caisson/sandbox/sandboxtest"
)

// A container that is given up is waited for alone. What else the executor does meanwhile,
// such as the making of its next container, may begin and end while somebody waits: a
// WaitGroup over all of it may not be used so, and panics.
func TestTX07_MakingRoomWaitsForTheOneRemoval(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fake := sandboxtest.NewFake()
		fake.Install("caisson-worker", func(sandboxtest.Command) int { return 1 })
		spools, err := sandbox.NewSpools(sandbox.SpoolLimits{Memory: 256 << 10, Disk: 64 << 20, Dir: t.TempDir()})
		if err != nil {
			t.Fatal(err)
		}
		log := slog.New(slog.DiscardHandler)
		m := sandbox.NewManager(sandbox.Options{
			Provider: fake, Instance: "test", Grace: time.Minute, Spools: spools, Log: log,
			Limits: sandbox.Limits{Records: 10, Retention: time.Hour, LostRetention: time.Hour, ReapInterval: time.Minute},
			Policy: sandbox.Policy{DefaultImage: "img", DefaultTTL: time.Hour, MaxNetwork: sandbox.NetworkEgress},
		})
		w := newWarm(site{
			manager: m, log: log, worker: []string{"caisson-worker"}, scrub: newScrubber(nil), owner: sandbox.Owner{Name: "alice", Tools: true},
			instance: &Instance{Executor: Docker, Options: Options{Image: "img", Network: sandbox.NetworkNone, IdleTTL: time.Hour, NanoCPUs: 1e9, Memory: 1 << 28, Pids: 64}},
			spare:    func(context.Context, sandbox.Owner) bool { return false },
		})
		call := func(ctx context.Context) Result {
			e, err := newEnvelope(CommandPath, "", json.RawMessage("{}"), map[string]any{"name": "t", "command": []string{"x"}})
			if err != nil {
				t.Fatal(err)
			}
			e.Timeout = time.Hour
			return w.Execute(ctx, e, Watch{})
		}
		call(t.Context())
		if n := len(fake.Sessions()); n != 1 {
			t.Fatalf("%d containers", n)
		}
		releaseDestroy := fake.Hold(sandboxtest.OpDestroy)
		spared := make(chan bool, 1)
		go func() { spared <- w.spare(t.Context()) }()
		synctest.Wait()
		releaseCreate := fake.Hold(sandboxtest.OpCreate)
		next := make(chan Result, 1)
		go func() { next <- call(t.Context()) }()
		synctest.Wait()
		releaseDestroy()
		synctest.Wait()
		select {
		case ok := <-spared:
			if !ok {
				t.Error("no room was made")
			}
		default:
			t.Error("waits for more than the removal")
		}
		releaseCreate()
		<-next
		if err := w.Close(t.Context()); err != nil {
			t.Error(err)
		}
		if err := m.Close(t.Context()); err != nil {
			t.Error(err)
		}
	})
}
