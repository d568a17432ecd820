package worker

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"time"
)

const (
	// mostOutput bounds what a command may print, in bytes.
	mostOutput = 16 << 20
	// drainTime bounds the wait for what is still in a pipe once nothing that we
	// know of can write to it.
	drainTime = time.Second
)

var errTooMuch = fmt.Errorf("the tool printed more than %d MiB and was stopped", mostOutput>>20)

// ending is how a program ended, and what it wrote.
type ending struct {
	code   int
	signal string // that ended it, or empty
	oom    bool   // the kernel has killed a process of the container for its memory meanwhile
	stdout []byte
	stderr *tail
}

// run runs a program to its end, in the process group of the worker, and kills all
// that it leaves behind. Nothing else may run below this process meanwhile. An error
// means that it was not started or did not end by itself; ctx ends it.
func (c *children) run(ctx context.Context, argv []string, stdin []byte, w watch) (ending, error) {
	cmd := exec.Command(argv[0], argv[1:]...) //nolint:noctx // ended with all that it started, not alone
	pipes, err := pipesOf(cmd)
	if err != nil {
		return ending{}, err
	}
	before := kills()
	p, err := c.start(cmd, false)
	pipes.started()
	if err != nil {
		pipes.close()
		return ending{}, err
	}
	end := ending{stderr: newTail(shownStderr)}
	over := make(chan struct{})
	var copies sync.WaitGroup
	copies.Go(func() {
		_, _ = pipes.stdin.Write(stdin) // a program need not read it
		_ = pipes.stdin.Close()
	})
	copies.Go(func() {
		end.stdout, _ = io.ReadAll(io.LimitReader(pipes.stdout, mostOutput+1))
		if len(end.stdout) > mostOutput {
			close(over)
		}
	})
	copies.Go(func() { logLines(pipes.stderr, io.Writer(end.stderr), w.stderr) })
	select {
	case <-p.done:
	case <-ctx.Done():
		err = ctx.Err()
	case <-over:
		err = errTooMuch
	}
	c.sweep()
	<-p.done
	pipes.hurry()
	copies.Wait()
	pipes.close()
	if err == nil && len(end.stdout) > mostOutput {
		err = errTooMuch
	}
	end.code, end.signal = statusOf(p.state)
	end.oom = before >= 0 && kills() > before
	return end, err
}

// statusOf reads how a process ended.
func statusOf(state *os.ProcessState) (code int, signal string) {
	if state == nil {
		return -1, ""
	}
	if s, ok := state.Sys().(syscall.WaitStatus); ok && s.Signaled() {
		return -1, signalName(s.Signal())
	}
	return state.ExitCode(), ""
}

// pipes are our ends of a program's standard streams.
type pipes struct {
	stdin          *os.File
	stdout, stderr *os.File
	theirs         []*os.File
}

func pipesOf(cmd *exec.Cmd) (*pipes, error) {
	p := &pipes{}
	var err error
	open := func() (r, w *os.File) {
		if err == nil {
			r, w, err = os.Pipe()
		}
		return r, w
	}
	in, stdin := open()
	stdout, out := open()
	stderr, errs := open()
	*p = pipes{stdin: stdin, stdout: stdout, stderr: stderr, theirs: []*os.File{in, out, errs}}
	if err != nil {
		p.started()
		p.close()
		return nil, errors.New("no pipe for the tool's output: " + err.Error())
	}
	cmd.Stdin, cmd.Stdout, cmd.Stderr = in, out, errs
	return p, nil
}

// started lets go of the program's ends, which it has by now.
func (p *pipes) started() {
	for _, f := range p.theirs {
		_ = f.Close()
	}
}

// hurry bounds what still reads and writes.
func (p *pipes) hurry() {
	_ = p.stdin.SetWriteDeadline(time.Now())
	_ = p.stdout.SetReadDeadline(time.Now().Add(drainTime))
	_ = p.stderr.SetReadDeadline(time.Now().Add(drainTime))
}

func (p *pipes) close() {
	for _, f := range []*os.File{p.stdin, p.stdout, p.stderr} {
		_ = f.Close()
	}
}
