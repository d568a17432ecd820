package sandbox

import (
	"fmt"
	"regexp"
	"sort"
	"strings"
	"time"
)

// LabelStem begins every label of ours; a caller's label may not (D8).
const LabelStem = "caisson."

// digestForm is what may stand behind the @ of an image's reference.
var digestForm = regexp.MustCompile(`^[a-z0-9]+:[0-9a-fA-F]{32,}$`)

// workspaceKeyForm is what a workspace key may be (DUR-6): it becomes part of a
// volume's name.
var workspaceKeyForm = regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`)

// envNameForm is what an environment name may be: a shell drops or rewrites
// every other on its way to the command.
var envNameForm = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// The ranges of caps, whatever the policy says.
const (
	// leastCPU is the kernel's smallest share: below it the engine takes the
	// number and enforces nothing.
	leastCPU     = 0.01
	mostCPU      = 1 << 20
	mostMemoryMB = 1 << 30
	// leastMemoryMB is the engine's own least.
	leastMemoryMB = 6
	// leastPids leaves room for the container's own two processes, the wrapper
	// of one command and its stop.
	leastPids = 16
	mostPids  = 1 << 22 // the kernel's own limit
)

// The kernel's bounds on an environment, without which a container or a command
// could be made and then not be started: one name=value with its NUL (the
// kernel's MAX_ARG_STRLEN), and a share of what all arguments may take together.
const (
	mostEnvVariable = 128 << 10
	mostEnv         = 1 << 20
	// The names of a session's environment stand in a label, and labels come back with
	// every list that any server makes of the engine: one session's are kept small.
	mostEnvNames  = 16 << 10
	mostLabels    = 64
	mostLabelText = 16 << 10
)

// Policy bounds every spec. The zero value of a ceiling means that there is
// none; of AllowedImages, that any image may be used.
type Policy struct {
	DefaultImage    string
	AllowedImages   []string // patterns as of path.Match, matched against the reference as asked for
	DefaultCPU      float64  // 0: no cap
	DefaultMemoryMB int64
	DefaultPids     int64
	MaxCPU          float64
	MaxMemoryMB     int64
	MaxPids         int64
	DefaultNetwork  Network
	MaxNetwork      Network
	AllowPersistent bool
	MinIsolation    Isolation
	VMRuntime       bool // a VM runtime is configured
	DefaultTTL      time.Duration
	MaxTTL          time.Duration
}

// Apply returns the spec with its defaults filled, or an *Error of KindInvalid
// or KindRejected that names the field. It is the only place where a spec is
// checked and filled, and it never makes a spec smaller to fit (SES-16): what is
// over a ceiling is refused, before any engine is asked.
//
// With Spec.Ceilings the tighter of both bounds counts. With Spec.Operator the image and the
// idle time are the operator's choice, and the ceilings of network, cpu, memory and pids hold.
func (p Policy) Apply(s Spec) (Spec, error) {
	p = p.within(s.Ceilings)
	for _, step := range []func(*Spec) error{
		p.applyImage, p.applyNetwork, p.applyDurability, p.applyIsolation, checkOperator, p.applyCaps, p.applyTTL, checkEnv, checkLabels,
	} {
		if err := step(&s); err != nil {
			return Spec{}, err
		}
	}
	return s, nil
}

func (p Policy) applyImage(s *Spec) error {
	if s.Image == "" {
		s.Image = p.DefaultImage
	}
	if s.Image == "" {
		return Invalid("image", "name an image: this server has no default one")
	}
	if strings.HasPrefix(s.Image, "-") || strings.ContainsAny(s.Image, " \t\r\n\x00") || len(s.Image) > 512 {
		return Invalid("image", "an image is a reference like debian:bookworm-slim, without spaces")
	}
	if name, digest, at := strings.Cut(s.Image, "@"); strings.Contains(name, "://") || at && !digestForm.MatchString(digest) {
		// Not repeated: it may be a password that stands before a host.
		return Invalid("image", "an image is a reference like registry.example/name:tag or name@sha256:…, without a scheme, a user or a password: the engine's own log-in is used")
	}
	switch {
	case s.Operator != nil: // chosen where the manifest was read
		return nil
	case len(p.AllowedImages) > 0 && !matches(p.AllowedImages, s.Image):
		return Rejected("image", "this image is not among those that this server allows")
	}
	return s.Ceilings.checkImages(s.Image)
}

func (p Policy) applyNetwork(s *Spec) error {
	if s.Network == "" {
		s.Network = p.DefaultNetwork
	}
	if s.Network == "" {
		s.Network = NetworkNone
	}
	if !s.Network.Valid() {
		return Invalid("network", "network is one of none, internal and egress")
	}
	if p.MaxNetwork != "" && s.Network.Looser(p.MaxNetwork) {
		return Rejected("network", "the loosest network that %s is %s", allows(s.Ceilings.values().MaxNetwork == p.MaxNetwork), p.MaxNetwork)
	}
	return nil
}

func (p Policy) applyDurability(s *Spec) error {
	switch s.Durability {
	case "":
		s.Durability = Ephemeral
		if s.WorkspaceKey != "" {
			s.Durability = Persistent
		}
	case Ephemeral, Persistent:
	default:
		return Invalid("durability", "durability is one of ephemeral and persistent")
	}
	if s.WorkspaceKey != "" && !workspaceKeyForm.MatchString(s.WorkspaceKey) {
		return Invalid("workspace_key", "a workspace key is 1 to 64 of the characters A-Z a-z 0-9 _ -")
	}
	if s.Durability == Ephemeral {
		if s.WorkspaceKey != "" {
			return Invalid("workspace_key", "an ephemeral session has no workspace key: leave it out, or ask for durability persistent")
		}
		return nil
	}
	if s.WorkspaceKey == "" {
		return Rejected("workspace_key", "a persistent session needs a workspace_key")
	}
	if !p.AllowPersistent {
		return Rejected("durability", "this server does not allow persistent workspaces")
	}
	return s.Ceilings.checkWorkspace(s.WorkspaceKey)
}

func (p Policy) applyIsolation(s *Spec) error {
	switch s.Isolation {
	case "":
		s.Isolation = p.MinIsolation
		if s.Isolation == "" {
			s.Isolation = IsolationContainer
		}
	case IsolationContainer:
		if p.MinIsolation == IsolationVM {
			return Rejected("isolation", "the weakest isolation that this server allows is vm")
		}
	case IsolationVM:
	default:
		return Invalid("isolation", "isolation is one of container and vm")
	}
	if s.Isolation == IsolationVM && !p.VMRuntime {
		return Rejected("isolation", "isolation vm needs a VM runtime, and this server has none (SANDBOX_DOCKER_VM_RUNTIME)")
	}
	return nil
}

func (p Policy) applyCaps(s *Spec) error {
	if s.CPU != nil && !(*s.CPU >= leastCPU && *s.CPU <= mostCPU) {
		return Rejected("cpu", "cpu is a number of cores from %g to %d", leastCPU, mostCPU)
	}
	if s.MemoryMB != nil && (*s.MemoryMB < leastMemoryMB || *s.MemoryMB > mostMemoryMB) {
		return Rejected("memory_mb", "memory_mb is a number of MiB from %d to %d", leastMemoryMB, mostMemoryMB)
	}
	if s.Pids != nil && (*s.Pids < leastPids || *s.Pids > mostPids) {
		return Rejected("pids", "pids is a number of processes from %d to %d", leastPids, mostPids)
	}
	if s.CPU == nil && p.DefaultCPU > 0 {
		s.CPU = &p.DefaultCPU
	}
	if s.Memory() == nil && p.DefaultMemoryMB > 0 {
		s.MemoryMB = &p.DefaultMemoryMB
	}
	if s.Pids == nil && p.DefaultPids > 0 {
		s.Pids = &p.DefaultPids
	}
	return p.checkCaps(s)
}

// checkCaps holds the caps of a spec, defaults filled, against the ceilings. No cap at all
// is over any of them.
func (p Policy) checkCaps(s *Spec) error {
	own := s.Ceilings.values()
	if p.MaxCPU > 0 && (s.CPU == nil || *s.CPU > p.MaxCPU) {
		return Rejected("cpu", "the most that %s is %g cores", gives(own.MaxCPU == p.MaxCPU), p.MaxCPU)
	}
	if memory := s.Memory(); p.MaxMemoryMB > 0 && (memory == nil || *memory > p.MaxMemoryMB<<20) {
		return Rejected("memory_mb", "the most that %s is %d MiB", gives(own.MaxMemoryMB == p.MaxMemoryMB), p.MaxMemoryMB)
	}
	if p.MaxPids > 0 && (s.Pids == nil || *s.Pids > p.MaxPids) {
		return Rejected("pids", "the most that %s is %d processes", gives(own.MaxPids == p.MaxPids), p.MaxPids)
	}
	return nil
}

func (p Policy) applyTTL(s *Spec) error {
	if s.TTL < 0 {
		return Invalid("ttl_seconds", "ttl_seconds is a number of seconds above 0")
	}
	if s.TTL == 0 {
		s.TTL = p.DefaultTTL
	}
	if s.Operator != nil {
		return nil
	}
	return p.checkTTL(s.TTL, s.Ceilings)
}

// checkTTL refuses an idle time over the policy's ceiling, which c has narrowed already.
func (p Policy) checkTTL(ttl time.Duration, c *Ceilings) error {
	if p.MaxTTL > 0 && ttl > p.MaxTTL {
		return Rejected("ttl_seconds", "the longest idle time that %s is %d s", allows(c.values().MaxTTL == p.MaxTTL), int64(p.MaxTTL.Seconds()))
	}
	return nil
}

func checkEnv(s *Spec) error {
	all := 0
	for name := range s.Env {
		all += len(name)
	}
	if all > mostEnvNames {
		return Invalid("env", "the names of the environment have %d bytes, the most for a session is %d; write a file instead", all, mostEnvNames)
	}
	return CheckEnv("env", s.Env)
}

// CheckEnv refuses environments that a command could not be given as they are.
// The error names a faulty name and never a value.
func CheckEnv(field string, env map[string]Secret) error {
	names := make([]string, 0, len(env))
	for name := range env {
		names = append(names, name)
	}
	sort.Strings(names)
	all := 0
	for _, name := range names {
		if !envNameForm.MatchString(name) {
			return Invalid(field, "%s: an environment name is letters, digits and _, and begins with no digit", quoteName(name))
		}
		if strings.ContainsRune(env[name].Reveal(), 0) {
			return Invalid(field, "%s: the value has a NUL byte, which no environment can carry", quoteName(name))
		}
		size := len(name) + len("=\x00") + len(env[name].Reveal())
		if size > mostEnvVariable {
			return Invalid(field, "%s: name and value have %d bytes, the most is %d; write a file instead", quoteName(name), size-2, mostEnvVariable-2)
		}
		all += size
	}
	if all > mostEnv {
		return Invalid(field, "the environment has %d bytes, the most is %d; write a file instead", all, mostEnv)
	}
	return nil
}

func checkLabels(s *Spec) error {
	if len(s.Labels) > mostLabels {
		return Invalid("labels", "there are %d labels, the most is %d", len(s.Labels), mostLabels)
	}
	all := 0
	for name, value := range s.Labels {
		all += len(name) + len(value)
		switch {
		case name == "" || len(name) > 128 || strings.ContainsAny(name, "\x00\r\n="):
			return Invalid("labels", "%s: a label's name is 1 to 128 characters without = and line ends", quoteName(name))
		case strings.HasPrefix(strings.ToLower(name), LabelStem):
			return Rejected("labels", "%s: names that begin with %s are this server's own", quoteName(name), LabelStem)
		case len(value) > 4096 || strings.ContainsRune(value, 0):
			return Invalid("labels", "%s: a label's value is at most 4096 bytes, without NUL", quoteName(name))
		}
	}
	if all > mostLabelText {
		return Invalid("labels", "the labels have %d bytes, the most is %d", all, mostLabelText)
	}
	return nil
}

// quoteName shows a name that a caller sent, shortened, with nothing in it that
// could pass for our own text.
func quoteName(name string) string {
	if len(name) > 64 {
		name = name[:64] + "…"
	}
	return fmt.Sprintf("%q", name)
}
