package docker

import (
	"context"
	"errors"
	"time"

	"github.com/containerd/errdefs"

	"caisson/sandbox"
)

// undo removes what a create that failed has left (SES-17), on a clock of its
// own. The error of the create is what its caller gets; where it cannot be known
// that nothing is left, that is KindUnknownOutcome.
func (c *creation) undo(ctx context.Context, failure error) error {
	lost := c.asked && lostAnswer(failure)
	if c.containerID == "" && !lost && !c.freshVolume {
		return failure
	}
	ctx, cancel := cleanup(ctx)
	defer cancel()
	var err error
	switch {
	case c.containerID != "":
		err = c.p.remove(ctx, c.containerID)
	case lost:
		err = c.removeLate(ctx)
	}
	if err == nil && c.freshVolume {
		if err = c.p.api.VolumeRemove(ctx, c.volume, false); errdefs.IsNotFound(err) {
			err = nil
		}
	}
	if err == nil {
		return failure
	}
	c.p.log.Error("a failed create may have left something behind", "session", sandbox.ShortID(c.id), "error", err)
	return sandbox.Errorf("create session", sandbox.KindUnknownOutcome, "the create failed, and what it made could not be removed: %s", textOf(failure)).
		Because(errors.Join(failure, err))
}

// neverSent says that there was no connection to send the call over.
func neverSent(err error) bool {
	var dial *dialError
	return errors.As(err, &dial)
}

// lostAnswer says whether the engine may have done what it was asked for.
func lostAnswer(err error) bool {
	switch sandbox.KindOf(err) {
	case sandbox.KindUnavailable, sandbox.KindCancelled, sandbox.KindInternal, sandbox.KindUnknownOutcome:
		return true
	default:
		return false
	}
}

// removeLate removes, by its name, a container that the engine may have made
// though its answer was lost. The engine may still be at it, so one look is not
// enough.
func (c *creation) removeLate(ctx context.Context) error {
	for try := range lateTries {
		existed, err := c.p.removeContainer(ctx, containerName(c.id))
		if existed || err != nil {
			return err
		}
		if err := pause(ctx, latePause<<try); err != nil {
			return err
		}
	}
	return nil
}

const (
	lateTries = 4
	latePause = 100 * time.Millisecond // doubled each time: 1.5 s together
)

func textOf(err error) string {
	var e *sandbox.Error
	if errors.As(err, &e) && e.Text != "" {
		return e.Text
	}
	return sandbox.KindOf(err).String()
}
