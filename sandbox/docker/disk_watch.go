package docker

import (
	"context"
	"fmt"
	"sync"

	"github.com/containerd/errdefs"
	"github.com/docker/docker/api/types"
	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/filters"
	"github.com/docker/docker/api/types/mount"

	"caisson/sandbox"
)

var _ sandbox.DiskWatcher = (*Provider)(nil)

// disks is what the provider knows of the engine's and the sessions' disks.
type disks struct {
	quotas quotaTrial
	turn   chan struct{} // one token: one measurement at a time

	mu    sync.Mutex
	blind map[string]int // how often in a row a container could not be measured
}

// blindTries is how often in a row a session may be unmeasurable: the engine walks
// its files by their paths, and a tree deeper than the longest path ends the walk.
const blindTries = 3

// watched is a session whose disk is measured.
type watched struct {
	sessionID, containerID string
	most                   int64
	layer                  bool
	volumes                []string
}

// Overfull measures the disks of this instance's sessions by the engine's own
// count (sandbox.DiskWatcher): what runs in a session can neither fool nor hold it
// up.
func (p *Provider) Overfull(ctx context.Context) ([]sandbox.Overfull, error) {
	const op = "measure disks"
	if err := p.connect(ctx); err != nil {
		return nil, err
	}
	all, err := p.watchedSessions(ctx)
	if err != nil {
		return nil, p.failed(op, err)
	}
	if len(all) == 0 {
		return nil, nil
	}
	layers, volumes, err := p.diskUse(ctx, all)
	if err != nil {
		return nil, p.failed(op, err)
	}
	return p.judge(all, layers, volumes), nil
}

func (p *Provider) judge(all []watched, layers, volumes map[string]int64) []sandbox.Overfull {
	var over []sandbox.Overfull
	p.disks.mu.Lock()
	defer p.disks.mu.Unlock()
	blind := map[string]int{}
	for _, w := range all {
		used, measured := w.use(layers, volumes)
		switch {
		case !measured:
			blind[w.containerID] = p.disks.blind[w.containerID] + 1
			if blind[w.containerID] >= blindTries {
				over = append(over, sandbox.Overfull{ID: w.sessionID, Reason: "its disk limit cannot be watched any more: it holds paths that are too long for the engine to follow"})
			}
		case used > w.most:
			over = append(over, sandbox.Overfull{ID: w.sessionID, Reason: fmt.Sprintf("it passed its disk limit of %d MB", w.most>>20)})
		}
	}
	p.disks.blind = blind
	return over
}

// use is what a session holds; measured is false where the engine could not say.
func (w watched) use(layers, volumes map[string]int64) (used int64, measured bool) {
	sizes := make([]int64, 0, 1+len(w.volumes))
	if w.layer {
		sizes = append(sizes, layers[w.containerID])
	}
	for _, name := range w.volumes {
		sizes = append(sizes, volumes[name])
	}
	for _, size := range sizes {
		if size < 0 {
			return 0, false
		}
		used += size
	}
	return used, true
}

func (p *Provider) watchedSessions(ctx context.Context) ([]watched, error) {
	found, err := p.containersOf(ctx, filters.NewArgs(filters.Arg("label", labelSandbox+"=1"), filters.Arg("label", labelInstance+"="+p.cfg.Instance)))
	if err != nil {
		return nil, err
	}
	var all []watched
	for _, c := range found {
		l := labelled{containerID: c.ID, name: nameOf(c.Names, containerPrefix), labels: c.Labels}
		s, ok := l.session(p)
		most, alone := readDisk(c.Labels[labelDisk])
		if !ok || most == 0 {
			continue
		}
		w := watched{sessionID: s.info.ID, containerID: c.ID, most: most, layer: !alone}
		for _, m := range c.Mounts {
			if m.Type == mount.TypeVolume {
				w.volumes = append(w.volumes, m.Name)
			}
		}
		all = append(all, w)
	}
	return all, nil
}

// diskUse asks the engine for the sizes of writable layers, by container, and of
// volumes, by name. An engine walks all of their files for it. Some fail as a whole
// for one container that cannot be measured; then each is asked for by itself.
func (p *Provider) diskUse(ctx context.Context, all []watched) (layers, volumes map[string]int64, err error) {
	kinds := []types.DiskUsageObject{types.VolumeObject}
	for _, w := range all {
		if w.layer {
			kinds = append(kinds, types.ContainerObject)
			break
		}
	}
	du, err := p.measure(ctx, kinds...)
	if err != nil && errdefs.IsInternal(err) && len(kinds) > 1 {
		return p.diskUseEach(ctx, all)
	}
	if err != nil {
		return nil, nil, err
	}
	layers = make(map[string]int64, len(du.Containers))
	for _, c := range du.Containers {
		layers[c.ID] = c.SizeRw
	}
	return layers, sizesOf(du.Volumes), nil
}

func (p *Provider) diskUseEach(ctx context.Context, all []watched) (layers, volumes map[string]int64, err error) {
	if volumes, err = p.volumeSizes(ctx); err != nil {
		return nil, nil, err
	}
	layers = map[string]int64{}
	for _, w := range all {
		if !w.layer {
			continue
		}
		if layers[w.containerID], err = p.layerSize(ctx, w.containerID); err != nil {
			return nil, nil, err
		}
	}
	return layers, volumes, nil
}

// layerSize is the size of one writable layer; -1 where the engine cannot say.
func (p *Provider) layerSize(ctx context.Context, containerID string) (int64, error) {
	var c container.InspectResponse
	c, _, err := p.api.ContainerInspectWithRaw(ctx, containerID, true)
	switch {
	case errdefs.IsNotFound(err):
		return 0, nil // ended meanwhile
	case err != nil && errdefs.IsInternal(err):
		return -1, nil
	case err != nil:
		return 0, err
	case c.SizeRw == nil:
		return 0, nil
	}
	return *c.SizeRw, nil
}
