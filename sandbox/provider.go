package sandbox

import (
	"context"
	"io"
	"time"
)

// Provider makes sessions on one engine.
//
// All methods may be called concurrently. Each is unblocked by its context and
// by a bound of the provider's own, whichever comes first, and returns an
// *Error. A Provider keeps no list of sessions: the engine's labels are the
// truth about which there are.
type Provider interface {
	Leaser

	// Create makes a running session under the handle id, with a spec that
	// Policy.Apply has resolved. On error nothing is left on the engine; where
	// the engine's answer never came, what may have been made is removed, and
	// the error is KindUnknownOutcome if even that could not be known.
	Create(ctx context.Context, id string, spec Spec, progress Progress) (Session, error)

	// Open returns the session with the handle id that List would show, or
	// KindSessionNotFound.
	Open(ctx context.Context, id string) (Session, error)

	// List returns every session of ours on the engine, in no order, those of
	// other instances and owners included.
	List(ctx context.Context) ([]Info, error)

	// Destroy ends the session and all that runs in it, and removes its
	// ephemeral workspace; a persistent one stays (D11). It reports whether
	// there was one to end. Nothing there is success.
	Destroy(ctx context.Context, id string) (existed bool, err error)

	// Workspaces returns the owner's persistent workspaces.
	Workspaces(ctx context.Context, owner Owner) ([]Workspace, error)

	// DeleteWorkspace removes a persistent workspace, never by force:
	// KindWorkspaceInUse while a container holds it, KindWorkspaceNotFound when
	// there is none.
	DeleteWorkspace(ctx context.Context, owner Owner, key string) error

	// Prune removes what failed calls and dead servers have left beside sessions
	// (helper containers, unnamed workspaces that no container holds), where it
	// is older than age by the engine's clock and belongs to an instance that of
	// approves. It returns what it removed, also with an error.
	Prune(ctx context.Context, age time.Duration, of func(instance string) bool) (removed []string, err error)

	// Ping tells whether the engine answers, within 5 s.
	Ping(ctx context.Context) error

	// Close frees connections. Sessions go on.
	Close() error
}

// Session is one running container of ours.
//
// All methods may be called concurrently. When the container is gone they
// return KindSessionLost; one that is found stopped is started again first
// (D28).
type Session interface {
	// Info returns what the session is. It asks nobody and never blocks.
	Info() Info

	// Spec returns what the session was made from, resolved. After a restart it
	// is read from the engine: of the owner only Info().OwnerHash is known then.
	Spec() Spec

	// Orphans returns the commands that the engine says run in the session. No list is
	// kept of those that were started here: whoever holds records of running commands
	// leaves those out; after a restart there are none. What was found comes with an
	// error too.
	Orphans(ctx context.Context) ([]Orphan, error)

	// Start runs a command. It returns once the engine has started it; the
	// output goes to the spool as it arrives, whatever the pace of its reader.
	// ctx bounds the start alone: a start that fails or is cancelled while it
	// attaches has stopped what it may have started (STP-1).
	Start(ctx context.Context, spec ExecSpec, spool *Spool) (*Exec, error)

	// WriteFiles writes files as the session's user, parents made, each
	// verified. With more than one, either all are written or none is: the
	// first one that cannot be written is named in the error.
	WriteFiles(ctx context.Context, files []FileWrite) ([]FileWritten, error)

	// WriteArchive lays out a plain tar below path, as the session's user, all
	// or nothing. Entries that leave path, devices, FIFOs and set-id bits are
	// refused.
	WriteArchive(ctx context.Context, path string, tar io.Reader) ([]FileWritten, error)

	// ReadFile reads a piece of a file, or a whole directory as a tar.
	ReadFile(ctx context.Context, read FileRead) (FileContent, error)

	// ReadDir lists a directory, by path, at most limit entries; more says that
	// there were others.
	ReadDir(ctx context.Context, path string, recursive bool, limit int) (entries []DirEntry, more bool, err error)
}

// State of a session.
type State string

// The states. A session that a call has found gone is StateLost.
const (
	StateCreating State = "creating"
	StateRunning  State = "running"
	StateStopped  State = "stopped"
	StateLost     State = "lost"
)

// Info is what a session is. Caps are zero where there is none.
type Info struct {
	ID            string
	OwnerHash     string
	Instance      string
	Image         string // as asked for
	ImageID       string // the digest that the engine resolved it to
	Network       Network
	Durability    Durability
	WorkspaceKey  string
	WorkspacePath string // absolute, in the container
	CPU           float64
	MemoryMB      int64
	Pids          int64
	EnvNames      []string          // sorted
	Labels        map[string]string // the caller's own
	CreatedAt     time.Time
	TTL           time.Duration
	ExpiresAt     time.Time // filled by the Manager
	State         State
	RunningExecs  int // filled by the Manager
	HasBash       bool
	Tools         bool // it runs the manifest's tools for its owner, and is no client's session
	Notes         []Note
}

// Workspace is a persistent workspace.
type Workspace struct {
	Key       string
	CreatedAt time.Time
	InUse     bool
}

// Note is something that a caller should know beside a result. Codes are
// lower-case words with underscores; texts carry no output and no secrets.
type Note struct {
	Code string
	Text string
}
