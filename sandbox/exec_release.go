package sandbox

import "context"

// Release lets go of all that is kept for running a command that has ended: the provider's
// side with its connection and buffers, its input, the values of its environment. The record
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
	e.spec.Stdin, e.spec.Env = nil, nil
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
