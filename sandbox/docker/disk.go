package docker

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/docker/docker/api/types"
	"github.com/docker/docker/api/types/volume"

	"caisson/sandbox"
)

// labelDisk is how a session's disk is watched: the most that it may hold, in
// bytes, and what is measured where that is the workspace alone. Empty: it is not
// watched.
const labelDisk = sandbox.LabelStem + "disk"

const workspaceAlone = " workspace"

// diskCaps is what of a container the engine itself caps. Zero: nothing.
type diskCaps struct {
	layerMB  int64 // its writable layer, by a quota
	volumeMB int64 // the workspace that is made with it, by a quota
	file     int64 // any one file, in bytes
}

// diskPlan is how the disk of one session is limited (D32). The zero value is no
// limit.
type diskPlan struct {
	limitMB       int64
	layer, volume bool // the engine caps them

	held  int64 // what a persistent workspace holds already, in bytes
	watch int64 // the most that the session may hold, in bytes; 0: not watched
}

// overSlack is how much a session that begins over its limit may add: it has to
// work to clear its workspace up.
const overSlack = 16 << 20

// bareSession is what a session's root file system may take before anything was done in
// it: a workspace that is full but for that leaves no room to clear it up either.
const bareSession = 1 << 20

// planDisk says what the engine will cap of a session of this image.
func (p *Provider) planDisk(ctx context.Context, img engineImage) (diskPlan, error) {
	if p.cfg.DiskMB <= 0 {
		return diskPlan{}, nil
	}
	layer, volume, err := p.quotas(ctx, img)
	return diskPlan{limitMB: p.cfg.DiskMB, layer: layer, volume: volume}, err
}

// settle is for when the workspace is known: one from before may have no quota,
// or be fuller than the limit.
func (d *diskPlan) settle(ctx context.Context, p *Provider, spec sandbox.Spec, name string, fresh bool) error {
	if d.limitMB <= 0 {
		return nil
	}
	if name != "" && !fresh {
		if err := d.look(ctx, p, spec, name); err != nil {
			return err
		}
	}
	if !d.layer || !d.volume {
		d.watch = d.limitMB << 20
		if d.held > d.watch-bareSession {
			d.watch = d.held + overSlack
		}
	}
	return nil
}

// look finds out about a workspace from before.
func (d *diskPlan) look(ctx context.Context, p *Provider, spec sandbox.Spec, name string) error {
	const op = "measure the workspace"
	callCtx, cancel := context.WithTimeout(ctx, callLimit)
	defer cancel()
	found, err := p.api.VolumeInspect(callCtx, name)
	if err != nil {
		return p.failed(op, err)
	}
	if d.volume = found.Options[optionSize] != ""; d.volume {
		return nil
	}
	ctx, cancelSizes := context.WithTimeout(ctx, measureLimit)
	defer cancelSizes()
	sizes, err := p.volumeSizes(ctx)
	if err != nil {
		return p.failed(op, err)
	}
	if d.held = sizes[name]; d.held < 0 {
		return sandbox.Errorf(op, sandbox.KindNoSpace,
			"the workspace %q has paths that are too long for the engine to measure it, so its disk limit cannot be watched; workspace_delete removes it", spec.WorkspaceKey)
	}
	return nil
}

func (d diskPlan) caps() diskCaps {
	c := diskCaps{file: d.watch}
	if d.layer {
		c.layerMB = d.limitMB
	}
	if d.volume {
		c.volumeMB = d.limitMB
	}
	return c
}

func (d diskPlan) label() string {
	switch {
	case d.watch == 0:
		return ""
	case d.layer:
		return strconv.FormatInt(d.watch, 10) + workspaceAlone
	default:
		return strconv.FormatInt(d.watch, 10)
	}
}

// readDisk reads labelDisk back. most is 0 for a session that is not watched.
func readDisk(label string) (most int64, alone bool) {
	number, alone := strings.CutSuffix(label, workspaceAlone)
	most, err := strconv.ParseInt(number, 10, 64)
	if err != nil || most < 0 {
		return 0, false
	}
	return most, alone
}

// notes say which kind of limit is on, and that it is passed already.
func (d diskPlan) notes() []sandbox.Note {
	const measured = "it is measured every few seconds, and no file may be larger than that"
	n := d.limitMB
	var notes []sandbox.Note
	switch {
	case n <= 0:
		return nil
	case d.watch == 0:
		return []sandbox.Note{{Code: sandbox.NoteDiskQuota, Text: fmt.Sprintf("the engine caps the disk: %d MB for the root file system and %d MB for the workspace; a write past that fails", n, n)}}
	case d.layer:
		notes = append(notes, sandbox.Note{Code: sandbox.NoteDiskWatched, Text: fmt.Sprintf("the engine caps the root file system at %d MB; the session is ended when its workspace passes %d MB: "+measured, n, d.watch>>20)})
	default:
		notes = append(notes, sandbox.Note{Code: sandbox.NoteDiskWatched, Text: fmt.Sprintf("the session is ended when its root file system and its workspace together pass %d MB: "+measured, d.watch>>20)})
	}
	if d.watch > n<<20 {
		notes = append(notes, sandbox.Note{Code: "disk_over_limit", Text: fmt.Sprintf("the workspace holds %d MB already, and the limit is %d MB for all: remove what is not needed", d.held>>20, n)})
	}
	return notes
}

// volumeOptions are the options of a workspace that is made by itself.
func (d diskPlan) volumeOptions() map[string]string { return sizeOption(d.caps().volumeMB) }

// optionSize is the name of both quotas: the storage driver's and the local
// volume driver's.
const optionSize = "size"

// sizeOption asks for a quota; nil for none.
func sizeOption(mb int64) map[string]string {
	if mb <= 0 {
		return nil
	}
	return map[string]string{optionSize: strconv.FormatInt(mb, 10) + "M"}
}

// volumeSizes are the sizes in bytes of the engine's volumes without options; -1
// for one that the engine cannot measure.
func (p *Provider) volumeSizes(ctx context.Context) (map[string]int64, error) {
	du, err := p.measure(ctx, types.VolumeObject)
	if err != nil {
		return nil, err
	}
	return sizesOf(du.Volumes), nil
}

func sizesOf(volumes []*volume.Volume) map[string]int64 {
	sizes := make(map[string]int64, len(volumes))
	for _, v := range volumes {
		if v.UsageData != nil {
			sizes[v.Name] = v.UsageData.Size
		}
	}
	return sizes
}
