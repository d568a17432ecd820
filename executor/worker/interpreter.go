package worker

import (
	"context"
	_ "embed"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync"
	"time"

	"caisson/executor/wire"
)

// harness is the Python side. It fits into a pipe, so that it is written before
// anybody reads.
//
//go:embed harness.py
var harness []byte

const (
	// bootstrap is all that a list of processes shows.
	bootstrap = "import os; exec(compile(os.fdopen(5, 'rb').read(), '<caisson>', 'exec'))"
	// mostReply bounds what the harness answers, in bytes: figures above all.
	mostReply = 64 << 20
	// markTime bounds the wait for the end of what a call has printed.
	markTime = time.Second
)

// interpreter is one Python process. Its methods are called by one goroutine at a
// time.
type interpreter struct {
	children *children
	process  *child
	requests *os.File
	replies  chan reply // closed when the channel is
	stdout   *capture
	stderr   *capture
	copies   sync.WaitGroup
	files    []*os.File
	names    []string // of the variables after the last call
	space    uint64   // bytes of address space
	killed   *death
}

// reply is what the harness says after a call.
type reply struct {
	Value  string   `json:"value"`
	Error  string   `json:"error"`
	Kind   string   `json:"kind"`
	Images [][]byte `json:"images"`
	Names  []string `json:"names"`
	Notes  []string `json:"notes"`
}

// printed is what the code has printed during a call.
type printed struct {
	stdout, stderr string
	notes          []string
}

// death is why a process is gone; without a text it is not.
type death struct {
	cause string // timeout, memory, cpu, crash, cancelled
	text  string
}

// startInterpreter starts Python under its limits, before it has read a line of any
// program.
func startInterpreter(c *children, group bool) (*interpreter, error) {
	i := &interpreter{children: c, replies: make(chan reply, 1)}
	cmd := exec.Command("python3", "-c", bootstrap) //nolint:noctx // it lives longer than a call
	pipes, err := pipesOf(cmd)
	if err != nil {
		return nil, err
	}
	cmd.Stdin = nil // the null device: code that asks for input gets an end of file
	var theirs []*os.File
	open := func() (r, w *os.File) {
		if err == nil {
			if r, w, err = os.Pipe(); err == nil {
				i.files = append(i.files, r, w)
			}
		}
		return r, w
	}
	requestRead, requestWrite := open()
	replyRead, replyWrite := open()
	programRead, programWrite := open()
	if err != nil {
		pipes.started()
		pipes.close()
		i.release()
		return nil, fmt.Errorf("no pipe for Python: %w", err)
	}
	theirs = []*os.File{requestRead, replyWrite, programRead}
	cmd.ExtraFiles = theirs
	i.process, err = c.start(cmd, group)
	pipes.started()
	for _, f := range theirs {
		_ = f.Close()
	}
	i.files = append(i.files, pipes.stdin, pipes.stdout, pipes.stderr)
	if err != nil {
		i.release()
		return nil, err
	}
	i.requests = requestWrite
	i.stdout, i.stderr = newCapture(), newCapture()
	i.copies.Go(func() { i.stdout.fill(pipes.stdout) })
	i.copies.Go(func() { i.stderr.fill(pipes.stderr) })
	i.copies.Go(func() { i.hear(replyRead) })
	if i.space, err = limit(i.process.pid); err == nil {
		_, err = programWrite.Write(harness)
	}
	_ = programWrite.Close()
	if err != nil {
		i.kill()
		return nil, fmt.Errorf("no limits for Python: %w", err)
	}
	return i, nil
}

func (i *interpreter) release() {
	for _, f := range i.files {
		_ = f.Close()
	}
}

// hear reads the harness's answers until the channel ends or breaks.
func (i *interpreter) hear(from io.Reader) {
	defer close(i.replies)
	for {
		var head [4]byte
		if _, err := io.ReadFull(from, head[:]); err != nil {
			return
		}
		size := binary.BigEndian.Uint32(head[:])
		if size > mostReply {
			return
		}
		text := make([]byte, size)
		if _, err := io.ReadFull(from, text); err != nil {
			return
		}
		var r reply
		if json.Unmarshal(text, &r) != nil {
			return
		}
		i.replies <- r
	}
}

func (i *interpreter) alive() bool {
	select {
	case <-i.process.done:
		return false
	default:
		return i.killed == nil
	}
}

// kill ends the process with all that it started, and says how it ended.
func (i *interpreter) kill() death {
	if i.killed != nil {
		return *i.killed
	}
	i.children.kill(i.process)
	<-i.process.done
	for _, f := range i.files {
		_ = f.SetReadDeadline(time.Now().Add(drainTime)) // what is not a pipe of ours to read refuses
	}
	drained := make(chan struct{})
	go func() {
		for range i.replies { // an answer that nobody waits for any more
		}
		close(drained)
	}()
	i.copies.Wait()
	<-drained
	i.release()
	d := deathOf(i.process.state)
	i.killed = &d
	return d
}

// run runs code. The process is gone when it returns a death.
func (i *interpreter) run(ctx context.Context, code string, within time.Duration) (reply, printed, death) {
	mark := wire.NewNonce()
	request, err := json.Marshal(map[string]string{"code": code, "mark": mark})
	if err != nil {
		return reply{}, printed{}, i.lost(death{"crash", "the call cannot be sent: " + err.Error()})
	}
	before := kills()
	limitCPU(i.process.pid, within)
	outEnd, errEnd := i.stdout.begin(mark), i.stderr.begin(mark)
	deadline := time.NewTimer(within)
	defer deadline.Stop()
	_ = i.requests.SetWriteDeadline(time.Now().Add(within))          // an old thread may keep the harness from reading
	head := binary.BigEndian.AppendUint32(nil, uint32(len(request))) //nolint:gosec // bounded by the envelope
	if _, err = i.requests.Write(append(head, request...)); errors.Is(err, os.ErrDeadlineExceeded) {
		return i.ended(reply{}, death{"timeout", timeoutText(within)})
	}
	select {
	case r, ok := <-i.replies:
		if !ok {
			return i.ended(reply{}, i.diagnose(before))
		}
		wait := time.NewTimer(markTime)
		defer wait.Stop()
		for _, end := range []<-chan struct{}{outEnd, errEnd} {
			select {
			case <-end:
			case <-wait.C:
			}
		}
		i.names = r.Names
		return r, i.printed(), death{}
	case <-deadline.C:
		return i.ended(reply{}, death{"timeout", timeoutText(within)})
	case <-ctx.Done():
		return i.ended(reply{}, death{"cancelled", "the call was cancelled"})
	case <-i.process.done:
		return i.ended(reply{}, i.diagnose(before))
	}
}

func timeoutText(within time.Duration) string {
	return fmt.Sprintf("the code ran longer than its %s (timeout_seconds) and was killed", within.Round(10*time.Millisecond))
}

// ended is the end of a call whose process is gone or about to be.
func (i *interpreter) ended(r reply, d death) (reply, printed, death) {
	i.lost(d)
	return r, i.printed(), d
}

func (i *interpreter) lost(d death) death {
	i.kill()
	i.killed = &d
	return d
}

// diagnose finds out why a process has ended without being told to. before is the
// count of processes that the kernel had killed for memory.
func (i *interpreter) diagnose(before int64) death {
	patience := time.NewTimer(markTime)
	defer patience.Stop()
	select {
	case <-i.process.done:
	case <-patience.C:
		return death{"crash", "it closed its line to the worker"}
	}
	d := deathOf(i.process.state)
	if after := kills(); d.cause == "memory" && before >= 0 && after == before {
		return death{"crash", "it was killed with SIGKILL, and not for its memory"}
	}
	return d
}

// deathOf reads a death from how the process ended.
func deathOf(state *os.ProcessState) death {
	code, signal := statusOf(state)
	switch signal {
	case "":
		return death{"crash", fmt.Sprintf("it ended by itself with exit status %d", code)}
	case "SIGKILL":
		return death{"memory", "it ran out of memory and was killed"}
	case "SIGXCPU":
		return death{"cpu", "it used up its processor time"}
	default:
		return death{"crash", "it crashed with " + signal}
	}
}

func (i *interpreter) printed() printed {
	var p printed
	for _, one := range []struct {
		from *capture
		to   *string
		name string
	}{{i.stdout, &p.stdout, "stdout"}, {i.stderr, &p.stderr, "stderr"}} {
		text, left := one.from.take()
		*one.to = text
		if left > 0 {
			p.notes = append(p.notes, fmt.Sprintf("%s: %d more bytes are left out", one.name, left))
		}
	}
	return p
}
