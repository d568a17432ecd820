package docker

import (
	"context"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/docker/docker/api/types/container"

	"caisson/sandbox"
	"caisson/sandbox/docker/internal/enginetest"
)

// rival is another server of p's instance.
func rival(t *testing.T, p *Provider) *Provider {
	t.Helper()
	return newProvider(t, p.cfg)
}

// take takes a lease that goes with the test.
func take(t *testing.T, p *Provider, length time.Duration) sandbox.Lease {
	t.Helper()
	l, err := p.TakeLease(t.Context(), length)
	if err != nil {
		t.Fatal(err)
	}
	dropAfter(t, p)
	return l
}

// dropAfter removes all leases of p's instance with the test.
func dropAfter(t *testing.T, p *Provider) {
	t.Helper()
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		for _, l := range leasesOf(t, ctx, p) {
			if err := p.DropLease(ctx, l); err != nil {
				t.Error(err)
			}
		}
	})
}

// leasesOf is what stands of p's instance.
func leasesOf(t *testing.T, ctx context.Context, p *Provider) []sandbox.Lease {
	t.Helper()
	all, err := p.standing(ctx)
	if err != nil {
		t.Fatal(err)
	}
	return slices.DeleteFunc(all, func(l sandbox.Lease) bool { return l.Instance != p.cfg.Instance })
}

// newestOf is what Leases shows of p's instance, and the engine's time.
func newestOf(t *testing.T, p *Provider) (*sandbox.Lease, time.Time) {
	t.Helper()
	all, now, err := p.Leases(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var found *sandbox.Lease
	for _, l := range all {
		if l.Instance == p.cfg.Instance {
			if found != nil {
				t.Errorf("two leases of one instance: %+v", all)
			}
			found = &l
		}
	}
	return found, now
}

func TestD14_ALeaseIsKeptByRenaming(t *testing.T) {
	t.Parallel()
	p := provider(t)
	if l, _ := newestOf(t, p); l != nil {
		t.Fatalf("the control: %+v", l)
	}
	held := take(t, p, 30*time.Second)
	shown, now := newestOf(t, p)
	if shown == nil || *shown != held || held.Epoch < 1 || held.Expires.Before(now.Add(20*time.Second)) || held.Expires.After(now.Add(32*time.Second)) {
		t.Errorf("held %+v, shown %+v, at %v", held, shown, now)
	}
	renewed, err := p.RenewLease(t.Context(), held, time.Hour)
	if err != nil || renewed.Ref != held.Ref || renewed.Epoch != held.Epoch || renewed.Expires.Before(now.Add(time.Hour-time.Second)) {
		t.Fatalf("%v, %+v after %+v", err, renewed, held)
	}
	if shown, _ = newestOf(t, p); shown == nil || *shown != renewed {
		t.Errorf("shown %+v, want %+v", shown, renewed)
	}
	// Renewed for an end that the name already tells.
	if _, err := p.RenewLease(t.Context(), renewed, time.Until(renewed.Expires)); err != nil {
		t.Error(err)
	}
	if err := p.DropLease(t.Context(), renewed); err != nil {
		t.Error(err)
	}
	if err := p.DropLease(t.Context(), renewed); err != nil {
		t.Errorf("dropped twice: %v", err)
	}
	if l, _ := newestOf(t, p); l != nil {
		t.Errorf("dropped, and there is %+v", l)
	}
	if again := take(t, p, time.Minute); again.Epoch <= held.Epoch {
		t.Errorf("the epoch went from %d to %d", held.Epoch, again.Epoch)
	}
}

func TestD14_ALeasesContainerIsBare(t *testing.T) {
	t.Parallel()
	p := provider(t)
	held := take(t, p, time.Minute)
	c, err := p.api.ContainerInspect(t.Context(), held.Ref)
	if err != nil {
		t.Fatal(err)
	}
	h := c.HostConfig
	if c.State.Status != container.StateCreated || c.Image != "" || len(c.Mounts) != 0 || h.NetworkMode != networkNone || h.LogConfig.Type != "none" ||
		!slices.Equal(h.CapDrop, []string{"ALL"}) || !slices.Contains(h.SecurityOpt, "no-new-privileges") || c.Config.User == "" {
		t.Errorf("state %v, image %q, mounts %v, %+v, user %q", c.State.Status, c.Image, c.Mounts, h, c.Config.User)
	}
	l := c.Config.Labels
	if l[labelSandbox] != "1" || l[labelRole] != roleLease || l[labelInstance] != p.cfg.Instance || l[labelVersion] != "test" || l[labelCreated] == "" {
		t.Errorf("labels %v", l)
	}
	list, err := p.List(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, info := range list {
		if info.Instance == p.cfg.Instance {
			t.Errorf("listed as a session: %+v", info)
		}
	}
	if _, err := p.Prune(t.Context(), 0, func(i string) bool { return i == p.cfg.Instance }); err != nil {
		t.Error(err)
	}
	if l, _ := newestOf(t, p); l == nil {
		t.Error("pruned")
	}
}

func TestD14_ATakenLeaseFencesItsHolder(t *testing.T) {
	t.Parallel()
	a := provider(t)
	b := rival(t, a)
	first := take(t, a, time.Hour)
	second := take(t, b, time.Hour)
	if second.Epoch <= first.Epoch {
		t.Errorf("epoch %d after %d", second.Epoch, first.Epoch)
	}
	if all := leasesOf(t, t.Context(), a); len(all) != 1 || all[0] != second {
		t.Errorf("standing: %+v", all)
	}
	for range 2 {
		_, err := a.RenewLease(t.Context(), first, time.Hour)
		wantError(t, err, sandbox.KindFenced, "")
	}
	if _, err := b.RenewLease(t.Context(), second, time.Hour); err != nil {
		t.Error(err)
	}
}

func TestD14_ARemovedLeaseIsMadeAgain(t *testing.T) {
	t.Parallel()
	p := provider(t)
	held := take(t, p, time.Hour)
	if err := p.remove(t.Context(), held.Ref); err != nil {
		t.Fatal(err)
	}
	again, err := p.RenewLease(t.Context(), held, time.Hour)
	if err != nil || again.Epoch <= held.Epoch || again.Ref == held.Ref {
		t.Fatalf("%v, %+v after %+v", err, again, held)
	}
	if all := leasesOf(t, t.Context(), p); len(all) != 1 || all[0] != again {
		t.Errorf("standing: %+v", all)
	}
}

// TestD14_OfTakersAtOnceOneHolds lets servers of one instance start together, and
// each keep what it has.
func TestD14_OfTakersAtOnceOneHolds(t *testing.T) {
	t.Parallel()
	p := provider(t)
	dropAfter(t, p)
	const takers = 4
	for range 3 {
		holds := make([]bool, takers)
		var all sync.WaitGroup
		for i := range takers {
			r := rival(t, p)
			all.Go(func() {
				l, err := r.TakeLease(t.Context(), time.Hour)
				for range 2 {
					if err == nil {
						l, err = r.RenewLease(t.Context(), l, time.Hour)
					}
				}
				holds[i] = err == nil
				if err != nil && sandbox.KindOf(err) != sandbox.KindFenced {
					t.Error(err)
				}
				if err != nil {
					return
				}
				// The others have come to their end, or are told when they renew.
				eventually(t, "one lease stands", func() bool { return len(leasesOf(t, t.Context(), r)) == 1 })
				_, err = r.RenewLease(t.Context(), l, time.Hour)
				holds[i] = err == nil
			})
		}
		all.Wait()
		if got := strings.Count(strings.Join(words(holds), " "), "true"); got != 1 || len(leasesOf(t, t.Context(), p)) != 1 {
			t.Fatalf("holders: %v, standing: %+v", holds, leasesOf(t, t.Context(), p))
		}
	}
}

func words(flags []bool) []string {
	out := make([]string, len(flags))
	for i, f := range flags {
		out[i] = map[bool]string{true: "true", false: "false"}[f]
	}
	return out
}

func TestD14_OneEpochIsDecidedByTheContainersID(t *testing.T) {
	t.Parallel()
	p := provider(t)
	held := take(t, p, time.Hour)
	twin := held
	twin.Expires = held.Expires.Add(time.Second)
	var err error
	if twin.Ref, err = p.createLease(t.Context(), twin, time.Now()); err != nil {
		t.Fatal(err)
	}
	winner, loser := held, twin
	if twin.Ref > held.Ref {
		winner, loser = twin, held
	}
	_, err = p.RenewLease(t.Context(), loser, time.Minute)
	wantError(t, err, sandbox.KindFenced, "")
	if _, err := p.RenewLease(t.Context(), winner, time.Hour); err != nil {
		t.Error(err)
	}
	if all := leasesOf(t, t.Context(), p); len(all) != 1 || all[0].Ref != winner.Ref {
		t.Errorf("standing: %+v, want %s", all, winner.Ref)
	}
}

func TestD14_ALeaseLeftBehindIsDroppedUnlessItWasRenewed(t *testing.T) {
	t.Parallel()
	holder, neighbour := provider(t), provider(t)
	seen := take(t, holder, time.Second)
	renewed, err := holder.RenewLease(t.Context(), seen, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	wantError(t, neighbour.DropLease(t.Context(), seen), sandbox.KindBusy, "")
	if all := leasesOf(t, t.Context(), holder); len(all) != 1 {
		t.Fatalf("standing: %+v", all)
	}
	if err := neighbour.DropLease(t.Context(), renewed); err != nil {
		t.Error(err)
	}
	if all := leasesOf(t, t.Context(), holder); len(all) != 0 {
		t.Errorf("standing: %+v", all)
	}
}

// TestD14_LeasesUnderFaults loses answers, and plays an engine that makes no
// container without an image.
func TestD14_LeasesUnderFaults(t *testing.T) {
	t.Parallel()
	p, proxy := faulty(t)
	dropAfter(t, p)
	create := enginetest.Fault{Method: "POST", Path: calls("^/containers/create$"), Times: 1}

	lost := create
	lost.Swallow = true
	proxy.Inject(lost)
	_, err := p.TakeLease(t.Context(), time.Hour)
	wantError(t, err, sandbox.KindUnavailable, "")
	eventually(t, "a lease whose answer was lost is removed", func() bool { return len(leasesOf(t, t.Context(), p)) == 0 })

	refused := create
	refused.Status, refused.Message = 400, "no image specified"
	proxy.Inject(refused)
	held, err := p.TakeLease(t.Context(), time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	if c, err := p.api.ContainerInspect(t.Context(), held.Ref); err != nil || c.Image == "" || c.Config.Labels[labelRole] != roleLease {
		t.Errorf("%v, image %q, labels %v", err, c.Image, c.Config.Labels)
	}

	proxy.Inject(enginetest.Fault{Method: "POST", Path: calls("^/containers/.*/rename$"), Times: 1, Swallow: true})
	_, err = p.RenewLease(t.Context(), held, 2*time.Hour)
	wantError(t, err, sandbox.KindUnavailable, "")
	renewed, err := p.RenewLease(t.Context(), held, 3*time.Hour)
	if err != nil || renewed.Ref != held.Ref {
		t.Errorf("after a renewal whose answer was lost: %v, %+v", err, renewed)
	}
	if shown, _ := newestOf(t, p); shown == nil || *shown != renewed {
		t.Errorf("shown %+v, want %+v", shown, renewed)
	}
}

func TestD14_InstancesThatCannotBeInANameAreRefused(t *testing.T) {
	t.Parallel()
	cfg := engine(t)
	cfg.Instance = "a b"
	_, err := newProvider(t, cfg).TakeLease(t.Context(), time.Minute)
	wantError(t, err, sandbox.KindInvalid, "SANDBOX_DOCKER_INSTANCE")
}
