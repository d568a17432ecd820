package docker

import (
	"math"
	"slices"
	"strings"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/mount"
	"github.com/docker/docker/api/types/network"
	"github.com/docker/docker/api/types/strslice"

	"caisson/sandbox"
)

// blueprint is all that a container of ours may differ in. createBody makes the
// engine's request of it; nothing else does, so no caller can ask the engine for
// a privilege, a mount or a device that is not written here (R1).
type blueprint struct {
	imageID string // what is run: the digest, so that a tag moved meanwhile changes nothing
	labels  map[string]string
	env     []string // NAME=value, or a bare NAME to take the image's away
	user    account  // whom commands run as; process 1 runs as somebody else
	network string   // the engine's name of it, or "none"
	sinkDNS bool
	command []string          // instead of being idle
	bare    bool              // mounts nothing: for what is never started
	volume  string            // a named volume; empty: an anonymous one
	onVol   map[string]string // labels of an anonymous volume
	cpu     *float64
	memory  *int64 // bytes
	pids    *int64
	runtime string
	seccomp string     // the whole security option; empty: the engine's default profile
	chosen  *hardening // in the place of ours; nil for everything that no operator has chosen for
	disk    diskCaps
}

const (
	networkNone = "none"
	// sinkResolver answers to nobody: an address that is routed nowhere
	// (RFC 5737). A resolver of the engine's would carry questions out of a
	// session that may reach nothing (CVE-2024-29018).
	sinkResolver = "192.0.2.53"
	// idleSeconds is how long process 1 sleeps: the most that every sleep takes.
	idleSeconds = "2147483647"
	// oomScore makes the kernel choose a session's processes before the engine's.
	oomScore = 500
	// A session may have nofileHard open files a process. More would let a few
	// processes slow the wrapper's and the stop's look through /proc past their
	// bounds.
	nofileSoft, nofileHard = 1024, 4096
	initUID                = 65534
)

// maskedPaths and readonlyPaths are sent with each create: an old engine's own
// lists lack some of them (attack T03).
var maskedPaths = []string{
	"/proc/acpi", "/proc/asound", "/proc/interrupts", "/proc/kcore", "/proc/keys", "/proc/latency_stats",
	"/proc/sched_debug", "/proc/scsi", "/proc/slabinfo", "/proc/timer_list", "/proc/timer_stats",
	"/sys/devices/virtual/powercap", "/sys/firmware", "/sys/kernel/debug",
}

var readonlyPaths = []string{"/proc/bus", "/proc/fs", "/proc/irq", "/proc/sys", "/proc/sysrq-trigger"}

// createBody is the one function that makes a create's body (R1, R7, R8, D20,
// D23). Everything that an image could carry into it is overridden.
func createBody(b blueprint) (*container.Config, *container.HostConfig, *network.NetworkingConfig) {
	hard := b.hardening()
	config := &container.Config{
		Image: b.imageID,
		// The image's own entry point would get our command as arguments.
		Entrypoint: b.entrypoint(),
		Cmd:        strslice.StrSlice{},
		// Not the session's user: a command could end the session by a signal.
		User:        b.initAccount().String(),
		WorkingDir:  workspacePath,
		Env:         b.env,
		Labels:      b.labels,
		Healthcheck: &container.HealthConfig{Test: []string{"NONE"}},
		StopSignal:  "SIGTERM",
	}
	hostConfig := &container.HostConfig{
		NetworkMode:    container.NetworkMode(b.network),
		LogConfig:      container.LogConfig{Type: "none"}, // process 1's output would fill the engine's disk
		RestartPolicy:  container.RestartPolicy{Name: container.RestartPolicyDisabled},
		CapDrop:        hard.capDrop,
		SecurityOpt:    hard.securityOpt,
		IpcMode:        container.IPCModePrivate,
		CgroupnsMode:   container.CgroupnsModePrivate,
		OomScoreAdj:    oomScore,
		Runtime:        b.runtime,
		MaskedPaths:    maskedPaths,
		ReadonlyPaths:  readonlyPaths,
		Mounts:         b.mounts(),
		Resources:      b.resources(),
		StorageOpt:     sizeOption(b.disk.layerMB),
		Init:           ptr(true), // reaps what commands leave behind
		ReadonlyRootfs: false,
	}
	if hard.allOfProc { // empty, not absent: that would be the engine's own lists
		hostConfig.MaskedPaths, hostConfig.ReadonlyPaths = []string{}, []string{}
	}
	if b.sinkDNS {
		hostConfig.DNS = []string{sinkResolver}
		// A look-up fails at once instead of after many tries (bug NW-01).
		hostConfig.DNSOptions = []string{"timeout:1", "attempts:1"}
	}
	return config, hostConfig, &network.NetworkingConfig{}
}

func (b blueprint) entrypoint() strslice.StrSlice {
	if b.command != nil {
		return b.command
	}
	return strslice.StrSlice{"sleep", idleSeconds}
}

// initAccount is whom process 1 runs as: unprivileged, and not the session's user.
func (b blueprint) initAccount() account {
	if b.user.uid == initUID {
		return account{uid: initUID - 1, gid: initUID - 1}
	}
	return account{uid: initUID, gid: initUID}
}

func (b blueprint) hardening() hardening {
	if b.chosen != nil {
		return *b.chosen
	}
	return hardened(b.seccomp)
}

// mounts is the workspace, the only mount there is (SES-8).
func (b blueprint) mounts() []mount.Mount {
	if b.bare {
		return nil
	}
	m := mount.Mount{Type: mount.TypeVolume, Source: b.volume, Target: workspacePath}
	if b.volume == "" {
		m.VolumeOptions = &mount.VolumeOptions{Labels: b.onVol}
		if size := sizeOption(b.disk.volumeMB); size != nil {
			m.VolumeOptions.DriverConfig = &mount.Driver{Name: volumeDriver, Options: size}
		}
	}
	return []mount.Mount{m}
}

func (b blueprint) resources() container.Resources {
	r := container.Resources{
		PidsLimit: b.pids,
		Ulimits: []*container.Ulimit{
			{Name: "core", Soft: 0, Hard: 0},
			{Name: "nofile", Soft: nofileSoft, Hard: nofileHard},
		},
	}
	if b.disk.file > 0 {
		r.Ulimits = append(r.Ulimits, &container.Ulimit{Name: "fsize", Soft: b.disk.file, Hard: b.disk.file})
	}
	if b.memory != nil {
		r.Memory = *b.memory
		r.MemorySwap = r.Memory // equal: no swap on top
	}
	if b.cpu != nil {
		r.NanoCPUs = int64(math.Round(*b.cpu * 1e9))
	}
	return r
}

// hooks are environment names by which an image would run code of its own in
// the shells and programs of every command, or break the wrapper's shell. They
// are taken out of what a session inherits (R8); a caller may set them.
var hooks = []string{
	"LD_PRELOAD", "LD_AUDIT", "BASH_ENV", "ENV", "SHELLOPTS", "BASHOPTS", "PS4", "PROMPT_COMMAND",
	"IFS", "OPTIND", "PPID", "PWD", "OLDPWD", "SHLVL",
}

// systemPath is where the image contract's commands are.
const systemPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

// sessionEnv is the base environment of a session's commands (SES-14): the
// user's own names, what the caller set, and the names of the image's that are
// taken away (dropped).
func sessionEnv(user account, spec map[string]sandbox.Secret, image []string) (env, dropped []string) {
	set := map[string]string{"HOME": user.home, "USER": user.name, "LOGNAME": user.name}
	for name, value := range spec {
		set[name] = value.Reveal()
	}
	if own, ok := set["PATH"]; ok {
		// The container's own first process is found by it too: with a PATH that
		// has none of the system's folders the session would end at once.
		set["PATH"] = own + ":" + systemPath
	}
	for name, value := range set {
		env = append(env, name+"="+value)
	}
	for _, pair := range image {
		name, _, _ := strings.Cut(pair, "=")
		if _, own := set[name]; !own && (slices.Contains(hooks, name) || strings.HasPrefix(name, "BASH_FUNC_")) {
			dropped = append(dropped, name)
		}
	}
	slices.Sort(env)
	slices.Sort(dropped)
	return append(env, dropped...), dropped
}

func ptr[T any](v T) *T { return &v }
