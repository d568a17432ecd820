package docker

import (
	"runtime"
	"testing"

	"caisson/sandbox"
)

// TestEndedCommandsKeepNoBuffers measures what the records of ended commands keep in memory,
// over mTLS, before and after they let go of their connections.
func TestEndedCommandsKeepNoBuffers(t *testing.T) {
	const commands = 60
	s := create(t, provider(t), specOf(""))
	run(t, s, sandbox.ExecSpec{Argv: []string{"true"}}) // what is made once
	heap := func() int64 {
		runtime.GC()
		runtime.GC() // the first one only empties the pools
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return int64(m.HeapAlloc)
	}
	before := heap()
	var ended []*sandbox.Exec
	for range commands {
		e := mustStart(t, s, sandbox.ExecSpec{Argv: []string{"true"}})
		if r := finish(t, e); r.Status != sandbox.StatusExited {
			t.Fatalf("%+v", r)
		}
		ended = append(ended, e)
	}
	kept := heap() - before
	for _, e := range ended {
		e.Release()
	}
	left := heap() - before
	t.Logf("%d bytes of each record before, %d after", kept/commands, left/commands)
	if left > kept/2 {
		t.Errorf("%d bytes before, %d after", kept, left)
	}
	runtime.KeepAlive(ended)
}
