package docker

import (
	"bytes"
	"context"
	"strconv"
	"strings"
	"time"

	"caisson/sandbox"
)

// oomLimit bounds the look for an out-of-memory kill.
const oomLimit = 3 * time.Second

// oomCounters are the kernel's counts of out-of-memory kills in the container's
// own group: cgroup v2 and v1. The engine's OOMKilled flag is about process 1
// alone on older engines (D33).
var oomCounters = []string{"/sys/fs/cgroup/memory.events", "/sys/fs/cgroup/memory/memory.oom_control"}

// oomScript has a PATH of its own: a session may plant a cat that says what it likes
// (D19).
const oomScript = `PATH=/usr/bin:/bin:/usr/sbin:/sbin; cat "$@"`

// outOfMemory says whether the kernel has killed for want of memory in the
// session since the last look; nil where that cannot be known. It is asked after
// a command that SIGKILL ended.
func (s *Session) outOfMemory(ctx context.Context) *bool {
	ctx, cancel := context.WithTimeout(ctx, oomLimit)
	defer cancel()
	var out, discarded bytes.Buffer
	if _, err := s.pipe(ctx, append([]string{"/bin/sh", "-c", oomScript, "sh"}, oomCounters...), nil, &out, &discarded); err != nil {
		s.p.log.Debug("no count of out-of-memory kills", "session", sandbox.ShortID(s.info.ID), "error", err)
		return nil
	}
	count, ok := parseOOM(out.String())
	if !ok {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	seen := s.oomSeen
	s.oomSeen = count
	if seen == oomUnknown && count > 0 {
		return nil // some were before this server's time
	}
	return ptr(count > max(seen, 0))
}

func parseOOM(text string) (int64, bool) {
	for line := range strings.Lines(text) {
		f := strings.Fields(line)
		if len(f) == 2 && f[0] == "oom_kill" {
			n, err := strconv.ParseInt(f[1], 10, 64)
			return n, err == nil
		}
	}
	return 0, false
}
