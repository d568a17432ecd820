package sandboxtest

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"caisson/sandbox"
)

// floodCases are commands that want more than their share.
func floodCases() []Case {
	return []Case{
		{"AttackT14_MemoryBombsEndOneCommand", aKernel, memoryBombs},
		{"AttackT15_BusyProcessorsDoNotSlowTheControls", anOutside, busyProcessors},
		{"AttackT19_FloodsOfProcessOnesOutputFillNoLog", anOutside, logFlood},
		{"AttackT20_FloodsAreBoundedAndCounted", aKernel, outputFloods},
	}
}

// available is how much memory the session's host has left, in bytes.
func available(b *box) int64 {
	b.Helper()
	for line := range strings.Lines(b.sh("cat /proc/meminfo")) {
		if f := strings.Fields(line); f[0] == "MemAvailable:" {
			n, err := strconv.ParseInt(f[1], 10, 64)
			if err != nil {
				b.Fatal(err)
			}
			return n << 10
		}
	}
	b.Fatal("no MemAvailable")
	return 0
}

func memoryBombs(s *scene) {
	const limit = 96
	b := s.box(on(s.h.Full), func(spec *sandbox.Spec) { spec.MemoryMB = ptr(int64(limit)) })
	neighbour := s.box()
	before, least := available(neighbour), int64(0)
	for _, c := range []struct {
		argv []string
		oom  bool // the kernel must end it
	}{
		{[]string{"tail", "/dev/zero"}, true},
		{[]string{"python3", "-c", "import os\nf = os.memfd_create('m')\nb = bytes(1 << 20)\nwhile 1: os.write(f, b)"}, true},
		{[]string{"python3", "-c", "import os\nkeep = []\nfor i in range(10000):\n  try: keep.append(os.pipe())\n  except OSError: break\nfor r, w in keep:\n  os.set_blocking(w, False)\n  try: os.write(w, bytes(1 << 16))\n  except OSError: pass\n"}, false},
		{[]string{"sh", "-c", "cat /dev/zero >/dev/shm/full"}, false},
		{[]string{"sh", "-c", "head -c 300000000 /dev/zero >/workspace/f; rm /workspace/f"}, false},
	} {
		r := b.run(sandbox.ExecSpec{Argv: c.argv, Timeout: 40 * time.Second})
		oom := r.OOMKilled != nil && *r.OOMKilled
		if c.oom && (r.code() != 137 || !oom) || r.code() == 0 && oom {
			s.Errorf("%.60q: %v with %d, out of memory %v, %v", c.argv, r.Status, r.code(), oom, r.Notes)
		}
		least = max(least, before-available(neighbour))
		if got := b.sh("rm -f /dev/shm/full; echo ok"); got != "ok\n" {
			s.Error(got)
		}
	}
	if r := b.run(shell("kill -9 $$")); r.code() != 137 || r.OOMKilled == nil || *r.OOMKilled {
		s.Errorf("a kill of its own: %d, out of memory %v", r.code(), r.OOMKilled)
	}
	s.Logf("the host has %d MiB less at the most", least>>20)
	// What a session takes of the host is what its group is charged with: the host's own
	// figure moves with all that others do.
	peak, err := strconv.ParseInt(strings.TrimSpace(b.sh("cd /sys/fs/cgroup; cat memory.peak 2>/dev/null || cat memory/memory.max_usage_in_bytes")), 10, 64)
	if err != nil || peak > limit<<20*11/10 || peak < limit<<20/2 {
		s.Errorf("the session held %d MiB at the most, its limit is %d; %v", peak>>20, limit, err)
	}
}

// busyProcessors keeps all processors busy in four sessions.
func busyProcessors(s *scene) {
	const share = 0.5
	type load struct {
		*box
		cmd  *cmd
		used float64
		at   time.Time
	}
	var loads []load
	for range 4 {
		b := s.box(func(spec *sandbox.Spec) { spec.CPU = ptr(share) })
		loads = append(loads, load{box: b})
	}
	for i := range loads {
		loads[i].cmd = loads[i].up("echo on; i=0; while [ $i -lt 4 ]; do while :; do :; done & i=$((i+1)); done; wait")
		loads[i].used, loads[i].at = loads[i].out.CPU(), time.Now()
	}
	var times []time.Duration
	// A quarter of the row's minute: the quota holds in each tenth of a second, and 15 s
	// of calls are enough for their 95th percentile. All tests beside it wait meanwhile.
	for began := time.Now(); time.Since(began) < 15*time.Second; {
		asked := time.Now()
		if _, err := s.h.Provider.List(s.Context()); err != nil {
			s.Fatal(err)
		}
		if err := s.h.Provider.Ping(s.Context()); err != nil {
			s.Fatal(err)
		}
		times = append(times, time.Since(asked)/2)
	}
	slices.Sort(times)
	p95 := times[len(times)*95/100]
	s.Logf("%d calls, the middle one %v, 95 of 100 within %v", 2*len(times), times[len(times)/2], p95)
	if p95 > 250*time.Millisecond {
		s.Errorf("control calls take %v", p95)
	}
	for _, l := range loads {
		used, over := l.out.CPU()-l.used, time.Since(l.at).Seconds()
		if used/over > share*1.1 {
			s.Errorf("%.2f of a processor, %.2f is its share", used/over, share)
		}
		if used == 0 {
			s.Error("the control: it used none")
		}
		l.cmd.kill()
		s.ended(l.cmd.finish(), sandbox.StatusKilled, 137)
	}
}

func logFlood(s *scene) {
	b := s.box()
	for _, target := range []string{"/proc/1/fd/1", "/proc/1/fd/2", "/dev/console", "/dev/stdout"} {
		r := b.run(shell("exec 2>/dev/null; yes >"+target+"; exit 0", within(2*time.Second)))
		if r.code() != 0 && r.code() != 1 && r.code() != 2 && r.Status != sandbox.StatusTimedOut {
			s.Errorf("%s: %v with %d", target, r.Status, r.code())
		}
	}
	if n := b.out.LogBytes(); n > 2<<20 {
		s.Errorf("the engine has logged %d bytes", n)
	}
}

func outputFloods(s *scene) {
	b := s.box()
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	for _, c := range []struct {
		script   string
		out, err int64 // how much it prints; -1 without end
	}{
		{"yes", -1, 0},
		{"cat /dev/urandom", -1, 0},
		{"head -c 268435456 /dev/zero | tr '\\0' x", 256 << 20, 0}, // one line
		{"yes '' | head -n 1000000", 1000000, 0},
		{"i=0; while [ $i -lt 2000 ]; do echo o; echo e >&2; i=$((i+1)); done", 4000, 4000},
	} {
		ctx, cancel := context.WithTimeout(s.Context(), 2*time.Minute)
		timeout := time.Minute
		if c.out < 0 {
			timeout = 2 * time.Second
		}
		e, err := b.try(ctx, shell(c.script, within(timeout)))
		if err != nil {
			s.Fatal(err)
		}
		view, err := e.Wait(ctx)
		cancel()
		if err != nil {
			s.Fatal(err)
		}
		out, errs, kept := e.Spool().Total(sandbox.Stdout), e.Spool().Total(sandbox.Stderr), int64(0)
		for _, r := range e.Spool().Kept(sandbox.Stdout) {
			kept += r.End - r.Start
		}
		switch {
		case c.out < 0 && (view.Status != sandbox.StatusTimedOut || out < 1<<20):
			s.Errorf("%s: %v, %d bytes", c.script, view.Status, out)
		case c.out >= 0 && (out != c.out || errs != c.err || view.ExitCode == nil || *view.ExitCode != 0):
			s.Errorf("%s: %v, %d bytes of %d and %d of %d", c.script, view.Status, out, c.out, errs, c.err)
		case kept > 128<<20:
			s.Errorf("%s: %d bytes are kept", c.script, kept)
		}
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	if grown := int64(after.HeapInuse) - int64(before.HeapInuse); grown > 32<<20 {
		s.Errorf("memory has grown by %d MiB", grown>>20)
	}
	// Output of a child after the command's own end counts as the command's (D4).
	r := b.run(shell("(sleep 1; echo late) & echo early"))
	s.ended(r, sandbox.StatusExited, 0)
	if r.stdout != "early\nlate\n" {
		s.Errorf("%q", r.stdout)
	}
	var all sync.WaitGroup
	for i := range 3 {
		all.Go(func() {
			r := b.run(shell(fmt.Sprintf("yes %d | head -c 3000000; exit %d", i, i)))
			s.ended(r, sandbox.StatusExited, i)
			if len(r.stdout) != 3000000 || strings.Trim(r.stdout, fmt.Sprintf("%d\n", i)) != "" {
				s.Errorf("%d: %d bytes", i, len(r.stdout))
			}
		})
	}
	all.Wait()
}
