package sandbox

import (
	"context"
	"strings"
)

// Release lets go of all that is kept for running a command that has ended: the provider's
// side with its connection and buffers, its words, its input, the values of its environment. The record
// and its output stay. One that runs, or may have to be stopped still, keeps all. It waits
// for a stop in flight, and for the drain to end; never call it from a Backend.
func (e *Exec) Release() {
	e.mu.Lock()
	s := e.stop
	e.mu.Unlock()
	if s != nil {
		<-s.over // bounded by StopLimit and EndGrace
	}
	e.mu.Lock()
	b := e.backend
	keep := b == nil || e.view.Status == StatusRunning || e.stoppable()
	e.mu.Unlock()
	if keep {
		return
	}
	b.Close()
	e.work.Wait() // whatever uses them has ended
	e.mu.Lock()
	defer e.mu.Unlock()
	e.backend = released{}
	e.spec.Stdin, e.spec.Env, e.spec.Argv = nil, nil, nil
	e.view.Argv = beginning(e.view.Argv)
}

// keptArgv is how much of an ended command's words its record keeps, in bytes: scripts of
// a hundred KiB each would be most of what the records of an hour take.
const keptArgv = 1 << 10

// beginning is the first words of a command, copied: a part of a text holds all of it.
func beginning(argv []string) []string {
	var kept []string
	for left, i := keptArgv, 0; i < len(argv) && left > 0; i++ {
		word := argv[i][:min(left, len(argv[i]))]
		kept = append(kept, strings.Clone(word))
		left -= len(word) + 1
	}
	return kept
}

// provider is the backend, for those who do not hold e.mu.
func (e *Exec) provider() Backend {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.backend
}

// released is the backend of an exec that has none any more.
type released struct{}

func (released) Stop(context.Context, Signal) (StopReport, error) { return StopReport{Gone: true}, nil }

func (released) WriteStdin(context.Context, []byte) (int, error) { return 0, stdinClosed() }

func (released) CloseStdin() error { return nil }

func (released) Close() {}
