package docker

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/containerd/errdefs"
	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/filters"
	"github.com/docker/docker/api/types/volume"

	"caisson/sandbox"
)

// remains says of what it is given whether Prune may remove it.
type remains struct {
	before time.Time // by the engine's clock
	of     func(instance string) bool
}

func (r remains) covers(labels map[string]string, created time.Time) bool {
	return created.Before(r.before) && r.of(labels[labelInstance])
}

// pruneLimit bounds a whole Prune: what it has no time for is left to the next.
const pruneLimit = 2 * time.Minute

// Prune removes helper containers and unnamed workspaces that were left
// (sandbox.Provider). Volumes of an image's VOLUME lines carry no label by which
// they could be told; they are removed with their container.
func (p *Provider) Prune(ctx context.Context, age time.Duration, of func(instance string) bool) ([]string, error) {
	const op = "prune"
	if err := p.connect(ctx); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, pruneLimit)
	defer cancel()
	now, err := p.engineTime(ctx)
	if err != nil {
		return nil, p.failed(op, err)
	}
	r := remains{before: now.Add(-age), of: of}
	helpers, helpersErr := p.pruneHelpers(ctx, r)
	volumes, volumesErr := p.pruneVolumes(ctx, r)
	var errs []error
	for _, err := range []error{helpersErr, volumesErr} {
		if err != nil {
			errs = append(errs, p.failed(op, err))
		}
	}
	return slices.Concat(helpers, volumes), errors.Join(errs...)
}

// helpers are the roles of containers that live for one call alone, with the
// beginnings of their names.
var helpers = map[string]string{roleExamine: examinePrefix, roleProbe: probePrefix}

// isHelper says whether a container is such a one: its name must say the same as
// its labels, which an image's labels cannot bring about.
func isHelper(name string, labels map[string]string) bool {
	prefix, ok := helpers[labels[labelRole]]
	return ok && strings.HasPrefix(name, prefix)
}

func (p *Provider) pruneHelpers(ctx context.Context, r remains) (removed []string, err error) {
	found, err := p.containersOf(ctx, filters.NewArgs(filters.Arg("label", labelRole)))
	if err != nil {
		return nil, err
	}
	var errs []error
	for _, c := range found {
		name := nameOf(c.Names, containerPrefix)
		if !isHelper(name, c.Labels) || !r.covers(c.Labels, time.Unix(c.Created, 0)) {
			continue
		}
		gone, err := p.pruneHelper(ctx, c.ID, r)
		errs = append(errs, err)
		if gone {
			removed = append(removed, "container "+name)
		}
	}
	return removed, errors.Join(errs...)
}

// pruneHelper looks at a helper once more, by its id, and removes it.
func (p *Provider) pruneHelper(ctx context.Context, id string, r remains) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, createLimit)
	defer cancel()
	c, err := p.api.ContainerInspect(ctx, id)
	if errdefs.IsNotFound(err) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	created, err := time.Parse(time.RFC3339Nano, c.Created)
	if err != nil || !isHelper(strings.TrimPrefix(c.Name, "/"), c.Config.Labels) || !r.covers(c.Config.Labels, created) {
		return false, err
	}
	return p.removeContainer(ctx, id)
}

func (p *Provider) pruneVolumes(ctx context.Context, r remains) (removed []string, err error) {
	listCtx, cancel := context.WithTimeout(ctx, callLimit)
	defer cancel()
	found, err := p.api.VolumeList(listCtx, volume.ListOptions{Filters: filters.NewArgs(
		filters.Arg("label", labelSandbox+"=1"), filters.Arg("label", labelDurability+"="+string(sandbox.Ephemeral)), filters.Arg("dangling", "true"))})
	if err != nil {
		return nil, err
	}
	var errs []error
	for _, v := range found.Volumes {
		if !r.coversVolume(*v) {
			continue
		}
		gone, err := p.pruneVolume(ctx, v.Name, r)
		errs = append(errs, err)
		if gone {
			removed = append(removed, "volume "+v.Name)
		}
	}
	return removed, errors.Join(errs...)
}

// coversVolume is covers for a volume. One whose time cannot be read is kept.
func (r remains) coversVolume(v volume.Volume) bool {
	created, err := time.Parse(time.RFC3339Nano, v.CreatedAt)
	return err == nil && v.Labels[labelSandbox] == "1" && v.Labels[labelDurability] == string(sandbox.Ephemeral) &&
		!strings.HasPrefix(v.Name, volumePrefix) && r.covers(v.Labels, created)
}

// pruneVolume looks at a volume once more and removes it, never by force: the
// engine keeps one that a container has come to hold.
func (p *Provider) pruneVolume(ctx context.Context, name string, r remains) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, createLimit)
	defer cancel()
	v, err := p.api.VolumeInspect(ctx, name)
	if err == nil && !r.coversVolume(v) {
		return false, nil
	}
	if err == nil {
		err = p.api.VolumeRemove(ctx, name, false)
	}
	switch {
	case err == nil:
		return true, nil
	case errdefs.IsNotFound(err), errdefs.IsConflict(err):
		return false, nil
	}
	return false, err
}

// containersOf lists containers, stopped ones too.
func (p *Provider) containersOf(ctx context.Context, args filters.Args) ([]container.Summary, error) {
	ctx, cancel := context.WithTimeout(ctx, callLimit)
	defer cancel()
	return p.api.ContainerList(ctx, container.ListOptions{All: true, Filters: args})
}
