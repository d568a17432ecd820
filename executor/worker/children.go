package worker

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// politeness is how long a process has to end after it was asked to.
	politeness = 2 * time.Second
	// sweepTime bounds the killing of what a process has started.
	sweepTime = 2 * time.Second
	// buryEvery is the time between two looks for dead children.
	buryEvery = 50 * time.Millisecond
)

// children starts processes and ends them with what they started. What a process of
// ours leaves behind becomes a child of ours too, so that it can be found and killed
// and leaves no dead entry in the process table. Its methods may run concurrently.
type children struct {
	log  *slog.Logger
	mu   sync.Mutex // held over a start, so that no child is taken for a stray
	mine map[int]bool
	dead chan os.Signal
	over chan struct{} // closed to end reap
	done chan struct{} // closed when it has ended
}

func newChildren(log *slog.Logger) *children {
	c := &children{log: log, mine: map[int]bool{}, dead: make(chan os.Signal, 1), over: make(chan struct{}), done: make(chan struct{})}
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		log.Warn("what tools leave behind cannot be found", "error", err)
	}
	signal.Notify(c.dead, syscall.SIGCHLD)
	go c.reap()
	return c
}

// close kills every process below this one. Nothing may be started afterwards.
func (c *children) close() {
	c.sweep()
	signal.Stop(c.dead)
	close(c.over)
	<-c.done
}

// child is a process of ours.
type child struct {
	pid   int
	group bool // it leads a process group of its own
	done  chan struct{}
	state *os.ProcessState // once done is closed
}

// start starts a process. group puts it into a process group of its own: then who
// kills the worker's group does not reach it.
func (c *children) start(cmd *exec.Cmd, group bool) (*child, error) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: group}
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := cmd.Start(); err != nil {
		return nil, startError(cmd, err)
	}
	p := &child{pid: cmd.Process.Pid, group: group, done: make(chan struct{})}
	c.mine[p.pid] = true
	go func() {
		_ = cmd.Wait() // how it ended is in its state
		c.mu.Lock()
		delete(c.mine, p.pid)
		c.mu.Unlock()
		p.state = cmd.ProcessState
		close(p.done)
	}()
	return p, nil
}

// startError says what could not be started, without its arguments.
func startError(cmd *exec.Cmd, err error) error {
	var missing *exec.Error
	if errors.As(err, &missing) {
		return fmt.Errorf("cannot run %s: %w", missing.Name, missing.Err)
	}
	return fmt.Errorf("cannot run %s: %w", cmd.Args[0], err)
}

// end asks a process to end, then kills it and what is below it, and waits for it.
func (c *children) end(p *child, grace time.Duration) {
	if grace > 0 {
		c.signal(p, syscall.SIGTERM)
		patience := time.NewTimer(grace)
		defer patience.Stop()
		select {
		case <-p.done:
		case <-patience.C:
		}
	}
	c.kill(p)
	<-p.done
}

// signal reaches the process and what is below it, or in its group.
func (c *children) signal(p *child, s syscall.Signal) {
	below := descendants(p.pid)
	select {
	case <-p.done: // its number may be another's by now
	default:
		_ = unix.Kill(p.pid, s)
	}
	for _, pid := range below {
		_ = unix.Kill(pid, s)
	}
	if p.group {
		_ = unix.Kill(-p.pid, s) // a group outlives its leader, and keeps its number meanwhile
	}
}

// kill kills the process and what is below it until nothing is left that could
// start more.
func (c *children) kill(p *child) {
	for until := time.Now().Add(sweepTime); time.Now().Before(until); {
		c.signal(p, syscall.SIGKILL)
		if len(descendants(p.pid)) == 0 {
			return
		}
		time.Sleep(time.Millisecond)
	}
	c.log.Warn("processes of a tool cannot be killed", "pid", p.pid)
}

// sweep kills every process below this one.
func (c *children) sweep() {
	self := os.Getpid()
	for until := time.Now().Add(sweepTime); time.Now().Before(until); {
		below := descendants(self)
		if len(below) == 0 {
			return
		}
		for _, pid := range below {
			_ = unix.Kill(pid, unix.SIGKILL)
		}
		time.Sleep(time.Millisecond)
		c.bury()
	}
	c.log.Warn("processes that the call has started cannot be killed")
}

// reap buries what was left behind and has ended since, until close.
func (c *children) reap() {
	defer close(c.done)
	defer c.bury()
	for {
		select {
		case <-c.dead:
			c.bury()
		case <-c.over:
			return
		}
		select { // many that end together are one look; the end waits for none
		case <-time.After(buryEvery):
		case <-c.over:
			return
		}
	}
}

// bury waits for the dead children that nobody else waits for.
func (c *children) bury() {
	self := os.Getpid()
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, p := range processes() {
		if p.parent == self && p.dead() && !c.mine[p.pid] {
			_, _ = unix.Wait4(p.pid, nil, unix.WNOHANG, nil)
		}
	}
}
