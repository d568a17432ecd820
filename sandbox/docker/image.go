package docker

import (
	"context"
	"strings"
	"sync"

	"github.com/containerd/errdefs"
	"github.com/docker/docker/api/types/image"

	"caisson/sandbox"
)

// engineImage is what an inspect of an image tells us of it.
type engineImage struct {
	id    string
	user  string   // its USER line
	asked string   // the user that an operator has chosen instead; empty: none
	env   []string // its ENV lines
}

// key is what is known of an image is kept under: an id never changes its content, and
// most of it depends on the user.
func (i engineImage) key() string { return i.id + " " + i.asked }

// images is what was found out about images. Nothing is looked at twice.
type images struct {
	mu    sync.Mutex
	facts map[string]*examination // by key
	whole map[string]bool         // by id: the image contract was seen to hold
}

func (i *images) contractHolds(id string) bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.whole[id]
}

func (i *images) contractHeld(id string) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.whole == nil {
		i.whole = map[string]bool{}
	}
	i.whole[id] = true
}

// forget makes the next create look at its image's contract again.
func (i *images) forget() {
	i.mu.Lock()
	defer i.mu.Unlock()
	clear(i.whole)
}

// image returns the engine's image for a reference, pulled as a policy says
// (PUL-1 to PUL-3).
func (p *Provider) image(ctx context.Context, ref string, policy PullPolicy, progress sandbox.Progress) (engineImage, error) {
	if policy == PullAlways && !isImageID(ref) {
		if err := p.pull(ctx, ref, progress); err != nil {
			return engineImage{}, err
		}
	}
	found, err := p.inspectImage(ctx, ref)
	switch {
	case err == nil:
		return found, nil
	case !errdefs.IsNotFound(err):
		return engineImage{}, imageFailed(p, err)
	case policy == PullNever:
		return engineImage{}, sandbox.Errorf("find the image", sandbox.KindImageNotFound, "the engine has no image %q, and none may be pulled", ref).Because(err)
	case isImageID(ref) || policy == PullAlways:
		return engineImage{}, sandbox.Errorf("find the image", sandbox.KindImageNotFound, "the engine has no image %q", ref).Because(err)
	}
	if err := p.pull(ctx, ref, progress); err != nil {
		return engineImage{}, err
	}
	found, err = p.inspectImage(ctx, ref)
	if err != nil {
		return engineImage{}, imageFailed(p, err)
	}
	return found, nil
}

func imageFailed(p *Provider, err error) error {
	if errdefs.IsInvalidArgument(err) {
		return sandbox.Invalid("image", "the engine does not take this for an image reference").Because(err)
	}
	if errdefs.IsNotFound(err) {
		return sandbox.Errorf("find the image", sandbox.KindImageNotFound, "the image is gone from the engine").Because(err)
	}
	return p.failed("find the image", err)
}

// isImageID says whether ref is an id, which no registry can be asked for.
func isImageID(ref string) bool { return strings.HasPrefix(ref, "sha256:") }

func (p *Provider) inspectImage(ctx context.Context, ref string) (engineImage, error) {
	ctx, cancel := context.WithTimeout(ctx, callLimit)
	defer cancel()
	var found image.InspectResponse
	found, err := p.api.ImageInspect(ctx, ref)
	if err != nil {
		return engineImage{}, err
	}
	img := engineImage{id: found.ID}
	if found.Config != nil {
		img.user, img.env = found.Config.User, found.Config.Env
	}
	return img, nil
}
