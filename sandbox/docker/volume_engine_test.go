package docker

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/docker/docker/api/types/volume"

	"caisson/sandbox"
)

func TestDUR02_DUR03_DUR06_DUR08_PersistentWorkspace(t *testing.T) {
	t.Parallel()
	p := provider(t)
	owner := sandbox.Owner{Name: "dur-" + testInstance, Principal: true}
	spec := specOf("")
	spec.Owner, spec.Durability, spec.WorkspaceKey = owner, sandbox.Persistent, "main"
	t.Cleanup(func() {
		ctx, cancel := cleanup(context.Background())
		defer cancel()
		if err := p.DeleteWorkspace(ctx, owner, "main"); err != nil && sandbox.KindOf(err) != sandbox.KindWorkspaceNotFound {
			t.Error(err)
		}
	})
	a := create(t, p, spec)
	sh(t, a, "echo 1 >/workspace/f")
	c := inspect(t, p, a)
	name := "tai-sbx-" + owner.Hash() + ".main"
	if len(c.Mounts) != 1 || c.Mounts[0].Name != name {
		t.Errorf("mounts %+v", c.Mounts)
	}
	v, err := p.api.VolumeInspect(t.Context(), name)
	if err != nil || v.Labels[labelSandbox] != "1" || v.Labels[labelWorkspace] != "main" || v.Labels[labelDurability] != "persistent" || v.Labels[labelOwner] != owner.Hash() {
		t.Errorf("%v, %+v", err, v.Labels)
	}
	list, err := p.Workspaces(t.Context(), owner)
	if err != nil || len(list) != 1 || list[0].Key != "main" || !list[0].InUse || time.Since(list[0].CreatedAt) > time.Hour {
		t.Errorf("%v, %+v", err, list)
	}
	wantError(t, p.DeleteWorkspace(t.Context(), owner, "main"), sandbox.KindWorkspaceInUse, "")
	destroy(t, p, a.info.ID)

	spec.Image = debian // of another owner of its /workspace, were it fresh
	b := create(t, p, spec)
	if got := sh(t, b, "cat /workspace/f; echo 2 >>/workspace/g; cat /workspace/g"); got != "1\n2\n" {
		t.Errorf("%q", got)
	}
	if len(b.Info().Notes) != 0 {
		t.Errorf("notes %v", b.Info().Notes)
	}
	destroy(t, p, b.info.ID)

	spec.Image = "caisson-test-nonroot" // of another user
	c2 := create(t, p, spec)
	if got := sh(t, c2, "cat /workspace/f; echo 3 >/workspace/h; cat /workspace/h"); got != "1\n3\n" || c2.user.uid == b.user.uid {
		t.Errorf("%q as %v", got, c2.user)
	}
	if notes := c2.Info().Notes; len(notes) != 1 || notes[0].Code != "workspace_taken_over" {
		t.Errorf("notes %v", notes)
	}
	destroy(t, p, c2.info.ID)

	if others, err := p.Workspaces(t.Context(), sandbox.Owner{Name: "stranger", Principal: true}); err != nil || len(others) != 0 {
		t.Errorf("a stranger sees %+v, %v", others, err)
	}
	wantError(t, p.DeleteWorkspace(t.Context(), sandbox.Owner{Name: "stranger", Principal: true}, "main"), sandbox.KindWorkspaceNotFound, "")
	if list, err = p.Workspaces(t.Context(), owner); err != nil || len(list) != 1 || list[0].InUse {
		t.Errorf("%v, %+v", err, list)
	}
	if err := p.DeleteWorkspace(t.Context(), owner, "main"); err != nil {
		t.Error(err)
	}
	wantError(t, p.DeleteWorkspace(t.Context(), owner, "main"), sandbox.KindWorkspaceNotFound, "")
}

// TestD07_ForeignVolumeIsNoWorkspace makes a volume of a workspace's name that
// is none.
func TestD07_ForeignVolumeIsNoWorkspace(t *testing.T) {
	t.Parallel()
	p := provider(t)
	owner := sandbox.Owner{Name: "single-" + testInstance}
	key := strings.ReplaceAll(testInstance, ".", "-")
	name := volumeName(owner, key)
	if _, err := p.api.VolumeCreate(t.Context(), volume.CreateOptions{Name: name}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := cleanup(context.Background())
		defer cancel()
		if err := p.api.VolumeRemove(ctx, name, false); err != nil {
			t.Error(err)
		}
	})
	spec := specOf("")
	spec.Owner, spec.Durability, spec.WorkspaceKey = owner, sandbox.Persistent, key
	_, err := tryCreate(t, p, spec)
	wantError(t, err, sandbox.KindRejected, "workspace_key", name)
	wantError(t, p.DeleteWorkspace(t.Context(), owner, key), sandbox.KindWorkspaceNotFound, "")
}
