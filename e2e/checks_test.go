package e2e_test

import (
	"slices"
	"testing"

	"github.com/docker/docker/api/types/container"
)

// hostCheck is one automated check of the CIS Docker benchmark's section 5, or
// one of our own rules, on what the engine says of a container.
type hostCheck struct {
	name  string
	holds func(container.InspectResponse) bool
}

// sectionFive leaves out what a container cannot answer for: 5.1, 5.2 (AppArmor
// and SELinux belong to the engine's host), 5.7 (no ports at all, below), 5.27
// (image updates), 5.28 (the cap of processes is checked with the others).
var sectionFive = []hostCheck{
	{"5.3 no added capabilities, all dropped", func(c container.InspectResponse) bool {
		return len(c.HostConfig.CapAdd) == 0 && slices.Equal(c.HostConfig.CapDrop, []string{"ALL"})
	}},
	{"5.4 not privileged", func(c container.InspectResponse) bool { return !c.HostConfig.Privileged }},
	{"5.5, 5.19, 5.31 no host directory, no shared propagation, no engine socket", func(c container.InspectResponse) bool {
		return len(c.HostConfig.Binds) == 0 && len(c.Mounts) == 1 && c.Mounts[0].Type == "volume" && c.Mounts[0].Propagation == ""
	}},
	{"5.8, 5.13 no ports", func(c container.InspectResponse) bool {
		return len(c.HostConfig.PortBindings) == 0 && !c.HostConfig.PublishAllPorts
	}},
	{"5.9 not the host's network", func(c container.InspectResponse) bool { return c.HostConfig.NetworkMode != "host" }},
	{"5.10, 5.11, 5.28 memory, processor and processes are capped", func(c container.InspectResponse) bool {
		h := c.HostConfig
		return h.Memory > 0 && h.NanoCPUs > 0 && h.PidsLimit != nil && *h.PidsLimit > 0
	}},
	{"5.14 not restarted", func(c container.InspectResponse) bool { return c.HostConfig.RestartPolicy.IsNone() }},
	{"5.15, 5.16, 5.20, 5.30 no namespace of the host", func(c container.InspectResponse) bool {
		h := c.HostConfig
		return h.PidMode == "" && !h.IpcMode.IsHost() && !h.UTSMode.IsHost() && h.UsernsMode == ""
	}},
	{"5.17 no devices", func(c container.InspectResponse) bool {
		return len(c.HostConfig.Devices) == 0 && len(c.HostConfig.DeviceRequests) == 0 && len(c.HostConfig.DeviceCgroupRules) == 0
	}},
	{"5.18 limits of our own", func(c container.InspectResponse) bool { return len(c.HostConfig.Ulimits) > 0 }},
	{"5.21, 5.25 seccomp on, no new privileges", func(c container.InspectResponse) bool {
		o := c.HostConfig.SecurityOpt
		return slices.Contains(o, "no-new-privileges") && !slices.Contains(o, "seccomp=unconfined")
	}},
	{"5.24 no parent group of the caller's", func(c container.InspectResponse) bool { return c.HostConfig.CgroupParent == "" }},
}

// TestAttackT09 holds every kind of session container against the checks; a
// plain container fails several of them, so they can fail.
func TestAttackT09_TheBenchmarksChecksHold(t *testing.T) {
	t.Parallel()
	a := connect(t, stdioLegacy)
	for _, network := range []string{"none", "internal", "egress"} {
		box := the.engine.container(t, a.session(args{"network": network}))
		for _, check := range sectionFive {
			if !check.holds(box) {
				t.Errorf("%s: %s", network, check.name)
			}
		}
	}
	plain := container.InspectResponse{ContainerJSONBase: &container.ContainerJSONBase{HostConfig: &container.HostConfig{}}}
	failed := 0
	for _, check := range sectionFive {
		if !check.holds(plain) {
			failed++
		}
	}
	if failed < 5 {
		t.Errorf("a plain container fails only %d checks", failed)
	}
}

// Whatever an image says: the one here brings a volume, another a health check,
// another an entry point.
func TestD23_WhatAContainerOfOursIsWhateverItsImageSays(t *testing.T) {
	t.Parallel()
	a := connect(t, httpLegacy)
	for _, image := range []string{"caisson-session:latest", "caisson-test-healthcheck:latest", "caisson-test-entrypoint:latest", "caisson-test-volume:latest"} {
		box := the.engine.container(t, a.session(args{"image": image}))
		h, c := box.HostConfig, box.Config
		if h.LogConfig.Type != "none" || h.MemorySwap != h.Memory || h.Memory == 0 || h.Init == nil || !*h.Init || h.AutoRemove {
			t.Errorf("%s: log driver %q, memory %d, with swap %d, init %v", image, h.LogConfig.Type, h.Memory, h.MemorySwap, h.Init)
		}
		if c.Healthcheck == nil || !slices.Equal(c.Healthcheck.Test, []string{"NONE"}) || len(c.Entrypoint) == 0 || c.Entrypoint[0] != "sleep" || c.StopSignal == "" {
			t.Errorf("%s: health check %+v, entry point %v, stop signal %q", image, c.Healthcheck, c.Entrypoint, c.StopSignal)
		}
		if c.User == "" || c.User == "0" || c.User == "1000:1000" {
			t.Errorf("%s: process 1 runs as %q, which is root or the session's own user", image, c.User)
		}
		core := slices.IndexFunc(h.Ulimits, func(u *container.Ulimit) bool { return u.Name == "core" && u.Hard == 0 })
		files := slices.IndexFunc(h.Ulimits, func(u *container.Ulimit) bool { return u.Name == "nofile" && u.Hard > 0 })
		if core < 0 || files < 0 {
			t.Errorf("%s: limits %+v", image, h.Ulimits)
		}
	}
}

// The engine's host and the paths of its certificates are all that a server
// gets here; nothing names a provider, a manifest or a tool.
func TestCFG13_NamingTheEngineIsAllThatItTakes(t *testing.T) {
	t.Parallel()
	a, w := attach(t, start(t, launch{}), stdioLegacy)
	if got := a.sh(a.session(nil), "echo ready"); got != "ready\n" {
		t.Errorf("%q", got)
	}
	pure(t, w)
}
