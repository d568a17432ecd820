package docker

import (
	"context"
	"slices"
	"sync"

	"github.com/docker/docker/api/types/system"
	"github.com/docker/docker/api/types/volume"

	"caisson/sandbox"
)

// quotaTrial remembers what a trial of the engine's quotas showed.
type quotaTrial struct {
	mu            sync.Mutex
	known         bool
	layer, volume bool
}

// quotas says what the engine can cap by a real quota. No engine tells: it is
// tried once, and what is refused is watched instead. Concurrent first calls may
// each try.
func (p *Provider) quotas(ctx context.Context, img engineImage) (layer, volume bool, err error) {
	t := &p.disks.quotas
	t.mu.Lock()
	known, layer, volume := t.known, t.layer, t.volume
	t.mu.Unlock()
	if known {
		return layer, volume, nil
	}
	info, err := p.engineInfo(ctx)
	if err != nil {
		return false, false, err
	}
	if mayCapLayer(info) {
		if layer, err = p.tryLayer(ctx, img); err != nil {
			return false, false, err
		}
	}
	if volume, err = p.tryVolume(ctx); err != nil {
		return false, false, err
	}
	t.mu.Lock()
	t.known, t.layer, t.volume = true, layer, volume
	t.mu.Unlock()
	p.log.Info("disk quotas of the engine", "root", layer, "workspace", volume)
	return layer, volume, nil
}

// mayCapLayer says whether the storage driver is one that caps a container's
// layer or refuses to. Others take the option and ignore it.
func mayCapLayer(info system.Info) bool {
	switch info.Driver {
	case "overlay2":
		return slices.Contains(info.DriverStatus, [2]string{"Backing Filesystem", "xfs"})
	case "btrfs", "zfs":
		return true
	}
	return false
}

const trialMB = 16

// tryLayer makes a container with a capped layer and removes it.
func (p *Provider) tryLayer(ctx context.Context, img engineImage) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, createLimit)
	defer cancel()
	config, hostConfig, netConfig := createBody(blueprint{
		imageID: img.id, user: account{uid: 1, gid: 1}, network: networkNone, seccomp: p.seccomp, bare: true,
		labels: p.examineeLabels(), pids: ptr(int64(1)), disk: diskCaps{layerMB: trialMB},
	})
	made, err := p.api.ContainerCreate(ctx, config, hostConfig, netConfig, nil, examinePrefix+sandbox.NewExecID()[len("exec_"):])
	if err != nil {
		return false, p.tried("root", err)
	}
	ctx, cancelCleanup := cleanup(ctx)
	defer cancelCleanup()
	if err := p.remove(ctx, made.ID); err != nil {
		p.log.Warn("the container of a quota's trial could not be removed", "container", made.ID, "error", err) // the next sweep does
	}
	return true, nil
}

// tryVolume makes a capped volume and removes it.
func (p *Provider) tryVolume(ctx context.Context) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, callLimit)
	defer cancel()
	made, err := p.api.VolumeCreate(ctx, volume.CreateOptions{
		Driver: volumeDriver, DriverOpts: sizeOption(trialMB),
		Labels: map[string]string{labelSandbox: "1", labelDurability: string(sandbox.Ephemeral), labelInstance: p.cfg.Instance},
	})
	if err != nil {
		return false, p.tried("workspace", err)
	}
	ctx, cancelCleanup := cleanup(ctx)
	defer cancelCleanup()
	if err := p.api.VolumeRemove(ctx, made.Name, false); err != nil {
		p.log.Warn("the volume of a quota's trial could not be removed", "volume", made.Name, "error", err) // the next sweep does
	}
	return true, nil
}

// volumeDriver is the engine's own.
const volumeDriver = "local"

// tried is nil where the engine has refused a quota, and the error where it was
// not reached or has no room to say.
func (p *Provider) tried(what string, err error) error {
	if _, _, lost := p.linkFailure(err); lost || isNoSpace(err) {
		return p.failed("try the engine's quotas", err)
	}
	p.log.Info("the engine cannot cap the disk", "what", what, "reason", oneLine(afterColon(err.Error()), 200))
	return nil
}
