package sandboxtest

import (
	"context"
	"io"
	"sync"

	"caisson/sandbox"
)

// The exit codes of a command that was stopped, or not found.
const (
	codeKilled   = 128 + 9
	codeNotFound = 127
)

// process is a command of a fake session, and the backend of its exec.
type process struct {
	session *fakeSession
	spec    sandbox.ExecSpec
	exec    *sandbox.Exec
	stdin   chan []byte
	killed  chan struct{} // closed by what ends the process from outside
	over    chan struct{} // closed when its stream has ended

	mu       sync.Mutex
	cause    string // why killed is closed: a signal, or "container"
	code     *int   // what it exited with, when it did so by itself
	own      *int   // what its own process exited with while others keep the output
	unread   []byte
	inClosed bool
}

func newProcess(s *fakeSession, spec sandbox.ExecSpec, spool *sandbox.Spool) *process {
	p := &process{
		session: s, spec: spec, stdin: make(chan []byte, 16), killed: make(chan struct{}), over: make(chan struct{}),
		exec: sandbox.NewExec(s.info.ID, spec, spool, s.fake.log),
	}
	if !spec.KeepsStdin() {
		_ = p.CloseStdin() // it cannot fail
	}
	return p
}

// run is the command's life, and the goroutine that "drains" it.
func (p *process) run() {
	defer close(p.over)
	defer p.session.left(p)
	code := p.shell(p.spec.Argv)
	p.mu.Lock()
	cause := p.cause
	if cause == "" {
		p.code = &code
	}
	p.mu.Unlock()
	switch {
	case cause == "container":
		p.exec.StreamEnded(sandbox.StreamEnd{Reason: sandbox.LostContainerGone})
	case code == codeCut:
		p.exec.StreamEnded(sandbox.StreamEnd{Reason: sandbox.LostStreamCut})
	default:
		p.exec.StreamEnded(sandbox.StreamEnd{Code: &code, Complete: true})
	}
}

// end ends the process from outside; the first cause stays.
func (p *process) end(cause string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.cause == "" && p.code == nil {
		p.cause = cause
		close(p.killed)
	}
}

// vanish is the end of its container.
func (p *process) vanish() {
	p.end("container")
	<-p.over
}

// Stop implements sandbox.Backend.
func (p *process) Stop(ctx context.Context, sig sandbox.Signal) (sandbox.StopReport, error) {
	if err := p.session.fake.pass(ctx, OpStop); err != nil {
		return sandbox.StopReport{}, err
	}
	select {
	case <-p.over:
		return sandbox.StopReport{}, nil // nothing to stop
	default:
	}
	p.end(string(sig))
	if sig != sandbox.SignalKill {
		return sandbox.StopReport{Found: true}, nil
	}
	select {
	case <-p.over:
	case <-ctx.Done():
		return sandbox.StopReport{}, ctx.Err()
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	code := codeKilled
	switch {
	case p.code != nil:
		code = *p.code
	case p.own != nil:
		code = *p.own
	}
	return sandbox.StopReport{Found: true, Status: &code, Gone: p.cause == "container"}, nil
}

// WriteStdin implements sandbox.Backend. A command that does not read takes
// what fits its pipe.
func (p *process) WriteStdin(ctx context.Context, data []byte) (int, error) {
	const piece = 4096
	n := 0
	for n < len(data) {
		chunk := append([]byte(nil), data[n:min(len(data), n+piece)]...)
		select {
		case p.stdin <- chunk:
			n += len(chunk)
		case <-ctx.Done():
			return n, ctx.Err()
		case <-p.over:
			return n, io.ErrClosedPipe
		}
	}
	return n, nil
}

// CloseStdin implements sandbox.Backend.
func (p *process) CloseStdin() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.inClosed {
		p.inClosed = true
		close(p.stdin)
	}
	return nil
}

// Close implements sandbox.Backend.
func (p *process) Close() { p.vanish() }

// Read is the command's standard input.
func (p *process) Read(b []byte) (int, error) {
	if len(p.unread) == 0 {
		select {
		case chunk, open := <-p.stdin:
			if !open {
				return 0, io.EOF
			}
			p.unread = chunk
		case <-p.killed:
			return 0, io.EOF
		}
	}
	n := copy(b, p.unread)
	p.unread = p.unread[n:]
	return n, nil
}

// writer is one of the command's outputs.
type writer struct {
	p      *process
	stream sandbox.Stream
}

func (w writer) Write(b []byte) (int, error) {
	select {
	case <-w.p.killed:
		return 0, io.ErrClosedPipe
	default:
		w.p.exec.Output(w.stream, b)
		return len(b), nil
	}
}
