package worker

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"path/filepath"
	"sync"
	"time"

	"caisson/executor/wire"
)

const (
	// connectTime bounds the start of the resident and the sending of a call.
	connectTime = 10 * time.Second
	// frameTime bounds the sending of one frame to a caller that does not read.
	frameTime = 10 * time.Second
)

// The frames between a call's worker and the resident: a kind, a length of four
// bytes, the content.
const (
	frameCall   = 'c' // an envelope
	frameEnd    = 'q' // end
	frameOutput = 'o' // for standard output
	frameLog    = 'e' // for standard error
	frameExit   = 'x' // the exit status, the last one
)

// forward has the resident run the call, and is its voice. When the call's worker
// goes away the resident stops the call.
func (p *program) forward(ctx context.Context, text []byte, e wire.Envelope) int {
	fail := func(why string) int {
		p.out.log(why)
		p.out.result(wire.Failure(wire.StatusError, why), e.Nonce)
		return exitCrash
	}
	conn, err := p.reach(ctx)
	if err != nil {
		return fail("the resident process of the tools cannot be reached: " + err.Error())
	}
	defer func() { _ = conn.Close() }()
	if err := writeFrame(conn, frameCall, text); err != nil {
		return fail("the call cannot be handed to the resident process: " + err.Error())
	}
	defer context.AfterFunc(ctx, func() { _ = conn.CloseWrite() })()
	given := false // a second result would make the first one worthless
	for {
		kind, content, err := readFrame(conn, 2*wire.MostEnvelope)
		switch {
		case err != nil && given:
			return exitResult
		case err != nil:
			return fail("the resident process of the tools ended during the call; what lived in it is lost")
		case kind == frameOutput:
			given = given || bytes.Contains(content, []byte("_RESULT_BEGIN_"+e.Nonce))
			_, _ = p.out.stdout.Write(content)
		case kind == frameLog:
			_, _ = p.out.stderr.Write(content)
		case kind == frameExit && len(content) == 1:
			return int(content[0])
		}
	}
}

// reach connects to the resident, and starts it first where there is none.
func (p *program) reach(ctx context.Context) (*net.UnixConn, error) {
	ctx, cancel := context.WithTimeout(ctx, connectTime)
	defer cancel()
	dir, err := privateDir(p.options.residentDir)
	if err != nil {
		return nil, err
	}
	if conn, err := dialResident(ctx, dir); err == nil {
		return conn, nil
	}
	lock, err := lockFile(ctx, filepath.Join(dir, "lock"))
	if err != nil {
		return nil, err
	}
	defer func() { _ = lock.Close() }()
	if conn, err := dialResident(ctx, dir); err == nil {
		return conn, nil // somebody else has started it
	}
	if err := p.startResident(ctx); err != nil {
		return nil, fmt.Errorf("start it: %w", err)
	}
	return dialResident(ctx, dir)
}

func dialResident(ctx context.Context, dir string) (*net.UnixConn, error) {
	var d net.Dialer
	conn, err := d.DialContext(ctx, "unix", filepath.Join(dir, socketIn))
	if err != nil {
		return nil, err
	}
	unix, ok := conn.(*net.UnixConn)
	if !ok {
		_ = conn.Close()
		return nil, errors.New("the socket is none")
	}
	return unix, nil
}

// endResident ends the resident and waits until it is gone; none is fine.
func (p *program) endResident(ctx context.Context) int {
	ctx, cancel := context.WithTimeout(ctx, connectTime)
	defer cancel()
	conn, err := dialResident(ctx, p.options.residentDir)
	if err != nil {
		return exitResult
	}
	defer func() { _ = conn.Close() }()
	_ = conn.SetDeadline(time.Now().Add(connectTime))
	if err := writeFrame(conn, frameEnd, nil); err != nil {
		return exitCrash
	}
	_, _ = io.Copy(io.Discard, conn)
	return exitResult
}

func writeFrame(w io.Writer, kind byte, content []byte) error {
	head := make([]byte, 5, 5+len(content))
	head[0] = kind
	binary.BigEndian.PutUint32(head[1:], uint32(len(content))) //nolint:gosec // bounded by the envelope's and the results' bounds
	_, err := w.Write(append(head, content...))
	return err
}

func readFrame(r io.Reader, most int) (kind byte, content []byte, err error) {
	var head [5]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return 0, nil, err
	}
	size := int(binary.BigEndian.Uint32(head[1:]))
	if size > most {
		return 0, nil, errors.New("a frame is too long")
	}
	content = make([]byte, size)
	_, err = io.ReadFull(r, content)
	return head[0], content, err
}

// frameWriter sends frames to a caller. Once one cannot be sent, broken is called and
// the others are dropped: a caller that does not read holds nobody up.
type frameWriter struct {
	mu     sync.Mutex
	conn   *net.UnixConn
	broken func()
	failed bool
}

type frameKind struct {
	to   *frameWriter
	kind byte
}

func (f *frameWriter) of(kind byte) io.Writer { return frameKind{f, kind} }

// Write sends one frame.
func (k frameKind) Write(content []byte) (int, error) {
	f := k.to
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.failed {
		return 0, net.ErrClosed
	}
	_ = f.conn.SetWriteDeadline(time.Now().Add(frameTime))
	if err := writeFrame(f.conn, k.kind, content); err != nil {
		f.failed = true
		f.broken()
		return 0, err
	}
	return len(content), nil
}
