package sandbox

import "time"

// Status of an exec. It moves once, from running to one of the others.
type Status string

// The states of an exec.
const (
	StatusRunning  Status = "running"
	StatusExited   Status = "exited"
	StatusTimedOut Status = "timed_out"
	StatusKilled   Status = "killed"
	StatusLost     Status = "lost"
)

// LostReason says why nobody can know how a command ended.
type LostReason string

// The reasons.
const (
	LostContainerGone   LostReason = "container_gone"
	LostStreamCut       LostReason = "stream_cut" // kill still works
	LostStatusUnknown   LostReason = "status_unknown"
	LostServerRestarted LostReason = "server_restarted"
	LostStopFailed      LostReason = "stop_failed"
)

// Signal is what Exec.Kill sends. Anything but SignalKill is delivered to the
// command's process group and left at that.
type Signal string

// The signals.
const (
	SignalKill Signal = "KILL"
	SignalTerm Signal = "TERM"
	SignalInt  Signal = "INT"
	SignalHup  Signal = "HUP"
	SignalQuit Signal = "QUIT"
	SignalUsr1 Signal = "USR1"
	SignalUsr2 Signal = "USR2"
)

// ExecSpec is a command. Argv is taken literally: no shell looks at it
// (EXW-17).
type ExecSpec struct {
	ID        string // made by the caller, NewExecID
	Argv      []string
	Cwd       string            // empty: the workspace; relative: below it
	Env       map[string]Secret // over the session's, key by key
	Stdin     []byte            // what the command reads first
	StdinOpen bool              // stdin stays open after Stdin for Exec.WriteStdin
	Timeout   time.Duration     // how long the command may run; then its group is killed
}

// KeepsStdin says whether the command gets a stdin from its caller. Without
// one it sees end of file at once.
func (s ExecSpec) KeepsStdin() bool { return s.StdinOpen || len(s.Stdin) > 0 }

// ExecView is what is known of an exec at one moment.
type ExecView struct {
	ID              string
	SessionID       string
	Argv            []string // of one that has ended, the first KiB
	Status          Status
	ExitCode        *int // only when it is known
	CommandExitCode *int // its own process has exited, while others hold the output
	OutputHeld      bool // a process it started still holds the output
	OutputComplete  bool // all output has arrived
	OOMKilled       *bool
	LostReason      LostReason
	StdinOpen       bool
	StartedAt       time.Time
	TimeoutAt       time.Time
	EndedAt         time.Time // zero while running
	Notes           []Note
}

// StreamEnd is what a provider saw when a command's stream ended.
type StreamEnd struct {
	Code     *int       // the engine's exit code, when it recorded one
	Reason   LostReason // why Code is nil
	Complete bool       // both streams arrived to their ends (D27)
	OOM      *bool      // evidence of an out-of-memory kill (D33); nil: not looked for
	Notes    []Note
}

// StopReport is what a stop found (STP-7). Status is the command's exit status, known
// when the stop killed its group, or came upon a wrapper whose command had exited.
type StopReport struct {
	Found      bool // there was a group to signal
	Status     *int
	Held       bool // a process still holds the output
	Gone       bool // the container is gone or stopped; the command ended with it
	Incomplete string
}
