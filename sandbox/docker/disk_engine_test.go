package docker

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"caisson/sandbox"
	"caisson/sandbox/docker/internal/enginetest"
)

const testDiskMB = 24

// withDisk is a provider with a limit on disk, behind a proxy.
func withDisk(t *testing.T) (*Provider, *enginetest.Proxy) {
	t.Helper()
	p, proxy := faulty(t)
	p.cfg.DiskMB = testDiskMB
	return p, proxy
}

func overfull(t *testing.T, p *Provider) []string {
	t.Helper()
	over, err := p.Overfull(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var ids []string
	for _, o := range over {
		ids = append(ids, o.ID)
	}
	return ids
}

// A measurement counts the root file system and the workspace together, for the
// sessions of this instance. Some engines fail to measure all at once where one
// container has a tree without end: each is measured by itself then.
func TestD32_AttackT17_TheEngineMeasuresRootAndWorkspace(t *testing.T) {
	t.Parallel()
	p, proxy := withDisk(t)
	s, other := create(t, p, specOf("")), create(t, p, specOf(""))
	const fill = "dd if=/dev/zero of=%/f bs=1M count=14 2>/dev/null"
	sh(t, s, strings.ReplaceAll(fill, "%", "/tmp"))
	if got := overfull(t, p); len(got) != 0 {
		t.Errorf("14 of %d MB: %v", testDiskMB, got)
	}
	sh(t, s, strings.ReplaceAll(fill, "%", "/workspace"))
	want := []string{s.info.ID}
	if got := overfull(t, p); !slices.Equal(got, want) {
		t.Errorf("28 of %d MB: %v", testDiskMB, got)
	}
	proxy.Inject(enginetest.Fault{Method: "GET", Path: calls("^/system/df"), Status: 500, Message: "file name too long", Times: 1})
	if got := overfull(t, p); !slices.Equal(got, want) {
		t.Errorf("each by itself: %v", got)
	}
	proxy.Inject(enginetest.Fault{Method: "GET", Path: calls("^/system/df"), Status: 500, Message: "file name too long", Times: 1})
	proxy.Inject(enginetest.Fault{Method: "GET", Path: calls("^/containers/" + other.containerID + "/json"), Status: 500, Message: "file name too long"})
	for range blindTries {
		want = overfull(t, p)
		proxy.Inject(enginetest.Fault{Method: "GET", Path: calls("^/system/df"), Status: 500, Message: "file name too long", Times: 1})
	}
	slices.Sort(want)
	both := []string{s.info.ID, other.info.ID}
	slices.Sort(both)
	if !slices.Equal(want, both) {
		t.Errorf("one that cannot be measured: %v", want)
	}
}

// A try of the engine's quotas leaves nothing, is made once, and an engine that is
// not reached meanwhile is not taken for one without.
func TestD32_SES17_TheTrialOfQuotasLeavesNothing(t *testing.T) {
	t.Parallel()
	p, proxy := withDisk(t)
	before := volumes(t, p)
	proxy.Inject(enginetest.Fault{Method: "POST", Path: calls("^/volumes/create"), Swallow: true, Times: 1})
	if _, err := tryCreate(t, p, specOf("")); sandbox.KindOf(err) != sandbox.KindUnavailable {
		t.Errorf("with the trial's answer lost: %v", err)
	}
	s := create(t, p, specOf(""))
	if !slices.ContainsFunc(s.Info().Notes, func(n sandbox.Note) bool { return n.Code == sandbox.NoteDiskWatched }) {
		t.Errorf("notes %v", s.Info().Notes)
	}
	proxy.Inject(enginetest.Fault{Method: "POST", Path: calls("^/volumes/create"), Status: 500, Message: "asked again"})
	other := create(t, p, specOf(""))
	destroy(t, p, s.info.ID)
	destroy(t, p, other.info.ID)
	if left := containers(t, p); len(left) != 0 {
		t.Errorf("containers left: %v", left)
	}
	if after := volumes(t, p); len(after) > len(before) {
		t.Errorf("volumes before %v, after %v", before, after)
	}
}

// A file that would pass the limit by itself is refused as want of space.
func TestD32_AnUploadPastTheLimitIsNoSpace(t *testing.T) {
	t.Parallel()
	p, _ := withDisk(t)
	for _, image := range []string{busybox, debian} {
		s := create(t, p, specOf(image))
		piece := []sandbox.FileWrite{{Path: "big", Content: make([]byte, 8<<20), Append: true}}
		for range testDiskMB / 8 {
			if _, err := s.WriteFiles(t.Context(), piece); err != nil {
				t.Fatalf("%s: up to the limit: %v", image, err)
			}
		}
		if _, err := s.WriteFiles(t.Context(), piece); sandbox.KindOf(err) != sandbox.KindNoSpace {
			t.Errorf("%s: past the limit: %v", image, err)
		}
		if out := strings.Fields(sh(t, s, "wc -c /workspace/*; ls -A /workspace")); !slices.Equal(out, []string{"25165824", "/workspace/big", "big"}) {
			t.Errorf("%s: left %q", image, out)
		}
	}
}

// Engines before 23.0 measure for one at a time and refuse everybody else.
func TestD32_MeasurementsTakeTurns(t *testing.T) {
	t.Parallel()
	p, proxy := faulty(t)
	proxy.Inject(enginetest.Fault{Method: "GET", Path: calls("^/system/df$"), Status: 500, Message: "a disk usage operation is already running", Times: 2})
	defer proxy.Clear()
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			if _, err := p.volumeSizes(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	proxy.Clear()
	p.disks.turn <- struct{}{} // one that takes long
	defer func() { <-p.disks.turn }()
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if _, err := p.volumeSizes(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("%v", err)
	}
}
