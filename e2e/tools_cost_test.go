package e2e_test

import (
	"slices"
	"testing"
	"time"
)

// A warm call beside an exec of ours that does the same, in turns. How much more it
// costs is told, and measured by make bench; here only one that hangs is a fault.
func TestTX07_AWarmCallBesideAnExec(t *testing.T) {
	v := start(t, launch{plain: true, http: true, env: toolsEnv(manifest(t, "tools:\n  - {name: nothing, description: Does nothing., command: [\"true\"]}\n"))})
	a := join(t, v, httpLegacy)
	id := a.session(args{"cpu": 0.5, "memory_mb": 512, "pids": 256})
	a.tool("nothing", args{})
	var execs, calls []time.Duration
	timed := func(f func()) time.Duration {
		began := time.Now()
		f()
		return time.Since(began)
	}
	for range 25 {
		execs = append(execs, timed(func() { a.ok("exec", args{"session_id": id, "argv": []string{"true"}}) }))
		calls = append(calls, timed(func() { a.tool("nothing", args{}) }))
	}
	slices.Sort(execs)
	slices.Sort(calls)
	exec, call := execs[len(execs)/2], calls[len(calls)/2]
	t.Logf("an exec takes %v, a warm call %v: %.2f times as much", exec.Round(time.Millisecond), call.Round(time.Millisecond), float64(call)/float64(exec))
	if limit := patient(5 * time.Second); call > limit {
		t.Errorf("a warm call takes %v", call)
	}
}
