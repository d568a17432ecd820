package docker

import (
	"context"
	"time"

	"github.com/containerd/errdefs"
	"github.com/docker/docker/api/types/container"

	"caisson/sandbox"
)

// Destroy ends a session (sandbox.Provider).
func (p *Provider) Destroy(ctx context.Context, id string) (existed bool, err error) {
	if !sandbox.ValidSessionID(id) {
		return false, nil
	}
	if err := p.connect(ctx); err != nil {
		return false, err
	}
	ctx, cancel := context.WithTimeout(ctx, createLimit)
	defer cancel()
	existed, err = p.removeContainer(ctx, containerName(id))
	if err != nil {
		return existed, p.failed("destroy session", err)
	}
	return existed, nil
}

// Kill ends all that runs in a session at once (sandbox.Killer): with process 1 the kernel
// ends every other. The container stays, stopped.
func (p *Provider) Kill(ctx context.Context, id string) error {
	if !sandbox.ValidSessionID(id) {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, callLimit)
	defer cancel()
	err := p.api.ContainerKill(ctx, containerName(id), "KILL")
	if err == nil || errdefs.IsNotFound(err) || errdefs.IsConflict(err) && !isPaused(err) { // a conflict: it does not run
		return nil
	}
	return p.failed("kill session", err)
}

// remove removes a container, running or not, with its anonymous volumes, those
// of the image's VOLUME lines included (DUR-1, D23). One that is not there is
// success.
func (p *Provider) remove(ctx context.Context, ref string) error {
	_, err := p.removeContainer(ctx, ref)
	return err
}

const (
	removeTries = 4
	removePause = 250 * time.Millisecond
)

func (p *Provider) removeContainer(ctx context.Context, ref string) (existed bool, err error) {
	for try := range removeTries {
		err = p.api.ContainerRemove(ctx, ref, container.RemoveOptions{Force: true, RemoveVolumes: true})
		switch {
		case err == nil:
			return true, nil
		case errdefs.IsNotFound(err):
			return existed, nil
		case isGoing(err):
			return true, p.awaitGone(ctx, ref)
		case !errdefs.IsInternal(err) && !errdefs.IsConflict(err):
			return existed, err
		}
		// The engine could not yet: a mount that is still busy, a process that
		// is still dying.
		existed = true
		if err := pause(ctx, removePause<<try); err != nil {
			return existed, err
		}
	}
	return existed, err
}

// awaitGone waits until somebody else's removal is through.
func (p *Provider) awaitGone(ctx context.Context, ref string) error {
	for {
		_, err := p.api.ContainerInspect(ctx, ref)
		if errdefs.IsNotFound(err) {
			return nil
		}
		if err != nil {
			return err
		}
		if err := pause(ctx, removePause); err != nil {
			return err
		}
	}
}

func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
