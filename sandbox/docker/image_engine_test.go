package docker

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/docker/docker/api/types/container"

	"caisson/sandbox"
)

func TestSES18_BugIM03_ImagesThatBringTheirOwnEntrypoint(t *testing.T) {
	t.Parallel()
	p := provider(t)
	for _, image := range []string{"caisson-test-entrypoint", "caisson-test-entrypoint-false", "caisson-test-healthcheck", "caisson-test-labels", "caisson-test-volume"} {
		t.Run(image, func(t *testing.T) {
			s := create(t, p, specOf(image))
			if got := sh(t, s, "echo alive"); got != "alive\n" {
				t.Error(got)
			}
			if c := inspect(t, p, s); c.State.Health != nil || c.Config.StopSignal != "SIGTERM" || c.Config.User != "65534:65534" {
				t.Errorf("health %v, stop signal %s, user %s", c.State.Health, c.Config.StopSignal, c.Config.User)
			}
			made := mounted(t, p, s)
			destroy(t, p, s.info.ID)
			wantNoVolume(t, p, made)
		})
	}
}

// TestEXW01_BugIM03_ImagesThatLackSomethingAreRefused sees the missing command
// named within 10 s, and nothing left.
func TestEXW01_EXW20_BugIM03_ImagesThatLackSomethingAreRefused(t *testing.T) {
	t.Parallel()
	p := provider(t)
	before := volumes(t, p)
	for image, word := range map[string]string{
		"caisson-test-noshell": "sleep", "caisson-test-no-sleep": "sleep", "caisson-test-no-setsid": "setsid", "caisson-test-no-mkfifo": "mkfifo",
		"caisson-test-no-mv": "mv", "caisson-test-no-rm": "rm", "caisson-test-no-cat": "cat", "caisson-test-no-readlink": "readlink", "caisson-test-no-ls": "ls",
	} {
		t.Run(image, func(t *testing.T) {
			began := time.Now()
			_, err := tryCreate(t, p, specOf(image))
			wantError(t, err, sandbox.KindImageUnusable, "image", word)
			if took := time.Since(began); took > 10*time.Second {
				t.Errorf("took %v", took)
			}
		})
	}
	if left := containers(t, p); len(left) != 0 || !slices.Equal(before, volumes(t, p)) {
		t.Errorf("left behind: %v", left)
	}
}

// TestAttackT08_LookAlikeIsNeitherListedNorOpened runs a container of an image
// that carries our labels, past the provider.
func TestAttackT08_LookAlikeIsNeitherListedNorOpened(t *testing.T) {
	t.Parallel()
	p := provider(t)
	real := create(t, p, specOf(""))
	labels := inspect(t, p, real).Config.Labels
	ctx := t.Context()
	made, err := p.api.ContainerCreate(ctx, &container.Config{Image: busybox, Labels: labels}, nil, nil, nil, "look-alike-"+real.info.ID)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := cleanup(context.Background())
		defer cancel()
		if err := p.remove(ctx, made.ID); err != nil {
			t.Error(err)
		}
	})
	list, err := p.List(ctx)
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, i := range list {
		if i.ID == real.info.ID {
			n++
		}
	}
	if n != 1 {
		t.Errorf("the session is listed %d times", n)
	}
	opened, err := p.Open(ctx, real.info.ID)
	if err != nil || opened.(*Session).containerID != real.containerID {
		t.Errorf("opened %v, %v", opened, err)
	}
}

func TestAttackT08_ImagesLabelsDoNotSpeakForUs(t *testing.T) {
	t.Parallel()
	p := provider(t)
	s := create(t, p, specOf("caisson-test-labels"))
	for name, value := range inspect(t, p, s).Config.Labels {
		if name == labelOwner && value != specOf("").Owner.Hash() || name == labelID && value != s.info.ID || name == labelInstance && value != p.cfg.Instance {
			t.Errorf("%s is %s", name, value)
		}
	}
	if len(s.Info().Labels) != 0 {
		t.Errorf("the image's labels are taken for the caller's: %v", s.Info().Labels)
	}
}
