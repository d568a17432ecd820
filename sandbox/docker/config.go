package docker

import (
	"log/slog"
	"time"

	"caisson/sandbox"
)

// PullPolicy says when an image is pulled.
type PullPolicy string

// The pull policies.
const (
	PullMissing PullPolicy = "missing" // when the engine has none of that name
	PullNever   PullPolicy = "never"
	PullAlways  PullPolicy = "always" // before each create
)

// FileTransfer says by what way files travel (D19).
type FileTransfer string

// The ways.
const (
	TransferAuto    FileTransfer = "auto"
	TransferExec    FileTransfer = "exec"
	TransferArchive FileTransfer = "archive"
)

// Config is what the provider needs to know. The zero value of a field is not
// its default: settings fill all of them.
type Config struct {
	Host        string // SANDBOX_DOCKER_HOST, in one of the forms of CFG-3
	TLSCertPath string
	TLSKeyPath  string
	TLSCAPath   string
	TLSVerify   bool // D6

	Instance       string     // whose sessions these are, on an engine with several servers
	PullPolicy     PullPolicy // empty: missing
	EgressNetwork  string     // the engine's network behind the egress tier; empty: ours
	SeccompProfile string     // builtin (or empty), engine, or a path
	FileTransfer   FileTransfer
	Runtime        string // OCI runtime of sessions; empty: the engine's own
	VMRuntime      string // OCI runtime of sessions with isolation vm; empty: there is none
	DiskMB         int64  // D32; 0: no quota

	Probe ProbeConfig

	Version string       // of this server, for labels and the user agent
	Log     *slog.Logger // nil: no log

	Observer sandbox.Observer // nil: nobody counts
}

// ProbeConfig configures the egress firewall's readiness probe.
type ProbeConfig struct {
	Enabled bool
	Image   string
	Timeout time.Duration
}
