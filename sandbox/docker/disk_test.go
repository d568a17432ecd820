package docker

import (
	"strings"
	"testing"

	"github.com/docker/docker/api/types/system"

	"caisson/sandbox"
)

func TestD32_EachPlanSaysAndAsksForWhatHolds(t *testing.T) {
	const mib = 1 << 20
	for name, c := range map[string]struct {
		plan  diskPlan
		caps  diskCaps
		label string
		notes string // codes
		words string // of the first note
	}{
		"no limit":           {},
		"both capped":        {diskPlan{limitMB: 64, layer: true, volume: true}, diskCaps{layerMB: 64, volumeMB: 64}, "", "disk_quota", "a write past that fails"},
		"watched":            {diskPlan{limitMB: 64, watch: 64 * mib}, diskCaps{file: 64 * mib}, "67108864", "disk_watched", "together pass 64 MB"},
		"layer capped":       {diskPlan{limitMB: 64, layer: true, watch: 64 * mib}, diskCaps{layerMB: 64, file: 64 * mib}, "67108864 workspace", "disk_watched", "its workspace passes 64 MB"},
		"workspace capped":   {diskPlan{limitMB: 64, volume: true, watch: 64 * mib}, diskCaps{volumeMB: 64, file: 64 * mib}, "67108864", "disk_watched", "together"},
		"over at its begin":  {diskPlan{limitMB: 64, held: 80 * mib, watch: 96 * mib}, diskCaps{file: 96 * mib}, "100663296", "disk_watched disk_over_limit", "pass 96 MB"},
		"under at its begin": {diskPlan{limitMB: 64, held: 60 * mib, watch: 64 * mib}, diskCaps{file: 64 * mib}, "67108864", "disk_watched", "pass 64 MB"},
	} {
		var codes []string
		var first string
		for _, n := range c.plan.notes() {
			codes, first = append(codes, n.Code), first+n.Text
		}
		if got := strings.Join(codes, " "); c.plan.caps() != c.caps || c.plan.label() != c.label || got != c.notes || !strings.Contains(first, c.words) {
			t.Errorf("%s: caps %+v, label %q, notes %s: %s", name, c.plan.caps(), c.plan.label(), got, first)
		}
		if most, alone := readDisk(c.label); most != c.plan.watch || alone != (c.plan.layer && most > 0) {
			t.Errorf("%s: read back as %d, %v", name, most, alone)
		}
	}
	for _, label := range []string{"", "x", "-5", " workspace", "1e9"} {
		if most, _ := readDisk(label); most != 0 {
			t.Errorf("%q is read as %d", label, most)
		}
	}
}

func TestD32_OnlyDriversThatRefuseAreTrusted(t *testing.T) {
	on := func(driver, fs string) system.Info {
		return system.Info{Driver: driver, DriverStatus: [][2]string{{"Backing Filesystem", fs}, {"Supports d_type", "true"}}}
	}
	for info, may := range map[[2]string]bool{
		{"overlay2", "xfs"}: true, {"overlay2", "extfs"}: false, {"btrfs", "<unknown>"}: true, {"zfs", ""}: true,
		{"overlayfs", "xfs"}: false, {"overlay", "xfs"}: false, {"vfs", "xfs"}: false, {"fuse-overlayfs", "xfs"}: false,
	} {
		if got := mayCapLayer(on(info[0], info[1])); got != may {
			t.Errorf("%v: %v", info, got)
		}
	}
}

func TestD32_WhatIsMeasuredIsJudged(t *testing.T) {
	p := bare(t)
	all := []watched{
		{sessionID: "both", containerID: "1", most: 100, layer: true, volumes: []string{"a", "b"}},
		{sessionID: "workspace", containerID: "2", most: 100, volumes: []string{"c"}},
		{sessionID: "blind", containerID: "3", most: 100, layer: true, volumes: []string{"d"}},
		{sessionID: "gone", containerID: "4", most: 100, layer: true, volumes: []string{"e"}},
	}
	ended := func(over []sandbox.Overfull) string {
		var ids []string
		for _, o := range over {
			ids = append(ids, o.ID)
		}
		return strings.Join(ids, " ")
	}
	layers := map[string]int64{"1": 60, "2": 500, "3": 1}
	volumes := map[string]int64{"a": 20, "b": 20, "c": 100, "d": -1}
	for range blindTries - 1 {
		if got := ended(p.judge(all, layers, volumes)); got != "" {
			t.Fatalf("at their limits: %s", got)
		}
	}
	volumes["d"] = 5 // one that can be measured again begins anew
	p.judge(all, layers, volumes)
	volumes["d"], layers["1"], volumes["c"] = -1, 61, 101
	if got := ended(p.judge(all, layers, volumes)); got != "both workspace" {
		t.Errorf("past their limits: %s", got)
	}
	p.judge(all[2:], layers, volumes)
	if got := ended(p.judge(all[2:], layers, volumes)); got != "blind" {
		t.Errorf("not measurable three times: %s", got)
	}
}
