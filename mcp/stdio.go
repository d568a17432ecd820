package mcp

import (
	"bufio"
	"context"
	"errors"
	"io"
	"sync"
	"time"

	mcpgo "github.com/mark3labs/mcp-go/mcp"

	"caisson/sandbox"
)

// stdioDrain bounds the wait for answers that the client does not read, once the
// server has been told to end.
const stdioDrain = 10 * time.Second

// ServeStdio serves one client over in and out until in ends or ctx does; both
// are no error. Calls under way are then cancelled, what they had started is
// stopped, and they are answered. Nothing but protocol messages is ever written to
// out. When ctx ends while nothing comes in, one goroutine stays in its Read of in. It
// returns within stdioDrain of the end also when nobody reads out: that is an error.
func (s *Server) ServeStdio(ctx context.Context, in io.Reader, out io.Writer) error {
	base, cancel := context.WithCancelCause(withTransport(context.WithoutCancel(ctx), overStdio))
	defer cancel(errClientGone)
	defer context.AfterFunc(ctx, func() { cancel(errShutdown) })()
	c := &stdioClient{s: s, ctx: base, out: &lineSink{out: out, gone: func() { cancel(errClientGone) }}}
	c.peer = newPeer(base, string(overStdio), sandbox.Owner{Name: s.owner})
	stream := newExchange(c.peer, c.out)
	leave := s.listen(base, stream)
	ended := make(chan error, 1)
	go func() { ended <- c.read(bufio.NewReaderSize(in, 64<<10)) }()
	var err error
	select {
	case err = <-ended:
		cancel(errClientGone)
	case <-base.Done():
	}
	leave()
	c.work.Go(func() { stream.close(true) }) // waits for a notice that is being written, for as long as nobody reads it
	err = errors.Join(err, c.drain())
	s.clientLeft(clientKey(overStdio, c.peer.id))
	if errors.Is(err, io.ErrClosedPipe) {
		return nil
	}
	return err
}

// stdioClient is the one client of a stdio server.
type stdioClient struct {
	s    *Server
	ctx  context.Context
	peer *peer
	out  *lineSink

	mu   sync.Mutex
	over bool // no request begins any more
	work sync.WaitGroup
}

// read takes messages until in ends. It never waits for one to be served.
func (c *stdioClient) read(in *bufio.Reader) error {
	for {
		line, whole, err := readLine(in, c.s.options.MaxBody)
		switch {
		case !whole:
			_ = c.out.send(rpcError(nil, mcpgo.INVALID_REQUEST,
				"the message is larger than "+mebibytes(c.s.options.MaxBody)+": send large files in pieces (upload with append)"))
		case len(line) > 0:
			c.take(line)
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil || c.ctx.Err() != nil {
			return err
		}
	}
}

func (c *stdioClient) take(line []byte) {
	m, fault := readMessage(line)
	switch {
	case fault != nil:
		_ = c.out.send(rpcError(m.id, fault.code, fault.text))
		return
	case !m.isRequest():
		c.s.notice(c.peer, m)
		return
	}
	ctx, done, fault := c.peer.requests.begin(c.ctx, m.id) // before the next line, which may cancel it
	if fault != nil {
		c.s.notCalled(c.ctx, m.method, codeInvalidRequest)
		_ = c.out.send(rpcError(m.id, fault.code, fault.text)) // holds up a client that sends and does not read
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.over {
		done()
		return
	}
	c.work.Go(func() {
		defer done()
		if answer, _ := c.s.answer(ctx, newExchange(c.peer, c.out), m); answer != nil {
			_ = c.out.send(answer) // a client that has gone ends ctx
		}
	})
}

// drain takes no more requests and waits for those there are, as long as stdioDrain.
// What a client does not read then stays in its Write of out until out is closed.
func (c *stdioClient) drain() error {
	c.mu.Lock()
	c.over = true
	c.mu.Unlock()
	done := make(chan struct{})
	go func() { c.work.Wait(); close(done) }() // ends with the last request, each of which is cancelled, and the stream's last notice
	limit := time.NewTimer(c.s.stdioDrain)
	defer limit.Stop()
	select {
	case <-done:
		return nil
	case <-limit.C:
		return sandbox.Errorf("serve stdio", sandbox.KindUnknownOutcome, "the client does not read its answers")
	}
}

// readLine reads a line of up to limit bytes, without its end. What is longer is
// read to its end and dropped, and is not whole.
func readLine(in *bufio.Reader, limit int64) (line []byte, whole bool, err error) {
	whole = true
	for {
		part, err := in.ReadSlice('\n')
		if int64(len(line)+len(part)) > limit+2 {
			line, whole = nil, false
		}
		if whole {
			line = append(line, part...)
		}
		if errors.Is(err, bufio.ErrBufferFull) {
			continue
		}
		return trimEnd(line), whole, err
	}
}

func trimEnd(line []byte) []byte {
	for len(line) > 0 && (line[len(line)-1] == '\n' || line[len(line)-1] == '\r') {
		line = line[:len(line)-1]
	}
	return line
}

// lineSink writes messages as lines. It is the only writer of its out.
type lineSink struct {
	gone func() // called when nothing can be written any more

	mu  sync.Mutex
	out io.Writer
}

func (l *lineSink) send(message []byte) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	_, err := l.out.Write(append(message[:len(message):len(message)], '\n'))
	if err != nil {
		l.gone()
	}
	return err
}
