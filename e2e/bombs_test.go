package e2e_test

import (
	"fmt"
	"slices"
	"testing"
	"time"
)

// Five sessions do their worst at once, each with a way of its own. Another one works
// on as if nothing was, the server stays small, and all that went off can be cleared up.
func TestAttackT16_SeveralBombsAtOnceLeaveANeighbourWorking(t *testing.T) {
	v := start(t, launch{plain: true, http: true, env: []string{"SANDBOX_DOCKER_DISK_MB=64"}})
	a := join(t, v, httpLegacy)
	neighbour := a.make(args{"memory_mb": 128})
	before := v.rss(t)
	quiet := a.work(neighbour.SessionID, 4*time.Second)

	const burning = 15 // seconds
	bombs := map[string]string{
		"forks":     "f() { f | f & }; f; sleep 60",
		"memory":    "while :; do tail /dev/zero; done",
		"processor": "for i in 1 2 3 4; do while :; do :; done & done; wait",
		"disk":      fmt.Sprintf(slowly, "/tmp"),
		"output":    "yes",
	}
	sessions, execs := map[string]string{}, map[string]string{}
	for name, command := range bombs {
		sessions[name] = a.make(args{"memory_mb": 64, "pids": 64, "cpu": 0.5}).SessionID
		x := into[execOut](t, a.ok("exec", args{"session_id": sessions[name], "command": command, "timeout_seconds": burning, "wait_seconds": 0}))
		execs[name] = x.ExecID
	}
	done := make(chan struct{})
	peak := sampleMemory(t, v, done)
	loud := a.work(neighbour.SessionID, burning*time.Second)
	close(done)
	if most := <-peak; most > before+64<<20 {
		t.Errorf("the server grew from %d to %d MiB", before>>20, most>>20)
	}
	t.Logf("a neighbour's call took %v, beside the bombs %v (95 of 100); the server had %d MiB before", quiet, loud, before>>20)

	for name, exec := range execs {
		var x execOut
		eventually(t, 30*time.Second, "the bomb of "+name+" has ended", func() bool {
			x = into[execOut](t, a.do("exec_output", args{"exec_id": exec, "wait_seconds": 1}))
			return x.Status != "running"
		})
		switch {
		case name == "disk" && x.Status != "lost", name == "output" && (x.Status != "timed_out" || x.StdoutBytes < 1<<20):
			t.Errorf("%s: %v", name, x)
		case name == "disk":
			a.endedForDisk(sessions[name], x, "disk limit of 64 MB")
		}
	}
	for name, s := range sessions {
		began := time.Now()
		a.ok("session_destroy", args{"session_id": s})
		took(t, began, 15*time.Second, "destroying the session of "+name)
	}
	a.work(neighbour.SessionID, time.Second)
}

// work does what a session does all day, again and again for a while, and fails the
// test at the first thing that goes wrong. It returns how long 95 of 100 calls took.
func (a *actor) work(session string, during time.Duration) time.Duration {
	a.t.Helper()
	var each []time.Duration
	call := func(step func()) {
		began := time.Now()
		step()
		each = append(each, time.Since(began))
	}
	for i, until := 0, time.Now().Add(during); time.Now().Before(until); i++ {
		text := fmt.Sprintf("round %d\n", i)
		call(func() { a.ok("upload", args{"session_id": session, "path": "note", "content": text}) })
		call(func() {
			if out := a.sh(session, "cat note"); out != text {
				a.t.Fatalf("%q, want %q", out, text)
			}
		})
		call(func() { a.ok("list_files", args{"session_id": session}) })
	}
	slices.Sort(each)
	return each[len(each)*95/100].Round(time.Millisecond)
}
