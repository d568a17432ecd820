package executor

import (
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"caisson/internal/strictyaml"
	"caisson/sandbox"
)

var (
	memoryForm  = regexp.MustCompile(`^([0-9]{1,18})([bkmgBKMG]?)$`)
	runtimeForm = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$`)
	userForm    = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_.-]{0,31}(:[A-Za-z0-9_][A-Za-z0-9_.-]{0,31})?$`)
)

// The least that a container works with: the engine's own floor of memory, the
// kernel's smallest share of a CPU, and room for the container's own processes.
const (
	leastMemory   = 6 << 20
	leastNanoCPUs = 10_000_000
	leastPids     = 16
	mostPids      = 1 << 22
	mostSeconds   = 31536000
)

// options reads the options of a docker executor, or of the local one.
func (r *reader) options(n node, executor string) Options {
	o := r.server.defaults()
	table := optionTable()
	var known []string
	for _, row := range table {
		if executor == Docker || row.local {
			known = append(known, row.name)
		}
	}
	if n.Kind != strictyaml.KindMap {
		r.Add(n.At, "options is a mapping, not %s", n.Kind)
		return o
	}
	for _, p := range n.Pairs {
		i := slices.IndexFunc(table, func(row option) bool { return row.name == p.Key })
		switch {
		case slices.Contains(hostBinds(), p.Key):
			r.Add(p.At, "%s is refused: a tool's container mounts nothing of the engine's host", p.Key)
		case p.Key == "docker_host":
			r.Add(p.At, "docker_host is refused: tools run on the engine that the server's own settings name, and on no other")
		case !slices.Contains(known, p.Key) && i >= 0:
			r.Add(p.At, "the %s executor has no option %s; known are %s", executor, p.Key, list(known))
		case i < 0:
			r.Add(p.At, "the %s executor has no option %s; %s", executor, shown(p.Key), meant(p.Key, known))
		default:
			table[i].read(r, &o, p.Value)
			o.given[p.Key] = true
		}
	}
	return o
}

// hostBinds are the words by which other programs mount the host's files.
func hostBinds() []string {
	return []string{"volumes", "binds", "mounts", "volume", "bind", "mount", "devices", "volumes_from"}
}

func readImage(r *reader, o *Options, n node) {
	text, ok := r.Text(n, "image")
	if !ok || !r.noVariable(n, "image", text) {
		return
	}
	// The form is the sandbox policy's to judge.
	if _, err := (sandbox.Policy{}).Apply(sandbox.Spec{Image: text}); err != nil {
		r.Add(n.At, "image: %s", textOf(err))
		return
	}
	o.Image = text
}

func readMode(r *reader, o *Options, n node) {
	if text, ok := r.OneOf(n, "mode", string(Warm), string(Ephemeral)); ok {
		o.Mode = Mode(text)
	}
}

func readIdleTTL(r *reader, o *Options, n node) {
	if d, ok := r.Seconds(n, "idle_ttl_seconds", 1, mostSeconds); ok {
		o.IdleTTL = d
	}
}

func readNetwork(r *reader, o *Options, n node) {
	text, ok := r.Text(n, "network_mode")
	if !ok {
		return
	}
	tier, known := TierOf(text)
	switch {
	case text == "host" || strings.HasPrefix(text, "container:"):
		r.Add(n.At, "network_mode %s is refused: a tool never shares the network of the engine's host or of another container", shown(text))
	case !known:
		r.Add(n.At, "network_mode is one of none, internal, egress and bridge, not %s", shown(text))
	default:
		o.Network = tier
	}
}

func readMemory(r *reader, o *Options, n node) {
	m := memoryForm.FindStringSubmatch(n.Text)
	if n.Kind != strictyaml.KindInt && n.Kind != strictyaml.KindString || m == nil {
		r.Add(n.At, "mem_limit is a number of bytes, or digits and one of b, k, m and g: 512m")
		return
	}
	value, err := strconv.ParseInt(m[1], 10, 64)
	unit := map[string]int64{"": 1, "b": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30}[strings.ToLower(m[2])]
	if err != nil || value > math.MaxInt64/unit || value*unit < leastMemory {
		r.Add(n.At, "mem_limit is at least %s and at most %d bytes; a tool without a cap is refused", showBytes(leastMemory), int64(math.MaxInt64))
		return
	}
	o.Memory = value * unit
}

func readNanoCPUs(r *reader, o *Options, n node) {
	if value, ok := r.Whole(n, "nano_cpus", leastNanoCPUs, 4096*1e9); ok {
		o.NanoCPUs = value
	}
}

func readPids(r *reader, o *Options, n node) {
	if value, ok := r.Whole(n, "pids_limit", leastPids, mostPids); ok {
		o.Pids = value
	}
}

func readPullPolicy(r *reader, o *Options, n node) {
	if text, ok := r.OneOf(n, "pull_policy", "missing", "never", "always"); ok {
		o.PullPolicy = text
	}
}

func readRuntime(r *reader, o *Options, n node) {
	text, ok := r.Text(n, "runtime")
	if ok && r.noVariable(n, "runtime", text) {
		if !runtimeForm.MatchString(text) {
			r.Add(n.At, "runtime is the name of an OCI runtime, not %s", shown(text))
			return
		}
		o.Runtime = text
	}
}

// readUser refuses root by name and by number, in either place. What a name
// means is the image's to say: the provider looks before it starts anything.
func readUser(r *reader, o *Options, n node) {
	if n.Kind == strictyaml.KindInt {
		n.Kind = strictyaml.KindString // user: 1000 says what it means
	}
	text, ok := r.Text(n, "user")
	if !ok || !r.noVariable(n, "user", text) {
		return
	}
	if !userForm.MatchString(text) {
		r.Add(n.At, "user is a name or number, or two with a colon: 1000:1000, not %s", shown(text))
		return
	}
	for part := range strings.SplitSeq(text, ":") {
		id, err := strconv.ParseUint(part, 10, 64)
		if part == "root" || err == nil && (id == 0 || id >= 1<<31) {
			r.Add(n.At, "user %s is refused: a tool never runs as root, and ids go up to %d", shown(text), 1<<31-1)
			return
		}
	}
	o.User = text
}

// strings reads a mapping of names to strings.
func (r *reader) strings(n node, what string, put func(p pair, text string)) {
	if n.Kind != strictyaml.KindMap {
		r.Add(n.At, "%s is a mapping of names to strings, not %s", what, n.Kind)
		return
	}
	for _, p := range n.Pairs {
		if p.Value.Kind != strictyaml.KindString {
			r.Add(p.Value.At, "%s of %s is a string; put it into quotes", shown(p.Key), what)
			continue
		}
		put(p, p.Value.Text)
	}
}

func readLabels(r *reader, o *Options, n node) {
	o.Labels = map[string]string{}
	r.strings(n, "labels", func(p pair, text string) {
		if !printable(p.Key + text) {
			r.Add(p.At, "labels: a name and a value are one line without control characters")
			return
		}
		if r.noVariable(p.Value, "a label", text) {
			one := sandbox.Spec{Image: "image", Labels: map[string]string{p.Key: text}}
			if _, err := (sandbox.Policy{}).Apply(one); err != nil {
				r.Add(p.At, "labels: %s", textOf(err))
				return
			}
			o.Labels[p.Key] = text
		}
	})
}

// callTime is the range of remote_timeout_seconds. More than the server's own bound of
// commands would have each call refused.
func (r *reader) callTime(n node) (time.Duration, bool) {
	d, ok := r.Seconds(n, "remote_timeout_seconds", 0.1, 86400)
	if most := r.server.MaxTimeout; ok && most > 0 && d > most {
		r.Add(n.At, "remote_timeout_seconds is %s, and SANDBOX_DOCKER_EXEC_MAX_TIMEOUT_SECONDS allows %s at most: lower the one or raise the other", seconds(d), seconds(most))
		return 0, false
	}
	return d, ok
}
