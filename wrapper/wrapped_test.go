package wrapper

import (
	"bytes"
	"errors"
	"io"
	"os"
	"os/exec"
	"slices"
	"syscall"
	"testing"
	"time"
)

// wrapped is one command running under the wrapper.
type wrapped struct {
	box    *box
	id     string
	cmd    *exec.Cmd
	stdin  io.WriteCloser
	began  time.Time
	filter *Filter
	events chan Event
	done   chan struct{}
	ends   [2]chan struct{}
	out    [2]bytes.Buffer
	all    []Event
	code   int
	took   time.Duration
}

func testID(t testing.TB) string {
	t.Helper()
	id, err := NewID()
	if err != nil {
		t.Fatal(err)
	}
	return id
}

// neverCloses, in a command's environment, keeps start from closing a stdin that lingers.
const neverCloses = "NEVER_CLOSES=1"

// start runs c in the box and reads its streams as a provider does.
func (b *box) start(c Command, change ...func(*exec.Cmd)) *wrapped {
	b.t.Helper()
	if c.ID == "" {
		c.ID = testID(b.t)
	}
	w := &wrapped{box: b, id: c.ID, filter: NewFilter(c.ID), events: make(chan Event, 1024), done: make(chan struct{})}
	w.cmd = b.command(c.ExecArgv()...)
	for _, f := range change {
		f(w.cmd)
	}
	var err error
	if w.stdin, err = w.cmd.StdinPipe(); err != nil {
		b.t.Fatal(err)
	}
	var pipes [2]*os.File
	var inner [2]*os.File
	for i := range pipes {
		if pipes[i], inner[i], err = os.Pipe(); err != nil {
			b.t.Fatal(err)
		}
	}
	w.cmd.Stdout, w.cmd.Stderr = inner[0], inner[1]
	w.began = time.Now()
	if err := w.cmd.Start(); err != nil {
		b.t.Fatal(err)
	}
	for i := range inner {
		_ = inner[i].Close()
	}
	go w.read(pipes, c.Linger && !slices.Contains(w.cmd.Env, neverCloses))
	return w
}

type chunk struct {
	s    Stream
	data []byte
}

func (w *wrapped) read(pipes [2]*os.File, linger bool) {
	chunks := make(chan chunk)
	for i := range pipes {
		w.ends[i] = make(chan struct{})
		go func() {
			defer close(w.ends[i])
			for {
				buf := make([]byte, 64<<10)
				n, err := pipes[i].Read(buf)
				if n > 0 {
					chunks <- chunk{Stream(i), buf[:n]}
				}
				if err != nil {
					_ = pipes[i].Close()
					return
				}
			}
		}()
	}
	go func() {
		<-w.ends[0]
		<-w.ends[1]
		close(chunks)
	}()
	for c := range chunks {
		content, events := w.filter.Feed(c.s, c.data)
		w.out[c.s].Write(content)
		w.all = append(w.all, events...)
		for _, e := range events {
			w.events <- e
		}
		if linger && w.filter.Complete() {
			_ = w.stdin.Close()
		}
	}
	for s := range w.out {
		w.out[s].Write(w.filter.Flush(Stream(s)))
	}
	err := w.cmd.Wait()
	w.took = time.Since(w.began)
	w.code = exitStatus(err)
	close(w.done)
}

// exitStatus is the status as an engine gives it.
func exitStatus(err error) int {
	var ee *exec.ExitError
	if err == nil {
		return 0
	}
	if !errors.As(err, &ee) {
		return -2
	}
	ws := ee.Sys().(syscall.WaitStatus)
	if ws.Signaled() {
		return 128 + int(ws.Signal())
	}
	return ws.ExitStatus()
}

// wait returns when the wrapper has ended and its streams are read.
func (w *wrapped) wait() *wrapped {
	w.box.t.Helper()
	select {
	case <-w.done:
	case <-time.After(20 * time.Second):
		w.box.t.Fatalf("command did not end; in the box:\n%s", w.box.ps())
	}
	return w
}

// ended says whether wait would return at once.
func (w *wrapped) ended() bool {
	select {
	case <-w.done:
		return true
	default:
		return false
	}
}

func (w *wrapped) stdout() string { return w.out[Stdout].String() }
func (w *wrapped) stderr() string { return w.out[Stderr].String() }

// run runs a command to its end, with its stdin at its end.
func (b *box) run(argv ...string) *wrapped {
	b.t.Helper()
	w := b.start(Command{Argv: argv})
	_ = w.stdin.Close()
	return w.wait()
}

// sh runs a line of shell to its end.
func (b *box) sh(line string) *wrapped {
	b.t.Helper()
	return b.run("sh", "-c", line)
}
