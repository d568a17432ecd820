package docker

import (
	"slices"
	"strings"
	"testing"
	"time"

	"caisson/sandbox"
)

// toolSpec is a tool's container with the defaults of the docker executor (TX-12).
func toolSpec(change func(*sandbox.OperatorSpec)) sandbox.Spec {
	o := &sandbox.OperatorSpec{MemoryBytes: 512 << 20, CapDrop: []string{"ALL"}, SecurityOpt: []string{"no-new-privileges"}}
	if change != nil {
		change(o)
	}
	return sandbox.Spec{
		Owner: sandbox.Owner{Name: "tester", Tools: true}, Image: busybox, Network: sandbox.NetworkNone, Durability: sandbox.Ephemeral,
		CPU: ptr(0.5), Pids: ptr(int64(256)), TTL: time.Hour, Operator: o,
	}
}

func TestTX12_TX13_D31_AToolsOptionsReachTheEngine(t *testing.T) {
	t.Parallel()
	p := provider(t)
	c := inspect(t, p, create(t, p, toolSpec(nil)))
	h := c.HostConfig
	if h.Memory != 536870912 || h.MemorySwap != h.Memory || h.NanoCPUs != 500_000_000 || h.PidsLimit == nil || *h.PidsLimit != 256 ||
		!slices.Equal(h.CapDrop, []string{"ALL"}) || len(h.CapAdd) > 0 || h.Privileged || len(h.SecurityOpt) != 2 || h.SecurityOpt[0] != "no-new-privileges" ||
		!strings.HasPrefix(h.SecurityOpt[1], "seccomp={") || h.NetworkMode != "none" || len(h.MaskedPaths) == 0 || c.Config.Labels[labelTools] != "1" {
		t.Errorf("defaults: %+v", h)
	}
	odd := create(t, p, toolSpec(func(o *sandbox.OperatorSpec) {
		o.MemoryBytes, o.CapDrop, o.SecurityOpt, o.Runtime, o.User = 64<<20+4096, []string{"NET_RAW"}, []string{"seccomp=unconfined", "systempaths=unconfined"}, "crun", "4242"
	}))
	h = inspect(t, p, odd).HostConfig
	if h.Memory != 64<<20+4096 || h.Runtime != "crun" || !slices.Equal(h.CapDrop, []string{"CAP_NET_RAW"}) || !slices.Equal(h.SecurityOpt, []string{"seccomp=unconfined"}) || len(h.MaskedPaths) > 0 {
		t.Errorf("a rule's: %+v", h)
	}
	if got := sh(t, odd, "id -u; id -g; grep -E '^(CapEff|NoNewPrivs|Seccomp):' /proc/self/status | tr -d '\\t\\n'"); got != "4242\n4242\nCapEff:0000000000000000NoNewPrivs:0Seccomp:0" {
		t.Errorf("a command has %q", got)
	}
	// The next session of the same image is not that user's.
	if got := sh(t, create(t, p, specOf("")), "id -u"); got != "1000\n" {
		t.Errorf("a client's session runs as %s", got)
	}
}

func TestTX13_D31_WhatTheEngineCannotEnforceIsRefused(t *testing.T) {
	t.Parallel()
	p := provider(t)
	for field, change := range map[string]func(*sandbox.OperatorSpec){
		"user":            func(o *sandbox.OperatorSpec) { o.User = "root" },
		"user ":           func(o *sandbox.OperatorSpec) { o.User = "nosuchuser" },
		"runtime":         func(o *sandbox.OperatorSpec) { o.Runtime = "nosuchruntime" },
		"security_opt":    func(o *sandbox.OperatorSpec) { o.SecurityOpt = []string{"label=type:x"} },
		"security_opt  ":  func(o *sandbox.OperatorSpec) { o.SecurityOpt = []string{"apparmor=nosuchprofile"} },
		"security_opt   ": func(o *sandbox.OperatorSpec) { o.SecurityOpt = []string{"seccomp=/nosuchfile"} },
	} {
		_, err := tryCreate(t, p, toolSpec(change))
		wantError(t, err, sandbox.KindRejected, strings.TrimSpace(field))
	}
	if left := containers(t, p); len(left) != 0 {
		t.Errorf("left behind: %v", left)
	}
}

// TestTX03_TX04_TX19_FilesAreThereBeforeTheStart sees an envelope as the tool sees it, and
// that nobody else does.
func TestTX03_TX04_TX19_FilesAreThereBeforeTheStart(t *testing.T) {
	t.Parallel()
	p := provider(t)
	const canary = "s3cr3t-canary"
	s := create(t, p, toolSpec(func(o *sandbox.OperatorSpec) {
		o.Files = []sandbox.InitialFile{
			{Path: "/tmp/envelope.json", Content: sandbox.NewSecret(canary)},
			{Path: "/tmp/new/deep/run", Mode: 0o755, Content: sandbox.NewSecret("#!/bin/sh\necho ran\n")},
			{Path: workspacePath + "/data/in", Content: sandbox.NewSecret(strings.Repeat("x", 1<<20))},
			{Path: "/tmp/new/empty"},
		}
	}))
	got := sh(t, s, `cd /tmp && stat -c '%a %u:%g %n' . envelope.json new new/deep new/deep/run new/empty /workspace /workspace/data /workspace/data/in
		cat envelope.json; echo; new/deep/run; wc -c < /workspace/data/in; rm -r envelope.json new && ls | grep -v tai-exec || true`)
	want := `1777 0:0 .
600 1000:1000 envelope.json
755 1000:1000 new
755 1000:1000 new/deep
755 1000:1000 new/deep/run
600 1000:1000 new/empty
755 1000:1000 /workspace
755 1000:1000 /workspace/data
600 1000:1000 /workspace/data/in
` + canary + "\nran\n1048576\n"
	if got != want {
		t.Errorf("%s", got)
	}
	c := inspect(t, p, s)
	if text := strings.Join(append(append(slices.Clone(c.Config.Env), c.Config.Cmd...), c.Args...), " "); strings.Contains(text, canary) {
		t.Error("an inspect shows it")
	}
	for name, value := range c.Config.Labels {
		if strings.Contains(value, canary) {
			t.Errorf("the label %s shows it", name)
		}
	}
	if s.Spec().Operator.Files != nil {
		t.Error("the session keeps what was put into it")
	}
	if s.Info().MemoryMB != 512 || !s.Info().Tools {
		t.Errorf("%+v", s.Info())
	}
}
