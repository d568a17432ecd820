package sandbox

import (
	"math"
	"path"
	"strings"
)

// OperatorSpec is what only the operator may ask of a container, in the manifest: no
// argument of a client's call ever gets here. It may loosen the hardening (D31); whether it
// may is settled where the manifest is read.
type OperatorSpec struct {
	// MemoryBytes is the cap, exact, in the place of Spec.MemoryMB; 0: as without it.
	MemoryBytes int64
	// CapDrop are the capabilities that are dropped, without their stem, or ALL. Taken as
	// it is: an empty list drops none.
	CapDrop []string
	// SecurityOpt are security options, as the engine's command line takes them:
	// no-new-privileges, seccomp=…, apparmor=…, label=…, systempaths=unconfined. Taken as
	// they are: an empty list has no no-new-privileges. Without a seccomp entry the
	// server's own profile stays.
	SecurityOpt []string
	// Runtime, User and PullPolicy are the server's own where they are empty. User is a
	// name or number, or two with a colon, and never root (D25); a number that the image
	// does not know, without a group, is its own group.
	Runtime, User, PullPolicy string
	// Files are in the container before it starts (D19), each as the session's user's,
	// with the parents that are missing.
	Files []InitialFile
}

// SecurityOption parts an entry of SecurityOpt into its name and its value, which may have
// either sign in it: a colon parts only where there is no equals sign.
func SecurityOption(entry string) (name, value string) {
	sign := "="
	if !strings.Contains(entry, sign) {
		sign = ":"
	}
	name, value, _ = strings.Cut(entry, sign)
	return name, value
}

// InitialFile is a file that is put into a container before it starts.
type InitialFile struct {
	Path    string // absolute and clean
	Mode    int64  // permission bits; 0: 0600
	Content Secret
}

// The bounds of what is put into a container before it starts: it travels in one call.
const (
	mostInitialFiles = 64
	mostInitialBytes = 64 << 20
	// LeastMemory is the engine's own floor of a container's memory, in bytes.
	LeastMemory = 6 << 20
)

// Memory is the cap of memory in bytes, exact; nil: no cap.
func (s Spec) Memory() *int64 {
	if s.Operator != nil && s.Operator.MemoryBytes > 0 {
		return &s.Operator.MemoryBytes
	}
	if s.MemoryMB == nil {
		return nil
	}
	bytes := *s.MemoryMB << 20
	return &bytes
}

// WithoutFiles is the spec of a session that has been made: nobody needs what was put into
// it any more, and it may be secret.
func (s Spec) WithoutFiles() Spec {
	if s.Operator != nil {
		o := *s.Operator
		o.Files = nil
		s.Operator = &o
	}
	return s
}

// checkOperator judges the forms of what an operator asks for.
func checkOperator(s *Spec) error {
	o := s.Operator
	switch {
	case o == nil:
		return nil
	case s.Durability == Persistent:
		return Rejected("durability", "a tool's container has no workspace that outlives it")
	case o.MemoryBytes != 0 && s.MemoryMB != nil:
		return Invalid("memory_mb", "the cap of memory is named twice, in bytes and in MiB")
	case o.MemoryBytes != 0 && o.MemoryBytes < LeastMemory:
		return Rejected("mem_limit", "mem_limit is a number of bytes from %d to %d", LeastMemory, int64(math.MaxInt64))
	}
	switch o.PullPolicy {
	case "", "missing", "never", "always":
	default:
		return Invalid("pull_policy", "pull_policy is one of missing, never and always")
	}
	return checkFiles(o.Files)
}

func checkFiles(files []InitialFile) error {
	if len(files) > mostInitialFiles {
		return Errorf("check spec", KindTooLarge, "%d files are to be put into the container, the most is %d", len(files), mostInitialFiles)
	}
	size := 0
	for _, f := range files {
		switch {
		case !path.IsAbs(f.Path) || path.Clean(f.Path) != f.Path || f.Path == "/" || len(f.Path) > 4095 || strings.ContainsRune(f.Path, 0):
			return Invalid("files", "%s: an initial file's path is absolute and clean", quoteName(f.Path))
		case f.Mode < 0 || f.Mode > 0o777:
			return Invalid("files", "%s: a mode is permission bits, up to 0777", quoteName(f.Path))
		}
		size += len(f.Content.Reveal())
	}
	if size > mostInitialBytes {
		return Errorf("check spec", KindTooLarge, "%d bytes are to be put into the container, the most is %d", size, mostInitialBytes)
	}
	return nil
}
