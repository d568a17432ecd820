// Package wrapper makes the command lines by which a command runs, and is stopped,
// inside a session container, and reads what they print. It holds the shell scripts
// themselves and imports nothing of the project.
//
// Everything that a container prints is untrusted: neither [Filter] nor [ParseReport]
// takes a word of it as more than a claim of the session about itself.
package wrapper

import (
	"crypto/rand"
	_ "embed"
	"encoding/hex"
	"fmt"
	"strings"
	"time"
)

var (
	//go:embed proc.sh
	procScript string
	//go:embed sweep.sh
	sweepScript string
	//go:embed run.sh
	runScript string
	//go:embed child.sh
	childScript string
	//go:embed group.sh
	groupScript string
	//go:embed stop.sh
	stopScript string
)

// shell is named by its path: a caller's PATH must not decide which one runs.
const (
	shell     = "/bin/sh"
	shellName = "sh" // what it calls itself
)

// NewID returns the id of a command: 32 lower-case hex characters, 128 random bits (D7).
func NewID() (string, error) {
	var b [16]byte
	if _, err := rand.Read(b[:]); err != nil {
		return "", fmt.Errorf("read random bytes: %w", err)
	}
	return hex.EncodeToString(b[:]), nil
}

// Command is one command to run inside a session.
type Command struct {
	// ID is 32 lower-case hex characters that nobody can guess, as [NewID] makes them,
	// and is used once.
	ID string
	// Until is when the command's time is over, zero for never. The wrapper does nothing
	// about it: it is kept, in whole seconds and rounded up, for who finds the command
	// running without knowing of it ([ReadArgv]).
	Until time.Time
	// Argv is the command, taken literally (EXW-17). It must not be empty.
	Argv []string
	// Path is the PATH that the command gets. The wrapper runs under a fixed PATH of
	// its own, since a session may plant a program of any name (D19). Empty means the
	// PATH that the container has.
	Path string
	// Linger says that the exec's stdin is the provider's to keep because the caller
	// gave none. The command then reads /dev/null, and the wrapper, having written its
	// end markers, waits for the end of its own stdin, at most 10 s, before it ends:
	// the engine cuts the streams about 2 s after that (D27).
	Linger bool
}

// ExecArgv returns the argv for the engine's exec. Its exit code is the command's own,
// or 126 with a refusal that [Filter] reports when the command was not run.
func (c Command) ExecArgv() []string {
	linger := ""
	if c.Linger {
		linger = "1"
	}
	// The id ends the first line: by it a stop knows the wrapper's command line.
	script := "tai_id=" + quote(c.ID) + "\ntai_until=" + seconds(c.Until) + "\ntai_linger=" + linger +
		"\ntai_child=" + quote(compact(childScript)) + "\n" +
		compact(procScript) + compact(sweepScript) + compact(runScript)
	return append([]string{shell, "-c", script, shellName, c.Path}, c.Argv...)
}

// StopArgv returns the argv of the exec that stops the command id, to be run as the
// same user. Its stdout is for [ParseReport]; act on the report, not on the exec's end,
// which the engine may hold back for seconds.
//
// KILL is the whole protocol: kill the command's process group, wait up to 2 s for its
// status, look for who still holds the output. TERM, INT, HUP, QUIT, USR1 and USR2 are
// only handed to the group. Any other signal is not sent: the report's Failed is
// "signal".
func StopArgv(id, signal string) []string {
	script := "tai_of=" + quote(id) + "\ntai_sig=" + quote(signal) + "\n" +
		compact(procScript) + compact(groupScript) + compact(stopScript)
	return []string{shell, "-c", script, shellName}
}

// compact drops comment lines and indentation, which the container has no use for.
func compact(script string) string {
	var b strings.Builder
	for line := range strings.Lines(script) {
		line = strings.TrimLeft(line, "\t")
		if line == "\n" || strings.HasPrefix(line, "#") {
			continue
		}
		b.WriteString(line)
	}
	return b.String()
}

func quote(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }
