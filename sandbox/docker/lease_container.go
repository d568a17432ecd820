package docker

import (
	"context"
	"time"

	"github.com/containerd/errdefs"
	"github.com/docker/docker/api/types/filters"
	"github.com/docker/docker/api/types/image"

	"caisson/sandbox"
)

// createLease makes a lease's container, which is never started and mounts
// nothing. It has no image, so that it needs none and keeps none from being
// removed; on an engine that makes no such container it has the smallest there is.
func (p *Provider) createLease(ctx context.Context, l sandbox.Lease, now time.Time) (string, error) {
	config, hostConfig, netConfig := createBody(blueprint{
		bare: true, user: account{uid: 1, gid: 1}, network: networkNone, seccomp: p.seccomp, pids: ptr(int64(1)),
		labels: map[string]string{
			labelSandbox: "1", labelRole: roleLease, labelID: "", labelInstance: l.Instance,
			labelOwner: "", labelWorkspace: "", labelDurability: "", labelTTL: "",
			labelCreated: now.UTC().Format(time.RFC3339Nano), labelVersion: p.cfg.Version,
		},
	})
	name := leaseName(l)
	made, err := p.api.ContainerCreate(ctx, config, hostConfig, netConfig, nil, name)
	if errdefs.IsInvalidArgument(err) || errdefs.IsNotFound(err) {
		if config.Image, err = p.smallestImage(ctx, err); err != nil {
			return "", err
		}
		made, err = p.api.ContainerCreate(ctx, config, hostConfig, netConfig, nil, name)
	}
	switch {
	case err == nil:
		return made.ID, nil
	case errdefs.IsConflict(err):
		return "", fenced(l.Instance) // taken in the same millisecond, for as long
	}
	own := p.createFailed(err)
	if lostAnswer(own) {
		p.giveUpLease(ctx, name)
	}
	return "", own
}

// smallestImage is the image of a lease on an engine that refused one without.
func (p *Provider) smallestImage(ctx context.Context, refused error) (string, error) {
	found, err := p.api.ImageList(ctx, image.ListOptions{})
	if err != nil {
		return "", err
	}
	if len(found) == 0 {
		return "", sandbox.Errorf("take the lease", sandbox.KindImageNotFound,
			"the engine makes no container without an image and has none; load or pull any image, which the lease's container can be made of").Because(refused)
	}
	smallest := found[0]
	for _, img := range found[1:] {
		if img.Size < smallest.Size {
			smallest = img
		}
	}
	return smallest.ID, nil
}

// standing is every lease on the engine, those that others outrank included.
func (p *Provider) standing(ctx context.Context) ([]sandbox.Lease, error) {
	found, err := p.containersOf(ctx, filters.NewArgs(filters.Arg("label", labelSandbox+"=1"), filters.Arg("label", labelRole+"="+roleLease)))
	if err != nil {
		return nil, err
	}
	var leases []sandbox.Lease
	for _, c := range found {
		if l, ok := readLease(c.ID, nameOf(c.Names, leasePrefix), c.Labels); ok {
			leases = append(leases, l)
		}
	}
	return leases, nil
}

// engineTime is the engine's clock, which alone counts for what is on the engine
// (R43): this machine's may be wrong, and other servers have other ones.
func (p *Provider) engineTime(ctx context.Context) (time.Time, error) {
	ctx, cancel := context.WithTimeout(ctx, callLimit)
	defer cancel()
	info, err := p.api.Info(ctx)
	if err != nil {
		return time.Time{}, err
	}
	now, err := time.Parse(time.RFC3339Nano, info.SystemTime)
	if err != nil {
		return time.Time{}, sandbox.Errorf("ask for the engine's time", sandbox.KindInternal, "the engine does not tell its time").Because(err)
	}
	return now, nil
}
