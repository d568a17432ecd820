package docker

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/docker/docker/api/types/container"

	"caisson/sandbox"
)

// standStill lets a provider's lease run out, as for one whose process was stopped.
func (p *Provider) standStill(t *testing.T) {
	t.Helper()
	p.fence.mu.Lock()
	defer p.fence.mu.Unlock()
	if p.fence.held.Epoch == 0 {
		t.Fatal("no lease is held")
	}
	p.fence.until = time.Now().Add(-time.Second)
}

func TestAttackT71_AStaleLeaseIsRenewedBeforeAnythingIsChanged(t *testing.T) {
	t.Parallel()
	p := provider(t)
	held := take(t, p, time.Minute)
	p.standStill(t)
	s := create(t, p, specOf(""))
	if _, _, stale, lost := p.fence.state(); stale || lost {
		t.Errorf("after a create: stale %v, lost %v", stale, lost)
	}
	// Removed by somebody who took none, it is made again, and whoever holds the old one
	// has the new one.
	if err := p.remove(t.Context(), held.Ref); err != nil {
		t.Fatal(err)
	}
	p.standStill(t)
	if got := sh(t, s, "echo here"); got != "here\n" {
		t.Errorf("%q", got)
	}
	all := leasesOf(t, t.Context(), p)
	if len(all) != 1 || all[0].Ref == held.Ref {
		t.Fatalf("standing: %+v", all)
	}
	renewed, err := p.RenewLease(t.Context(), held, time.Minute)
	if err != nil || renewed.Ref != all[0].Ref {
		t.Errorf("%v, %+v, want %+v", err, renewed, all[0])
	}
	if err := p.DropLease(t.Context(), held); err != nil {
		t.Error(err)
	}
	if all := leasesOf(t, t.Context(), p); len(all) != 0 {
		t.Errorf("dropped, and there is %+v", all)
	}
}

// Renewals that come together when a server wakes up make a lease that was removed once.
func TestAttackT71_RenewalsAtOnceDoNotOutrankEachOther(t *testing.T) {
	t.Parallel()
	p := provider(t)
	held := take(t, p, time.Minute)
	for range 5 {
		for _, l := range leasesOf(t, t.Context(), p) {
			if err := p.remove(t.Context(), l.Ref); err != nil {
				t.Fatal(err)
			}
		}
		p.standStill(t)
		var all sync.WaitGroup
		for i := range 6 {
			all.Go(func() {
				var err error
				if i%2 == 0 {
					_, err = p.RenewLease(t.Context(), held, time.Minute)
				} else {
					err = p.stand(t.Context())
				}
				if err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
		if standing := leasesOf(t, t.Context(), p); len(standing) != 1 {
			t.Errorf("standing: %+v", standing)
		}
	}
}

// A stop does not wait longer for its turn than it has.
func TestAttackT71_ACallThatWaitsForARenewalEndsWithItsTime(t *testing.T) {
	t.Parallel()
	p := provider(t)
	take(t, p, time.Minute)
	p.standStill(t)
	if err := p.fence.enter(t.Context()); err != nil { // a renewal that the engine does not answer
		t.Fatal(err)
	}
	defer p.fence.leave()
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if err := p.stand(ctx); sandbox.KindOf(err) != sandbox.KindUnavailable {
		t.Errorf("%v", err)
	}
}

func TestAttackT71_AServerThatStoodStillChangesNothingOfAnothers(t *testing.T) {
	t.Parallel()
	a := provider(t)
	take(t, a, time.Minute)
	b := rival(t, a)
	id := create(t, b, specOf("")).info.ID
	s, err := a.Open(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	take(t, b, time.Minute)
	a.standStill(t)
	refused := func(what string, err error) {
		t.Helper()
		if sandbox.KindOf(err) != sandbox.KindFenced {
			t.Errorf("%s: %v", what, err)
		}
	}
	_, err = a.Create(t.Context(), sandbox.NewSessionID(), specOf(""), nil)
	refused("create", err)
	_, err = a.Destroy(t.Context(), id)
	refused("destroy", err)
	refused("kill", a.Kill(t.Context(), id))
	spool, err := testSpools()
	if err != nil {
		t.Fatal(err)
	}
	_, err = s.Start(t.Context(), shell("echo no"), spool.New())
	refused("exec", err)
	made, err := b.api.ContainerExecCreate(t.Context(), containerName(id), container.ExecOptions{Cmd: []string{"true"}})
	if err != nil {
		t.Fatal(err)
	}
	_, err = a.attach(t.Context(), made.ID) // between the two calls of a start
	refused("start of an exec", err)
	_, err = s.WriteFiles(t.Context(), []sandbox.FileWrite{{Path: "f", Content: []byte("no")}})
	refused("upload", err)
	if _, err := a.List(t.Context()); err != nil {
		t.Errorf("a look: %v", err)
	}
	theirs, err := b.Open(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	if got := sh(t, theirs.(*Session), "ls; echo here"); got != "here\n" {
		t.Errorf("%q", got)
	}
}
