package docker

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/docker/docker/api/types/filters"
	"github.com/docker/docker/api/types/volume"

	"caisson/sandbox"
	"caisson/sandbox/docker/internal/enginetest"
)

// leaveHelper makes a container of a look, as a server that ends in the midst leaves it.
func leaveHelper(t *testing.T, p *Provider, name string, change func(labels map[string]string)) string {
	t.Helper()
	labels := map[string]string{
		labelSandbox: "", labelRole: roleExamine, labelInstance: p.cfg.Instance,
		labelCreated: "2100-01-01T00:00:00Z", // the engine's own time counts
	}
	change(labels)
	config, host, net := createBody(blueprint{imageID: "caisson-test-volume", labels: labels, network: networkNone, user: account{uid: 1, gid: 1}, pids: ptr(int64(1))})
	made, err := p.api.ContainerCreate(t.Context(), config, host, net, nil, name)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.remove(context.Background(), made.ID) })
	return made.ID
}

func leaveVolume(t *testing.T, p *Provider, name string, durability sandbox.Durability) string {
	t.Helper()
	made, err := p.api.VolumeCreate(t.Context(), volume.CreateOptions{Name: name, Labels: map[string]string{
		labelSandbox: "1", labelInstance: p.cfg.Instance, labelDurability: string(durability),
	}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.api.VolumeRemove(context.Background(), made.Name, false) })
	return made.Name
}

// left says which containers and volumes of these are there.
func left(t *testing.T, p *Provider, refs ...string) []string {
	t.Helper()
	var there []string
	for _, ref := range refs {
		_, c := p.api.ContainerInspect(t.Context(), ref)
		_, v := p.api.VolumeInspect(t.Context(), ref)
		if c == nil || v == nil {
			there = append(there, ref)
		}
	}
	return there
}

func TestDUR01_AttackT60_RemainsArePruned(t *testing.T) {
	t.Parallel()
	p, other := provider(t), provider(t)
	own := func(instance string) bool { return instance == p.cfg.Instance }
	same := func(map[string]string) {}
	tag := strings.TrimPrefix(sandbox.NewSessionID(), "sbx_")
	helper := leaveHelper(t, p, examinePrefix+tag, same)
	mounts := inspectMounts(t, p, helper)
	loose := leaveVolume(t, p, "", sandbox.Ephemeral)
	keep := []string{
		leaveHelper(t, other, examinePrefix+tag+"-other", same),
		leaveHelper(t, p, "stranger-"+tag, same),
		leaveHelper(t, p, containerPrefix+"x-"+tag, func(l map[string]string) { l[labelRole] = roleSession }),
		leaveVolume(t, other, "", sandbox.Ephemeral),
		leaveVolume(t, p, "", sandbox.Persistent),
		leaveVolume(t, p, volumePrefix+tag, sandbox.Ephemeral),
	}
	s := create(t, p, specOf(""))
	keep = append(keep, mounted(t, p, s)...)

	if removed, err := p.Prune(t.Context(), time.Hour, own); err != nil || len(removed) != 0 {
		t.Errorf("what is young was removed: %v, %v", removed, err)
	}
	if removed, err := p.Prune(t.Context(), 0, func(string) bool { return false }); err != nil || len(removed) != 0 {
		t.Errorf("what nobody approved was removed: %v, %v", removed, err)
	}
	var removed []string
	eventually(t, "the remains are gone", func() bool {
		some, err := p.Prune(t.Context(), 0, own)
		if err != nil {
			t.Fatal(err)
		}
		removed = append(removed, some...)
		return len(left(t, p, helper, loose)) == 0
	})
	slices.Sort(removed)
	if want := []string{"container " + examinePrefix + tag, "volume " + loose}; !slices.Equal(removed, want) {
		t.Errorf("removed %v, want %v", removed, want)
	}
	wantNoVolume(t, p, mounts)
	if there := left(t, p, keep...); !slices.Equal(there, keep) {
		t.Errorf("there is %v of %v", there, keep)
	}
}

func inspectMounts(t *testing.T, p *Provider, id string) []string {
	t.Helper()
	c, err := p.api.ContainerInspect(t.Context(), id)
	if err != nil || len(c.Mounts) < 2 {
		t.Fatalf("the control: %v, %+v", err, c.Mounts)
	}
	var names []string
	for _, m := range c.Mounts {
		names = append(names, m.Name)
	}
	return names
}

// TestAttackT60_PruneLooksAgain takes what was listed away, or into use, before it is removed.
func TestAttackT60_PruneLooksAgain(t *testing.T) {
	t.Parallel()
	p, proxy := faulty(t)
	own := remains{before: time.Now().Add(time.Hour), of: func(i string) bool { return i == p.cfg.Instance }}
	tag := strings.TrimPrefix(sandbox.NewSessionID(), "sbx_")
	renamed := leaveHelper(t, p, "taken-"+tag, func(map[string]string) {})
	if gone, err := p.pruneHelper(t.Context(), renamed, own); gone || err != nil || len(left(t, p, renamed)) != 1 {
		t.Errorf("renamed meanwhile: %v, %v", gone, err)
	}
	s := create(t, p, specOf(""))
	held := mounted(t, p, s)[0]
	if gone, err := p.pruneVolume(t.Context(), held, own); gone || err != nil {
		t.Errorf("held by a session: %v, %v", gone, err)
	}
	if gone, err := p.pruneVolume(t.Context(), "nowhere-"+tag, own); gone || err != nil {
		t.Errorf("gone meanwhile: %v, %v", gone, err)
	}
	loose := leaveVolume(t, p, "", sandbox.Ephemeral)
	helper := leaveHelper(t, p, examinePrefix+tag, func(map[string]string) {})
	proxy.Inject(enginetest.Fault{Method: "DELETE", Path: calls("^/volumes/"), Status: 500, Message: "no"})
	if _, err := p.pruneHelpers(t.Context(), own); err != nil {
		t.Error(err)
	}
	_, err := p.pruneVolumes(t.Context(), own)
	if err == nil || len(left(t, p, loose)) != 1 || len(left(t, p, helper)) != 0 {
		t.Errorf("a volume that cannot be removed: %v", err)
	}
	proxy.Clear()
	if removed, err := p.pruneVolumes(t.Context(), own); err != nil || !slices.Equal(removed, []string{"volume " + loose}) {
		t.Errorf("%v, %v", removed, err)
	}
}

// TestAttackT72_LooksSweepTheirRemainsByTheEnginesClock sees that a look removes no
// container of another one that is under way.
func TestAttackT72_LooksSweepTheirRemainsByTheEnginesClock(t *testing.T) {
	t.Parallel()
	p := provider(t)
	young := leaveHelper(t, p, examinePrefix+strings.TrimPrefix(sandbox.NewSessionID(), "sbx_"), func(l map[string]string) { l[labelCreated] = "1970-01-01T00:00:00Z" })
	if err := p.sweepExaminees(t.Context()); err != nil || len(left(t, p, young)) != 1 {
		t.Errorf("a look that is under way was swept: %v", err)
	}
	found, err := p.containersOf(t.Context(), filters.NewArgs(filters.Arg("id", young)))
	if err != nil || len(found) != 1 {
		t.Fatalf("the control: %v, %v", err, found)
	}
}
