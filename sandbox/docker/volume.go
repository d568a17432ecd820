package docker

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/containerd/errdefs"
	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/filters"
	"github.com/docker/docker/api/types/volume"

	"caisson/sandbox"
)

const volumePrefix = "tai-sbx-"

// volumeName is the volume of an owner's workspace (DUR-2, D7). A dot cannot be
// in a key, so no principal's name can be another owner's.
func volumeName(owner sandbox.Owner, key string) string {
	if owner.Principal || owner.Tools {
		return volumePrefix + owner.Hash() + "." + key
	}
	return volumePrefix + key
}

// volume makes sure of a spec's named volume; empty for an ephemeral workspace.
// fresh says that this call made it, with these options of the local driver's.
func (p *Provider) volume(ctx context.Context, spec sandbox.Spec, options map[string]string) (name string, fresh bool, err error) {
	if spec.Durability != sandbox.Persistent {
		return "", false, nil
	}
	const op = "make the workspace"
	ctx, cancel := context.WithTimeout(ctx, callLimit)
	defer cancel()
	name = volumeName(spec.Owner, spec.WorkspaceKey)
	found, err := p.api.VolumeInspect(ctx, name)
	if errdefs.IsNotFound(err) {
		fresh = true
		found, err = p.api.VolumeCreate(ctx, volume.CreateOptions{Name: name, DriverOpts: options, Labels: map[string]string{
			labelSandbox: "1", labelOwner: spec.Owner.Hash(), labelWorkspace: spec.WorkspaceKey,
			labelDurability: string(sandbox.Persistent), labelInstance: p.cfg.Instance,
			labelCreated: time.Now().UTC().Format(time.RFC3339Nano), labelVersion: p.cfg.Version,
		}})
	}
	switch {
	case err != nil && isNoSpace(err):
		return "", false, sandbox.Errorf(op, sandbox.KindNoSpace, "the engine's disk is full").Because(err)
	case err != nil && errdefs.IsInternal(err):
		// Never an ephemeral one in its place (DUR-7).
		return "", false, sandbox.Rejected("durability", "the engine cannot make a persistent workspace").Because(err)
	case err != nil:
		return "", false, p.failed(op, err)
	case !ownVolume(&found, spec.Owner, spec.WorkspaceKey):
		return "", false, sandbox.Rejected("workspace_key", "the engine has a volume %q that is not a workspace of yours; choose another key", name)
	}
	return name, fresh, nil
}

// ownVolume says whether a volume is the owner's workspace: a name alone would
// hand out whatever volume happens to be called so.
func ownVolume(v *volume.Volume, owner sandbox.Owner, key string) bool {
	return v.Labels[labelSandbox] == "1" && v.Labels[labelDurability] == string(sandbox.Persistent) &&
		v.Labels[labelOwner] == owner.Hash() && v.Labels[labelWorkspace] == key
}

// Workspaces returns the owner's persistent workspaces (sandbox.Provider).
func (p *Provider) Workspaces(ctx context.Context, owner sandbox.Owner) ([]sandbox.Workspace, error) {
	const op = "list workspaces"
	if err := p.connect(ctx); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, callLimit)
	defer cancel()
	found, err := p.api.VolumeList(ctx, volume.ListOptions{Filters: filters.NewArgs(
		filters.Arg("label", labelSandbox+"=1"), filters.Arg("label", labelOwner+"="+owner.Hash()))})
	if err != nil {
		return nil, p.failed(op, err)
	}
	used, err := p.volumesInUse(ctx, found.Volumes)
	if err != nil {
		return nil, p.failed(op, err)
	}
	var workspaces []sandbox.Workspace
	for _, v := range found.Volumes {
		key := v.Labels[labelWorkspace]
		if !ownVolume(v, owner, key) || v.Name != volumeName(owner, key) {
			continue
		}
		w := sandbox.Workspace{Key: key, InUse: used[v.Name]}
		// A time that cannot be read stays zero; the workspace is shown all the same.
		w.CreatedAt, _ = time.Parse(time.RFC3339Nano, cmp.Or(v.Labels[labelCreated], v.CreatedAt))
		workspaces = append(workspaces, w)
	}
	slices.SortFunc(workspaces, func(a, b sandbox.Workspace) int { return cmp.Compare(a.Key, b.Key) })
	return workspaces, nil
}

// volumesInUse says which volumes a container holds, of ours or not.
func (p *Provider) volumesInUse(ctx context.Context, volumes []*volume.Volume) (map[string]bool, error) {
	if len(volumes) == 0 {
		return nil, nil
	}
	args := filters.NewArgs()
	for _, v := range volumes {
		args.Add("volume", v.Name)
	}
	holders, err := p.api.ContainerList(ctx, container.ListOptions{All: true, Filters: args})
	if err != nil {
		return nil, err
	}
	used := map[string]bool{}
	for _, c := range holders {
		for _, m := range c.Mounts {
			used[m.Name] = true
		}
	}
	return used, nil
}

// DeleteWorkspace removes a persistent workspace, never by force (DUR-4, DUR-5;
// sandbox.Provider).
func (p *Provider) DeleteWorkspace(ctx context.Context, owner sandbox.Owner, key string) error {
	const op = "delete the workspace"
	if err := p.connect(ctx); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, createLimit)
	defer cancel()
	name := volumeName(owner, key)
	found, err := p.api.VolumeInspect(ctx, name)
	if err == nil && ownVolume(&found, owner, key) {
		err = p.api.VolumeRemove(ctx, name, false)
	} else if err == nil {
		return noWorkspace(op, key)
	}
	switch {
	case err == nil:
		return nil
	case errdefs.IsNotFound(err):
		return noWorkspace(op, key).Because(err)
	case errdefs.IsConflict(err):
		return sandbox.Errorf(op, sandbox.KindWorkspaceInUse, "the workspace %q is held by a session; destroy that first", key).Because(err)
	}
	return p.failed(op, err)
}

func noWorkspace(op, key string) *sandbox.Error {
	return sandbox.Errorf(op, sandbox.KindWorkspaceNotFound, "there is no workspace %q", key)
}
