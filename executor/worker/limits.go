package worker

import (
	"bytes"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// spaceWithout is the address space of a REPL where the container's memory has no
	// limit, in bytes.
	spaceWithout = 12 << 30
	// spaceAbove is what a REPL may map above the container's memory: libraries map
	// much that they never touch. What it touches is the container's limit's affair.
	spaceAbove = 1 << 30
	openFiles  = 256
	clockTicks = 100 // of USER_HZ, on every Linux
)

// limit sets the limits of a REPL's process and returns its address space in bytes.
func limit(pid int) (space uint64, err error) {
	space = spaceWithout
	if memory, ok := memoryLimit(); ok {
		space = memory + spaceAbove
	}
	for resource, value := range map[int]uint64{unix.RLIMIT_AS: space, unix.RLIMIT_NOFILE: openFiles, unix.RLIMIT_CORE: 0} {
		if err := lower(pid, resource, value); err != nil {
			return 0, err
		}
	}
	return space, nil
}

// lower sets a limit, and the hard one with it, to value or to what is there if that
// is less.
func lower(pid, resource int, value uint64) error {
	var now unix.Rlimit
	if err := unix.Prlimit(pid, resource, nil, &now); err != nil {
		return fmt.Errorf("read limit: %w", err)
	}
	value = min(value, now.Max)
	if err := unix.Prlimit(pid, resource, &unix.Rlimit{Cur: value, Max: value}, nil); err != nil {
		return fmt.Errorf("set limit: %w", err)
	}
	return nil
}

// limitCPU lets a process use as much processor time from now on as it could in that
// time on all processors. Only the soft limit is set, so that the next call can set
// it anew.
func limitCPU(pid int, within time.Duration) {
	var now unix.Rlimit
	if unix.Prlimit(pid, unix.RLIMIT_CPU, nil, &now) != nil {
		return // it is gone, as its caller will find
	}
	seconds := usedCPU(pid) + within.Seconds()*float64(runtime.NumCPU())
	limit := unix.Rlimit{Cur: min(uint64(math.Ceil(seconds))+1, now.Max), Max: now.Max}
	_ = unix.Prlimit(pid, unix.RLIMIT_CPU, &limit, nil) // the deadline holds all the same
}

// usedCPU is the processor time that a process has used, in seconds.
func usedCPU(pid int) float64 {
	text, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return 0
	}
	fields := strings.Fields(string(text[bytes.LastIndexByte(text, ')')+1:]))
	if len(fields) < 13 {
		return 0
	}
	user, _ := strconv.ParseFloat(fields[11], 64)
	system, _ := strconv.ParseFloat(fields[12], 64)
	return (user + system) / clockTicks
}

// memoryLimit is the memory that the container may use, where it has a limit.
func memoryLimit() (limit uint64, ok bool) {
	for _, path := range cgroupFiles("memory.max", "memory.limit_in_bytes") {
		text, err := os.ReadFile(path)
		if err != nil {
			continue
		}
		limit, err := strconv.ParseUint(strings.TrimSpace(string(text)), 10, 64)
		if err == nil && limit < 1<<50 { // v1 says that there is none by a number
			return limit, true
		}
	}
	return 0, false
}

// kills is how many processes of the container the kernel has killed for its memory;
// -1 where it does not say.
func kills() int64 {
	for _, path := range cgroupFiles("memory.events", "memory.oom_control") {
		text, err := os.ReadFile(path)
		if err != nil {
			continue
		}
		for line := range strings.Lines(string(text)) {
			if value, found := strings.CutPrefix(line, "oom_kill "); found {
				if n, err := strconv.ParseInt(strings.TrimSpace(value), 10, 64); err == nil {
					return n
				}
			}
		}
	}
	return -1
}

// cgroupFiles are where a file of our memory control group may stand: by its name in
// version 2 and in version 1, below our own group and, in a container, at the top.
func cgroupFiles(v2, v1 string) []string {
	var paths []string
	text, _ := os.ReadFile("/proc/self/cgroup")
	for line := range strings.Lines(string(text)) {
		parts := strings.SplitN(strings.TrimSpace(line), ":", 3)
		switch {
		case len(parts) != 3:
		case parts[1] == "":
			paths = append(paths, filepath.Join("/sys/fs/cgroup", parts[2], v2))
		case parts[1] == "memory":
			paths = append(paths, filepath.Join("/sys/fs/cgroup/memory", parts[2], v1))
		}
	}
	return append(paths, filepath.Join("/sys/fs/cgroup", v2), filepath.Join("/sys/fs/cgroup/memory", v1))
}
