package docker

import (
	"bytes"
	"context"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/docker/docker/pkg/stdcopy"

	"caisson/sandbox"
	"caisson/wrapper"
)

// running is a command under way: the backend of its record, and the goroutine
// that drains its stream whatever the pace of any reader (D13).
type running struct {
	s      *Session
	st     *stream
	id     string // the wrapper's
	exec   *sandbox.Exec
	filter *wrapper.Filter
	keeps  bool // its stdin is its caller's; else it is ours to close once we have all of its output (D27)

	spoke    chan struct{} // closed at its first word that is not the engine's
	done     chan struct{} // closed when the drain has ended
	life     context.Context
	endLife  context.CancelFunc // by cut: nothing is asked about its end any more
	killed   atomic.Bool        // a stop of ours is on its way or was
	closed   atomic.Bool        // the stream was cut by us
	withheld atomic.Bool        // the stream was given up: its end did not come
	closeOne sync.Once

	// The drain's alone, until done is closed.
	received int64       // raw bytes
	head     []byte      // the first raw output, while it may be the engine's refusal
	ended    bool        // an end marker was seen: the wrapper has come to its end
	let      bool        // its wrapper was let go
	whole    bool        // both streams are at their end markers
	overdue  *time.Timer // runs while all output is here, and the stream's end is not
	refusal  error       // the engine did not start the command

	stdin stdinPump
}

func newRunning(s *Session, st *stream, id string, keepsStdin bool) *running {
	r := &running{
		s: s, st: st, id: id, filter: wrapper.NewFilter(id), keeps: keepsStdin,
		spoke: make(chan struct{}), done: make(chan struct{}),
	}
	r.life, r.endLife = context.WithCancel(s.p.life)
	r.stdin.init(st)
	return r
}

// run starts the goroutines. Close waits for them, and so does Provider.Close,
// which cuts the stream.
func (r *running) run() {
	cut := context.AfterFunc(r.s.p.life, r.cut)
	r.s.p.work.Go(func() {
		defer cut()
		r.drain()
	})
	if r.keeps {
		r.s.p.work.Go(func() { r.stdin.run(r.done) })
	}
}

// Stop signals the command (sandbox.Backend).
func (r *running) Stop(ctx context.Context, sig sandbox.Signal) (sandbox.StopReport, error) {
	if sig == sandbox.SignalKill {
		r.killed.Store(true)
	}
	return r.s.stop(ctx, r.id, sig)
}

// WriteStdin sends p to the command (sandbox.Backend).
func (r *running) WriteStdin(ctx context.Context, p []byte) (int, error) {
	return r.stdin.write(ctx, r.done, p)
}

// CloseStdin ends the command's input, after what was written (sandbox.Backend).
func (r *running) CloseStdin() error {
	r.stdin.finish()
	return nil
}

// Close cuts the stream and waits for the drain (sandbox.Backend).
func (r *running) Close() {
	r.cut()
	<-r.done
	r.stdin.wait(r.keeps)
}

func (r *running) cut() {
	r.closeOne.Do(func() {
		r.closed.Store(true)
		r.endLife()
		r.st.close()
	})
}

// side takes one of the two output streams from the engine's frames.
type side struct {
	r      *running
	stream wrapper.Stream
}

func (o side) Write(p []byte) (int, error) {
	o.r.take(o.stream, p)
	return len(p), nil
}

// drain reads the stream to its end, and says what end that was.
func (r *running) drain() {
	defer close(r.done)
	defer r.endLife()
	_, err := stdcopy.StdCopy(side{r, wrapper.Stdout}, side{r, wrapper.Stderr}, r.st.reader)
	for _, s := range []wrapper.Stream{wrapper.Stdout, wrapper.Stderr} {
		if rest := r.filter.Flush(s); len(rest) > 0 {
			r.exec.Output(toSandbox(s), rest)
		}
	}
	if r.overdue != nil {
		r.overdue.Stop()
	}
	end := r.conclude(err)
	r.st.close()
	r.exec.StreamEnded(end)
}

// engineWords is how the engine begins its refusal to start a command, in place
// of the command's output.
var engineWords = []byte("OCI runtime exec failed")

const headLimit = 2048

func (r *running) take(s wrapper.Stream, p []byte) {
	r.received += int64(len(p))
	if s == wrapper.Stdout && len(r.head) < headLimit {
		r.head = append(r.head, p[:min(len(p), headLimit-len(r.head))]...)
	}
	content, events := r.filter.Feed(s, p)
	if len(content) > 0 {
		r.exec.Output(toSandbox(s), content)
	}
	for _, e := range events {
		r.hear(e)
	}
	// An end marker says nothing of a start: a refusal may come behind it, on the
	// other stream.
	if len(content) > 0 && r.refusal == nil && (len(r.head) == 0 || !r.engineMaySpeak()) {
		r.speak()
	}
	whole := r.filter.Complete()
	if whole && !r.keeps && !r.let {
		r.let = true
		_ = r.st.closeWrite() // the wrapper ends without it, only later
	}
	if whole != r.whole {
		r.whole = whole
		r.exec.OutputWhole(whole)
	}
	r.expectEnd(whole)
}

// endWithheld is how long the stream's end may take once all output is here. The
// engine ends commands one after another, each in up to 2 s; while the output of one
// in the session is not taken from it, it ends no other (STR-6, STR-7).
const endWithheld = 20 * time.Second

// expectEnd gives the stream up when its end is withheld. More output takes that back.
func (r *running) expectEnd(whole bool) {
	switch {
	case whole && r.overdue == nil:
		r.overdue = time.AfterFunc(endWithheld, func() {
			r.withheld.Store(true)
			r.st.close()
		})
	case !whole && r.overdue != nil:
		r.overdue.Stop()
		r.overdue = nil
	}
}

// noProcess begins the wrapper's reason when it could not fork.
const noProcess = "no process"

func (r *running) hear(e wrapper.Event) {
	switch e.Kind {
	case wrapper.Exited:
		r.exec.CommandExited(e.Code)
	case wrapper.EndOfStream:
		r.ended = true
	case wrapper.Refused:
		r.exec.Note("not_run", "nothing was run: "+oneLine(e.Reason, 300))
		if strings.HasPrefix(e.Reason, noProcess) {
			r.refusal = noRoom()
		}
	}
}

// engineMaySpeak says whether the output so far may be the engine's refusal.
func (r *running) engineMaySpeak() bool {
	return bytes.HasPrefix(r.head, engineWords[:min(len(r.head), len(engineWords))])
}

// engineSpoke says that it is, after the drain's end.
func (r *running) engineSpoke() bool { return bytes.HasPrefix(r.head, engineWords) }

func (r *running) speak() {
	select {
	case <-r.spoke:
	default:
		close(r.spoke)
	}
}

func toSandbox(s wrapper.Stream) sandbox.Stream {
	if s == wrapper.Stderr {
		return sandbox.Stderr
	}
	return sandbox.Stdout
}

// endLimit bounds what is asked of the engine about a command's end.
const endLimit = 10 * time.Second
