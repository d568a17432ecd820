package sandbox

import (
	"context"
	"log/slog"
	"sync"
	"time"
)

// The limits of a stop. They differ on purpose: the engine itself takes up to
// 2 s to close a stream after a command's end, so every wait for that end is
// longer.
const (
	// StopLimit bounds one stop, its engine calls included (STP-12).
	StopLimit = 5 * time.Second
	// EndGrace is how long a stream may take to end after a stop that left
	// nothing to hold it (D2, TMO-5).
	EndGrace = 4 * time.Second
	// settleWait is how long Kill waits, once the stop has reported, for the
	// stream's end, so that its caller mostly sees the final state.
	settleWait = 500 * time.Millisecond
	// signalWait is how long Kill waits for the end after a polite signal.
	signalWait = 2 * time.Second
)

// Backend is what an Exec needs of the provider that runs its command.
type Backend interface {
	// Stop sends sig to the command's process group. For SignalKill it reports
	// what it found, as soon as that is known. ctx bounds it and is no caller's.
	// A container that is gone or stopped is no error but StopReport.Gone; a
	// stop that fails returns KindKillFailed with what it had said so far.
	Stop(ctx context.Context, sig Signal) (StopReport, error)

	// WriteStdin writes p, and returns how much was taken when ctx ends before.
	// Calls do not overlap.
	WriteStdin(ctx context.Context, p []byte) (int, error)

	// CloseStdin lets the command see the end of its input. Idempotent.
	CloseStdin() error

	// Close cuts the stream and waits for the goroutine that drains it.
	// Idempotent. Never called from that goroutine.
	Close()
}

// Exec is the record of one command: its state, its notes and its output. It
// stays readable after the command and its session have ended.
//
// Natural end, timeout, kill and loss are events on one state machine under one
// lock; the first to end the command stays, and notes attach to it. All methods
// may be called concurrently.
type Exec struct {
	id        string
	sessionID string
	spool     *Spool
	log       *slog.Logger

	keepsStdin bool

	work     sync.WaitGroup // the timer's goroutine, stops, the first stdin
	life     context.Context
	endLife  context.CancelFunc
	stdinOne chan struct{} // holds one token: writes do not interleave (API-6)

	done       chan struct{} // closed when status leaves running
	streamDone chan struct{} // closed when the stream has ended
	whole      chan struct{} // holds one token from when all output has come

	mu          sync.Mutex
	spec        ExecSpec // its input and environment go with Release
	backend     Backend
	timer       *time.Timer
	stop        *stop // in flight, shared by all who ask for one
	stdinClosed bool
	closed      bool // no stop begins any more
	unstopped   bool // the timeout's stop failed: the command may run on
	isWhole     bool // all output has come, whether or not the stream has ended
	streamEnd   *StreamEnd
	view        ExecView
}

// NewExec makes the record of a command that is about to start. The provider
// calls Attach once it runs.
func NewExec(sessionID string, spec ExecSpec, spool *Spool, log *slog.Logger) *Exec {
	life, endLife := context.WithCancel(context.Background()) // the command's own life, no caller's
	e := &Exec{
		id: spec.ID, sessionID: sessionID, spec: spec, keepsStdin: spec.KeepsStdin(), spool: spool, log: log,
		life: life, endLife: endLife,
		stdinOne: make(chan struct{}, 1), done: make(chan struct{}), streamDone: make(chan struct{}), whole: make(chan struct{}, 1),
	}
	e.view = ExecView{ID: spec.ID, SessionID: sessionID, Argv: spec.Argv, Status: StatusRunning, StartedAt: time.Now()}
	return e
}

// Attach tells the record that its command runs: the timeout's clock starts
// here (TMO-2), and the input that the spec carries is on its way.
func (e *Exec) Attach(b Backend) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.backend = b
	running := e.view.Status == StatusRunning // or its stream ended before we got here
	if running {
		e.view.StartedAt = time.Now()
	}
	if e.spec.Timeout > 0 {
		e.view.TimeoutAt = e.view.StartedAt.Add(e.spec.Timeout)
	}
	if !running {
		return
	}
	if e.spec.Timeout > 0 {
		e.work.Add(1)
		e.timer = time.AfterFunc(e.spec.Timeout, e.timeout)
	}
	if e.spec.KeepsStdin() {
		e.stdinOne <- struct{}{}
		e.work.Go(e.sendFirstStdin)
	}
}

// ID is the exec's handle.
func (e *Exec) ID() string { return e.id }

// SessionID is the handle of the session that it ran in.
func (e *Exec) SessionID() string { return e.sessionID }

// Spool is the exec's output, readable for as long as the record is kept.
func (e *Exec) Spool() *Spool { return e.spool }

// Done returns a channel that is closed when the exec has ended.
func (e *Exec) Done() <-chan struct{} { return e.done }

// Wait waits for the end, or for ctx.
func (e *Exec) Wait(ctx context.Context) (ExecView, error) {
	select {
	case <-e.done:
		return e.View(), nil
	case <-ctx.Done():
		return e.View(), ctx.Err()
	}
}

// View returns what is known now.
func (e *Exec) View() ExecView {
	e.mu.Lock()
	defer e.mu.Unlock()
	v := e.view
	v.Notes = append([]Note(nil), e.view.Notes...)
	v.StdinOpen = v.Status == StatusRunning && e.spec.StdinOpen && !e.stdinClosed
	return v
}

// Note adds a note, once for each code.
func (e *Exec) Note(code, text string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.note(Note{code, text})
}

func (e *Exec) note(n Note) {
	for _, other := range e.view.Notes {
		if other.Code == n.Code {
			return
		}
	}
	e.view.Notes = append(e.view.Notes, n)
}

// Close ends what still belongs to the exec: a running one is cut off as lost
// (its command is not stopped: destroy the session, or Kill first), the stream
// is closed and every goroutine has ended when it returns. The spool is closed
// too. The Manager calls it when a record's retention is over.
func (e *Exec) Close() error {
	e.Lose(LostStreamCut, "")
	e.mu.Lock()
	b := e.backend
	e.closed = true
	e.mu.Unlock()
	if b != nil {
		b.Close()
	}
	e.work.Wait()
	return e.spool.Close()
}
