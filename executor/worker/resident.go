package worker

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"caisson/executor/wire"
)

const (
	// readyFile is the descriptor on which a starting resident says that it listens.
	readyFile = 3
	// watchTime is how often the resident looks whether its folder is still there.
	watchTime = time.Second
	socketIn  = "socket"
)

// resident is the process that keeps servers and REPLs between calls. It ends with
// its container, when asked to, or when its folder is gone.
type resident struct {
	program *program
	host    *host
	end     context.CancelFunc
	mu      sync.Mutex
	held    []*net.UnixConn // of those who wait for the end
}

// serveResident is the resident's life.
func (p *program) serveResident(ctx context.Context) int {
	ready := os.NewFile(readyFile, "ready")
	fail := func(err error) int {
		_, _ = ready.WriteString(err.Error())
		_ = ready.Close()
		return exitCrash
	}
	dir, err := privateDir(p.options.residentDir)
	if err != nil {
		return fail(err)
	}
	path := filepath.Join(dir, socketIn)
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fail(err)
	}
	listener, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		return fail(err)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	r := &resident{program: p, host: newHost(p.options, p.log), end: cancel}
	_, _ = ready.WriteString("k")
	_ = ready.Close()
	var calls sync.WaitGroup
	calls.Go(func() { r.accept(ctx, listener, &calls) })
	calls.Go(func() { watchFile(ctx, path, cancel) })
	<-ctx.Done()
	_ = listener.Close()
	r.host.hurried.Store(true)
	calls.Wait()
	r.host.close()
	for _, conn := range r.held {
		_ = conn.Close()
	}
	return exitResult
}

// watchFile calls gone once the file is not there any more.
func watchFile(ctx context.Context, path string, gone func()) {
	tick := time.NewTicker(watchTime)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			if _, err := os.Lstat(path); errors.Is(err, os.ErrNotExist) {
				gone()
				return
			}
		}
	}
}

// accept serves one connection after the other until the listener is closed.
func (r *resident) accept(ctx context.Context, listener *net.UnixListener, calls *sync.WaitGroup) {
	for {
		conn, err := listener.AcceptUnix()
		switch {
		case ctx.Err() != nil:
			if err == nil {
				_ = conn.Close()
			}
			return
		case err != nil:
			time.Sleep(10 * time.Millisecond) // no descriptors, perhaps: try again
		default:
			calls.Go(func() { r.serve(ctx, conn) })
		}
	}
}

// serve answers one connection: a call, or the wish that all ends.
func (r *resident) serve(ctx context.Context, conn *net.UnixConn) {
	ended := false
	defer func() {
		if !ended {
			_ = conn.Close()
		}
	}()
	if !sameUser(conn) {
		return
	}
	_ = conn.SetReadDeadline(time.Now().Add(connectTime))
	kind, text, err := readFrame(conn, wire.MostEnvelope)
	_ = conn.SetReadDeadline(time.Time{})
	if err != nil {
		return
	}
	if kind == frameEnd {
		r.mu.Lock()
		ended, r.held = true, append(r.held, conn)
		r.mu.Unlock()
		r.end()
		return
	}
	e, err := wire.DecodeEnvelope(text)
	if err != nil {
		return // its sender has read it before
	}
	ctx, cancel := context.WithCancel(ctx)
	frames := &frameWriter{conn: conn, broken: cancel}
	// The caller says nothing more: what comes is the end of its connection.
	gone := make(chan struct{})
	go func() {
		defer close(gone)
		_, _ = io.Copy(io.Discard, conn)
		cancel()
	}()
	code := r.host.answer(ctx, e, newPrinter(frames.of(frameOutput), frames.of(frameLog)))
	_, _ = frames.of(frameExit).Write([]byte{byte(code)})
	cancel()
	_ = conn.Close()
	<-gone
}

// sameUser says whether the other end is a process of this user.
func sameUser(conn *net.UnixConn) bool {
	raw, err := conn.SyscallConn()
	if err != nil {
		return false
	}
	var cred *unix.Ucred
	if cerr := raw.Control(func(fd uintptr) { cred, err = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED) }); cerr != nil || err != nil {
		return false
	}
	return int(cred.Uid) == os.Geteuid()
}

// startResident starts the resident and returns once it listens. It holds the lock
// meanwhile, so that of two first calls one starts it and the other finds it.
func (p *program) startResident(ctx context.Context) error {
	_ = unix.CloseRange(readyFile, ^uint(0), unix.CLOSE_RANGE_CLOEXEC) // the resident holds nothing of this call
	hears, says, err := os.Pipe()
	if err != nil {
		return err
	}
	defer func() { _ = hears.Close() }()
	args := append(p.options.self[1:len(p.options.self):len(p.options.self)],
		"--serve-resident", "--resident-dir", p.options.residentDir, "--agents", p.options.agents, "--log-level", p.options.level.String())
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	process, err := os.StartProcess(p.options.self[0], append([]string{p.options.self[0]}, args...), &os.ProcAttr{
		Files: []*os.File{null, null, null, says}, Sys: &syscall.SysProcAttr{Setsid: true},
	})
	_, _ = null.Close(), says.Close()
	if err != nil {
		return err
	}
	_ = process.Release()
	if until, ok := ctx.Deadline(); ok {
		_ = hears.SetReadDeadline(until)
	}
	said, err := io.ReadAll(io.LimitReader(hears, longestLogged))
	switch {
	case err != nil:
		return err
	case string(said) == "k":
		return nil
	case len(said) == 0:
		return errors.New("it ended at once")
	default:
		return fmt.Errorf("it says: %s", said)
	}
}
