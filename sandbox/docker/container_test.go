package docker

import (
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/mount"
	"github.com/google/go-cmp/cmp"

	"caisson/sandbox"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// blueprints are creates of every kind.
func blueprints() map[string]blueprint {
	p := &Provider{cfg: Config{Instance: "one", Version: "1.2.3"}}
	created := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	facts := imageFacts{user: account{uid: 1000, gid: 1000, name: "agent", home: "/home/agent"}, bash: true}
	spec := sandbox.Spec{
		Owner: sandbox.Owner{Name: "alice", Principal: true}, Image: "img:1", Network: sandbox.NetworkEgress, Durability: sandbox.Persistent, WorkspaceKey: "main",
		CPU: ptr(1.5), MemoryMB: ptr(int64(512)), Pids: ptr(int64(100)), TTL: time.Hour,
		Env: map[string]sandbox.Secret{"TOKEN": sandbox.NewSecret("s3cret"), "HOME": sandbox.NewSecret("/elsewhere")}, Labels: map[string]string{"team": "x"},
	}
	env, _ := sessionEnv(facts.user, spec.Env, []string{"PATH=/bin", "LD_PRELOAD=/evil.so", "BASH_ENV=/evil", "BASH_FUNC_ls%%=() { :; }"})
	plainEnv, _ := sessionEnv(facts.user, nil, nil)
	const id = "sbx_aaaaaaaaaaaaaaaaaaaaaaaaaa"
	return map[string]blueprint{
		"none": {
			imageID: "sha256:0", user: facts.user, network: "none", sinkDNS: true, env: plainEnv, seccomp: "seccomp=PROFILE",
			labels: p.sessionLabels(id, sandbox.Spec{Image: "img", Network: sandbox.NetworkNone, Durability: sandbox.Ephemeral, TTL: time.Minute}, facts, created, nil),
			onVol:  map[string]string{labelID: id},
		},
		"internal": {
			imageID: "sha256:0", user: facts.user, network: internalNetwork, sinkDNS: true, env: plainEnv, seccomp: "seccomp=PROFILE",
			cpu: ptr(0.25), memory: ptr(int64(64 << 20)), pids: ptr(int64(32)), labels: map[string]string{}, runtime: "runsc",
		},
		"egress_persistent": {
			imageID: "sha256:0", user: facts.user, network: egressNetwork, env: env, seccomp: "seccomp=PROFILE",
			cpu: spec.CPU, memory: spec.Memory(), pids: spec.Pids, volume: volumeName(spec.Owner, spec.WorkspaceKey),
			labels: p.sessionLabels(id, spec, facts, created, []sandbox.Note{{Code: "a", Text: "b"}}),
		},
		"disk": {
			imageID: "sha256:0", user: facts.user, network: "none", sinkDNS: true, seccomp: "seccomp=PROFILE",
			onVol: map[string]string{labelID: id}, disk: diskCaps{layerMB: 64, volumeMB: 32, file: 16 << 20},
		},
		"nobody_engine_seccomp": {imageID: "sha256:0", user: account{uid: 65534, gid: 65534}, network: "none", sinkDNS: true},
		"lease":                 {bare: true, user: account{uid: 1, gid: 1}, network: "none", pids: ptr(int64(1)), labels: map[string]string{labelRole: roleLease}},
	}
}

// TestAttackT07_CreateBodiesAreAsReviewed compares every kind of create with its
// golden file. A change of one is a change of the hardening.
func TestAttackT07_CreateBodiesAreAsReviewed(t *testing.T) {
	for name, b := range blueprints() {
		config, hostConfig, netConfig := createBody(b)
		body, err := json.MarshalIndent(container.CreateRequest{Config: config, HostConfig: hostConfig, NetworkingConfig: netConfig}, "", "  ")
		if err != nil {
			t.Fatal(err)
		}
		file := filepath.Join("testdata", "create_"+name+".json")
		if *update {
			if err := os.WriteFile(file, append(body, '\n'), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(string(want), string(body)+"\n"); diff != "" {
			t.Errorf("%s: (-golden +made)\n%s", name, diff)
		}
	}
}

// TestAttackT07_NoBodyAsksForTheHost walks the bodies for what must never be in
// one, whatever a caller wrote.
func TestAttackT07_NoBodyAsksForTheHost(t *testing.T) {
	evil := blueprint{
		imageID: "--privileged", env: []string{"A=--privileged", "B=/var/run/docker.sock:/x"}, network: egressNetwork,
		labels: map[string]string{"x": "--cap-add=ALL"}, volume: "tai-sbx-n", seccomp: "seccomp=PROFILE", user: account{uid: 1000, gid: 1000},
	}
	all := blueprints()
	all["evil"] = evil
	for name, b := range all {
		config, h, _ := createBody(b)
		opts := slices.Clone(h.SecurityOpt)
		opts = slices.DeleteFunc(opts, func(o string) bool { return o == "no-new-privileges" || o == b.seccomp })
		switch {
		case h.Privileged, len(h.Binds)+len(h.CapAdd)+len(h.Devices)+len(h.DeviceRequests)+len(h.DeviceCgroupRules)+len(h.GroupAdd)+len(h.VolumesFrom)+len(h.Links)+len(h.Tmpfs) != 0,
			h.PidMode != "", h.UsernsMode != "", h.UTSMode != "", h.IpcMode != container.IPCModePrivate, len(h.PortBindings) != 0, h.PublishAllPorts, len(config.ExposedPorts) != 0:
			t.Errorf("%s: asks for something of the host's: %+v", name, h)
		case len(opts) != 0 || !slices.Contains(h.SecurityOpt, "no-new-privileges"):
			t.Errorf("%s: security options %v", name, h.SecurityOpt)
		case !slices.Equal(h.CapDrop, []string{"ALL"}), h.Init == nil || !*h.Init, h.LogConfig.Type != "none", h.OomScoreAdj <= 0:
			t.Errorf("%s: not hardened: %+v", name, h)
		case b.bare && len(h.Mounts) != 0, !b.bare && (len(h.Mounts) != 1 || h.Mounts[0].Type != mount.TypeVolume || h.Mounts[0].Target != workspacePath || strings.HasPrefix(h.Mounts[0].Source, "/")):
			t.Errorf("%s: mounts %+v", name, h.Mounts)
		case h.Memory != h.MemorySwap:
			t.Errorf("%s: memory %d, with swap %d", name, h.Memory, h.MemorySwap)
		case config.Healthcheck == nil || !slices.Equal(config.Healthcheck.Test, []string{"NONE"}), len(config.Entrypoint) == 0, config.StopSignal == "":
			t.Errorf("%s: the image's would hold: %+v", name, config)
		case config.User == "" || strings.HasPrefix(config.User, "0") || config.User == b.user.String():
			t.Errorf("%s: process 1 runs as %q, a command as %q", name, config.User, b.user)
		}
	}
}

func TestSES12_CapsReachTheEngineExactly(t *testing.T) {
	_, h, _ := createBody(blueprint{cpu: ptr(0.3), memory: ptr(int64(6 << 20)), pids: ptr(int64(1))})
	if h.NanoCPUs != 300_000_000 || h.Memory != 6<<20 || h.MemorySwap != 6<<20 || h.PidsLimit == nil || *h.PidsLimit != 1 {
		t.Errorf("%+v", h.Resources)
	}
	_, h, _ = createBody(blueprint{})
	if h.NanoCPUs != 0 || h.Memory != 0 || h.MemorySwap != 0 || h.PidsLimit != nil {
		t.Errorf("caps where none is asked for: %+v", h.Resources)
	}
}

// TestAttackT08_ImageHooksAreTakenOut sees which of an image's environment names
// are taken away, and that a caller's own stay.
func TestAttackT08_ImageHooksAreTakenOut(t *testing.T) {
	who := account{uid: 5, gid: 5, name: "u", home: "/h"}
	image := []string{"PATH=/opt:/bin", "LD_PRELOAD=x", "ENV=y", "LANG=C", "BASH_FUNC_f%%=() { :; }", "OPTIND=abc"}
	env, dropped := sessionEnv(who, map[string]sandbox.Secret{"LD_PRELOAD": sandbox.NewSecret("mine")}, image)
	if want := []string{"BASH_FUNC_f%%", "ENV", "OPTIND"}; !slices.Equal(dropped, want) {
		t.Errorf("dropped %v, want %v", dropped, want)
	}
	if want := []string{"HOME=/h", "LD_PRELOAD=mine", "LOGNAME=u", "USER=u", "BASH_FUNC_f%%", "ENV", "OPTIND"}; !slices.Equal(env, want) {
		t.Errorf("env %v, want %v", env, want)
	}
}

// TestD08_LabelsTellAllThatListNeeds reads a session back from its labels.
func TestD08_LabelsTellAllThatListNeeds(t *testing.T) {
	p := &Provider{cfg: Config{Instance: "i", Version: "v"}}
	const id = "sbx_bbbbbbbbbbbbbbbbbbbbbbbbbb"
	created := time.Date(2026, 5, 6, 7, 8, 9, 123, time.UTC)
	spec := sandbox.Spec{
		Owner: sandbox.Owner{Name: "o"}, Image: "a/b:c", Network: sandbox.NetworkInternal, Durability: sandbox.Persistent, WorkspaceKey: "k",
		CPU: ptr(0.5), MemoryMB: ptr(int64(7)), TTL: 90 * time.Second, Labels: map[string]string{"x": "1", "y": ""},
		Env: map[string]sandbox.Secret{"B": sandbox.NewSecret("canary"), "A": {}},
	}
	facts := imageFacts{user: account{uid: 7, gid: 8, name: "n:m", home: "/h"}, bash: true}
	notes := []sandbox.Note{{Code: "c", Text: "t"}}
	labels := p.sessionLabels(id, spec, facts, time.Unix(1, 0), notes)
	labels["image.own"] = "inherited"
	l := labelled{containerID: "cid", name: "caisson-" + id, imageID: "sha256:9", state: sandbox.StateStopped, created: created, labels: labels}
	s, ok := l.session(p)
	if !ok {
		t.Fatal("not taken for a session")
	}
	want := sandbox.Info{
		ID: id, OwnerHash: spec.Owner.Hash(), Instance: "i", Image: "a/b:c", ImageID: "sha256:9", Network: sandbox.NetworkInternal,
		Durability: sandbox.Persistent, WorkspaceKey: "k", WorkspacePath: "/workspace", CPU: 0.5, MemoryMB: 7, EnvNames: []string{"A", "B"},
		Labels: spec.Labels, CreatedAt: created.Truncate(time.Second), TTL: 90 * time.Second, State: sandbox.StateStopped, HasBash: true, Notes: notes,
	}
	if diff := cmp.Diff(want, s.Info()); diff != "" {
		t.Error(diff)
	}
	if s.user != facts.user {
		t.Errorf("user %+v", s.user)
	}
	for name, value := range labels {
		if strings.Contains(value, "canary") {
			t.Errorf("label %s carries a secret", name)
		}
	}
}

// TestAttackT08_LookAlikesAreNoSessions varies one label or the name.
func TestAttackT08_LookAlikesAreNoSessions(t *testing.T) {
	p := &Provider{}
	const id = "sbx_cccccccccccccccccccccccccc"
	facts := imageFacts{user: account{uid: 7, gid: 8}}
	fresh := func() labelled {
		return labelled{name: containerName(id), labels: p.sessionLabels(id, sandbox.Spec{}, facts, time.Now(), nil)}
	}
	if _, ok := fresh().session(p); !ok {
		t.Fatal("the control is no session")
	}
	for name, change := range map[string]func(*labelled){
		"another name":      func(l *labelled) { l.name = "victim" },
		"no prefix":         func(l *labelled) { l.name = id },
		"another handle":    func(l *labelled) { l.labels[labelID] = "sbx_dddddddddddddddddddddddddd" },
		"a handle's form":   func(l *labelled) { l.labels[labelID] = "x"; l.name = "caisson-x" },
		"not marked":        func(l *labelled) { l.labels[labelSandbox] = "" },
		"another role":      func(l *labelled) { l.labels[labelRole] = roleExamine },
		"no role":           func(l *labelled) { delete(l.labels, labelRole) },
		"no user":           func(l *labelled) { l.labels[labelUser] = "" },
		"root as the user":  func(l *labelled) { l.labels[labelUser] = "0:0:root" },
		"garbage as a user": func(l *labelled) { l.labels[labelUser] = "x:y:z" },
	} {
		l := fresh()
		change(&l)
		if _, ok := l.session(p); ok {
			t.Errorf("%s: taken for a session", name)
		}
	}
	garbage := fresh()
	garbage.created = time.Unix(5, 0)
	garbage.labels[labelCreated], garbage.labels[labelTTL], garbage.labels[labelCPU], garbage.labels[labelEnv] = "soon", "-", "many", "{"
	s, ok := garbage.session(p)
	if !ok || !s.info.CreatedAt.Equal(time.Unix(5, 0)) || s.info.TTL != 0 {
		t.Errorf("T72: a session with labels that cannot be read: %v, %+v", ok, s)
	}
}

// A PATH without the system's folders would keep the container's first process
// from being found, and end the session at once.
func TestSES14_OwnPathKeepsTheSystemsFolders(t *testing.T) {
	env, _ := sessionEnv(account{}, map[string]sandbox.Secret{"PATH": sandbox.NewSecret("/nope")}, nil)
	if !slices.Contains(env, "PATH=/nope:"+systemPath) {
		t.Error(env)
	}
}
