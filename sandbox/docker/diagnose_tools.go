package docker

import (
	"context"

	"github.com/containerd/errdefs"
)

// DiagnoseToolImage says whether the engine has an image that tools run in. It makes no
// container of it: whether the worker is in it is not looked at. It is bounded by ctx and
// by a bound of the provider's own.
func (p *Provider) DiagnoseToolImage(ctx context.Context, image string, policy PullPolicy) Check {
	c := Check{Name: "tool image " + image}
	if err := p.connect(ctx); err != nil {
		return failedCheck(c.Name, err, "see that the engine runs and that "+hostSetting+" and the certificates are right")
	}
	const mend = "make or pull it on the engine; docs/images.md says how the default one is built"
	_, err := p.inspectImage(ctx, image)
	switch {
	case err == nil:
		c.OK, c.Detail = true, "there"
	case !errdefs.IsNotFound(err):
		return failedCheck(c.Name, imageFailed(p, err), "look into the engine's log")
	case policy == PullNever || isImageID(image):
		c.Detail, c.Mend = "the engine does not have it, and it is not pulled: every call would fail", mend
	default:
		c.OK, c.Warn, c.Detail, c.Mend = true, true, "the engine does not have it: the first call pulls it, or fails where no registry has it", mend
	}
	return c
}
