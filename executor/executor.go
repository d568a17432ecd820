package executor

import (
	"context"

	"caisson/sandbox"
)

// Executor runs tool calls in one place: the containers of one declared executor
// for one owner (D26), or this server's host.
//
// Both methods may be called concurrently.
type Executor interface {
	// Execute runs one call and waits for its end, for the envelope's timeout
	// (which covers everything: pull, create, upload and run, TX-22), or for
	// ctx. What goes wrong comes back as a result with a status that is no
	// success (TX-20), also after Close.
	Execute(ctx context.Context, e Envelope, w Watch) Result

	// Close ends what the executor keeps; calls in flight come back as failures
	// that say so. Closing again is harmless and waits for the first (ENV-10).
	// ctx bounds the wait.
	Close(ctx context.Context) error
}

// Watch is told what a call does while it runs. Its functions are called one at a
// time, never after Execute has returned, and must not block for long. Nothing of
// a rule's environment is in what they are told; the numbers of progress only ever
// rise. Either may be nil.
type Watch struct {
	Progress func(Progress)
	Stderr   func(line string) // what the worker and the tool wrote to standard error, without line ends
}

// Caller is who calls a tool.
type Caller struct {
	Owner      sandbox.Owner // whose containers it runs in; its Tools is set here
	Client     string        // the client session: a REPL is one for each (D26)
	Policy     string        // name of the execution policy; empty: the default one
	Ceilings   *sandbox.Ceilings
	Permission *Permission // travels to the tool; nil: nothing does
}

// tools is the owner of the containers that run tools for the caller.
func (c Caller) tools() sandbox.Owner {
	owner := c.Owner
	owner.Tools = true
	return owner
}
