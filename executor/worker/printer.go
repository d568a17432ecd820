package worker

import (
	"fmt"
	"io"
	"strings"
	"sync"

	"caisson/executor/wire"
)

// printer writes what a call gives: progress and one result on one stream, lines for
// the log on the other. Its methods may run concurrently.
type printer struct {
	mu     sync.Mutex
	stdout io.Writer
	stderr io.Writer
	done   bool // the result is out: nothing may follow
}

func newPrinter(stdout, stderr io.Writer) *printer { return &printer{stdout: stdout, stderr: stderr} }

func (p *printer) progress(progress wire.Progress, nonce string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.done {
		_, _ = p.stdout.Write(wire.EncodeProgress(progress, nonce))
	}
}

// log writes lines to the log. Each stays one line.
func (p *printer) log(text string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	_, _ = fmt.Fprintln(p.stderr, strings.TrimRight(text, "\n"))
}

// result prints the result block, and a failure in its place where the result
// cannot be written; false where that is so.
func (p *printer) result(r wire.Result, nonce string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.done {
		return true
	}
	p.done = true
	block, err := wire.EncodeBlock(r, nonce)
	if err != nil {
		var again error
		if block, again = wire.EncodeBlock(wire.Failure(wire.StatusError, "the tool's result cannot be sent: "+err.Error()), nonce); again != nil {
			return false // there is no nonce
		}
	}
	_, werr := p.stdout.Write(block)
	return werr == nil
}
