package executor

import (
	"math"
	"runtime"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// group is a process on this host and all that it starts and that stays in its
// process group.
type group struct {
	pid  int
	done chan struct{} // closed when the process has ended; it is not reaped yet
}

// ownGroup makes a process the leader of a group of its own, which dies with the
// server, also where that is killed.
func ownGroup() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}

// startGroup starts a process that is made so.
func startGroup(start func() (pid int, err error)) (*group, error) {
	g := &group{done: make(chan struct{})}
	started := make(chan error)
	go func() { // ends with the process, whose starter waits for that
		// The signal of a parent's death is of the thread that started: it has to
		// live as long as the process does.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		pid, err := start()
		g.pid = pid
		started <- err
		if err == nil {
			defer close(g.done)
			// Without reaping it: until then nobody else can have its number.
			for unix.Waitid(unix.P_PID, g.pid, nil, unix.WEXITED|unix.WNOWAIT, nil) == unix.EINTR {
				continue
			}
		}
	}()
	return g, <-started
}

// limit bounds the process and all that it will start.
func (g *group) limit(timeout time.Duration) error {
	cpu := uint64(math.Ceil(timeout.Seconds())) + 1
	for resource, most := range map[int]uint64{
		unix.RLIMIT_AS: localMemory, unix.RLIMIT_CPU: cpu, unix.RLIMIT_NOFILE: localFiles, unix.RLIMIT_CORE: 0,
	} {
		if err := unix.Prlimit(g.pid, resource, &unix.Rlimit{Cur: most, Max: most}, nil); err != nil {
			return err
		}
	}
	return nil
}

// kill ends the whole group. It is called before the process is reaped alone.
func (g *group) kill() {
	_ = unix.Kill(-g.pid, unix.SIGKILL) // nobody there is success
}
