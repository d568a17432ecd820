package docker

import (
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"caisson/sandbox"
)

// The labels of ours (D8). Every one is set on every container, empty ones too:
// an image's labels are inherited, and one that is not overridden would be taken
// for ours (attack T08).
const (
	labelSandbox    = sandbox.LabelStem + "sandbox"
	labelRole       = sandbox.LabelStem + "role"
	labelID         = sandbox.LabelStem + "id"
	labelInstance   = sandbox.LabelStem + "instance"
	labelOwner      = sandbox.LabelStem + "owner"
	labelWorkspace  = sandbox.LabelStem + "workspace"
	labelDurability = sandbox.LabelStem + "durability"
	labelCreated    = sandbox.LabelStem + "created"
	labelTTL        = sandbox.LabelStem + "ttl" // seconds
	labelVersion    = sandbox.LabelStem + "version"
	labelTools      = sandbox.LabelStem + "tools" // 1: it runs the manifest's tools, and is no client's session

	labelImage   = sandbox.LabelStem + "image" // as asked for
	labelNetwork = sandbox.LabelStem + "network"
	labelCPU     = sandbox.LabelStem + "cpu"
	labelMemory  = sandbox.LabelStem + "memory_mb"
	labelPids    = sandbox.LabelStem + "pids"
	labelIsolate = sandbox.LabelStem + "isolation"
	labelUser    = sandbox.LabelStem + "user"  // uid:gid:name
	labelHome    = sandbox.LabelStem + "home"  // as HOME has it
	labelBash    = sandbox.LabelStem + "bash"  // 1 or 0
	labelEnv     = sandbox.LabelStem + "env"   // JSON list of names
	labelLabels  = sandbox.LabelStem + "names" // JSON list of the caller's label names
	labelNotes   = sandbox.LabelStem + "notes" // JSON list of notes known at the create
)

const (
	roleSession = "session"
	roleExamine = "examine"
	roleLease   = "lease"
	roleProbe   = "probe"
)

// containerPrefix begins the name of each session's container (D7).
const containerPrefix = "caisson-"

func containerName(id string) string { return containerPrefix + id }

// sessionLabels are the labels of a session's container: the caller's, and over
// them all that List needs to tell what it is.
func (p *Provider) sessionLabels(id string, spec sandbox.Spec, facts imageFacts, created time.Time, notes []sandbox.Note) map[string]string {
	labels := maps.Clone(spec.Labels)
	if labels == nil {
		labels = map[string]string{}
	}
	maps.Copy(labels, map[string]string{
		labelSandbox: "1", labelRole: roleSession, labelID: id,
		labelInstance: p.cfg.Instance, labelVersion: p.cfg.Version, labelOwner: spec.Owner.Hash(),
		labelWorkspace: spec.WorkspaceKey, labelDurability: string(spec.Durability),
		labelCreated: created.UTC().Format(time.RFC3339Nano), labelTTL: strconv.FormatInt(int64(spec.TTL/time.Second), 10),
		labelImage: spec.Image, labelNetwork: string(spec.Network),
		labelCPU: number(spec.CPU), labelMemory: number(mebibytes(spec.Memory())), labelPids: number(spec.Pids),
		labelIsolate: string(spec.Isolation),
		labelUser:    facts.user.String() + ":" + facts.user.name, labelHome: facts.user.home, labelBash: yesNo(facts.bash),
		labelEnv: list(slices.Sorted(maps.Keys(spec.Env))), labelLabels: list(slices.Sorted(maps.Keys(spec.Labels))),
		labelNotes: list(notes), labelTools: mark(spec.Owner.Tools),
	})
	return labels
}

// mebibytes is a cap of bytes in MiB, rounded up.
func mebibytes(bytes *int64) *int64 {
	if bytes == nil {
		return nil
	}
	return ptr((*bytes-1)>>20 + 1)
}

// mark writes a label that is there or not.
func mark(b bool) string {
	if b {
		return "1"
	}
	return ""
}

// number writes a cap; no cap is empty.
func number[T int64 | float64](v *T) string {
	if v == nil {
		return ""
	}
	return strconv.FormatFloat(float64(*v), 'f', -1, 64)
}

func yesNo(b bool) string {
	if b {
		return "1"
	}
	return "0"
}

// list writes a list as JSON: names and values may hold any separator.
func list[T any](items []T) string {
	if len(items) == 0 {
		return "[]"
	}
	out, err := json.Marshal(items)
	if err != nil {
		return "[]" // strings and structs of strings always marshal
	}
	return string(out)
}

// labelled is a container as the engine lists or inspects it.
type labelled struct {
	containerID string
	name        string // without the leading slash
	imageID     string
	state       sandbox.State
	created     time.Time // by the engine's clock, which the label's is not
	labels      map[string]string
	env         []string // of the container; known where it was inspected
}

// session reads a session from its container's labels. ok is false for a
// container that is none of ours: its name must say the same handle as its
// labels, which an image's labels cannot bring about.
func (l labelled) session(p *Provider) (*Session, bool) {
	v := func(name string) string { return l.labels[name] }
	id := v(labelID)
	if v(labelSandbox) != "1" || v(labelRole) != roleSession || !sandbox.ValidSessionID(id) || l.name != containerName(id) {
		return nil, false
	}
	user, ok := readAccount(v(labelUser), v(labelHome))
	if !ok {
		return nil, false
	}
	info := sandbox.Info{
		ID: id, OwnerHash: v(labelOwner), Instance: v(labelInstance), Image: v(labelImage), ImageID: l.imageID,
		Network: sandbox.Network(v(labelNetwork)), Durability: sandbox.Durability(v(labelDurability)),
		WorkspaceKey: v(labelWorkspace), WorkspacePath: workspacePath,
		// Whole seconds: a list has no more. The label's time is the clock of
		// whoever wrote it (attack T72).
		Labels: map[string]string{}, CreatedAt: l.created.Truncate(time.Second), State: l.state, HasBash: v(labelBash) == "1", Tools: v(labelTools) == "1",
	}
	// A label that cannot be read leaves its field empty: a session that the
	// engine shows is never left out for it (attack T72).
	info.CPU, _ = strconv.ParseFloat(v(labelCPU), 64)
	info.MemoryMB, _ = strconv.ParseInt(v(labelMemory), 10, 64)
	info.Pids, _ = strconv.ParseInt(v(labelPids), 10, 64)
	if ttl, err := strconv.ParseInt(v(labelTTL), 10, 32); err == nil {
		info.TTL = time.Duration(ttl) * time.Second
	}
	_ = json.Unmarshal([]byte(v(labelEnv)), &info.EnvNames)
	_ = json.Unmarshal([]byte(v(labelNotes)), &info.Notes)
	var names []string
	_ = json.Unmarshal([]byte(v(labelLabels)), &names)
	for _, name := range names {
		info.Labels[name] = l.labels[name]
	}
	return &Session{p: p, containerID: l.containerID, user: user, spec: l.spec(info), info: info, oomSeen: oomUnknown}, true
}

// readAccount reads uid:gid:name.
func readAccount(user, home string) (account, bool) {
	parts := strings.SplitN(user, ":", 3)
	if len(parts) != 3 {
		return account{}, false
	}
	uid, errU := strconv.Atoi(parts[0])
	gid, errG := strconv.Atoi(parts[1])
	if errU != nil || errG != nil || uid <= 0 || gid < 0 {
		return account{}, false
	}
	return account{uid: uid, gid: gid, name: parts[2], home: home}, true
}
