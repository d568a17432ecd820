package e2e_test

import (
	"fmt"
	"os"
	"strconv"
	"sync"
	"testing"
	"time"
)

// floodMB is how much the counted generator prints, in MiB.
func floodMB(t testing.TB) int64 {
	t.Helper()
	text := os.Getenv("CAISSON_FLOOD_MB")
	if text == "" {
		return 2048
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < 1 {
		t.Fatalf("CAISSON_FLOOD_MB: %q", text)
	}
	return n
}

// Three commands print without end and a fourth prints a known amount: the
// server's memory stays small, every byte is counted and everybody else is
// served meanwhile.
func TestBugSZ01_EndlessOutputIsBoundedAndCounted(t *testing.T) {
	v := start(t, launch{plain: true, http: true})
	a := join(t, v, httpLegacy)
	var ids [4]string
	for i := range ids {
		ids[i] = a.session(nil)
	}
	stop := pulse(t, join(t, v, httpLegacy), 500*time.Millisecond)
	done := make(chan struct{})
	peak := sampleMemory(t, v, done)

	var wg sync.WaitGroup
	for _, id := range ids[:3] {
		wg.Go(func() {
			x := a.finished(id, "yes", 20)
			if x.Status != "timed_out" || !x.Truncated || x.StdoutBytes < 50<<20 {
				t.Errorf("yes: %v", x)
			}
		})
	}
	total := floodMB(t) << 20
	wg.Go(func() {
		x := a.finished(ids[3], fmt.Sprintf("head -c %d /dev/zero", total), 600)
		if !x.exited(0) || !x.Truncated || x.StdoutBytes != total || !x.OutputComplete {
			t.Errorf("a known amount of %d bytes: %v", total, x)
		}
		var omitted int64
		for _, o := range x.Omitted {
			omitted += o.Bytes
		}
		// NUL bytes are no text: what is shown is in base64.
		if shown := total - omitted; shown < 1 || shown > 16_000 {
			t.Errorf("%d bytes shown of %d, omitted %+v", shown, total, x.Omitted)
		}
	})
	wg.Wait()
	close(done)
	if n, slowest := stop(); n < 10 || slowest > patient(time.Second) {
		t.Errorf("%d pings, the slowest answered after %v", n, slowest)
	}
	if most := <-peak; most > 150<<20 {
		t.Errorf("%d MiB of memory at the most", most>>20)
	} else {
		t.Logf("%d MiB of memory at the most", most>>20)
	}
}

// finished runs a command to its end, however many calls that takes.
func (a *actor) finished(session, command string, timeout int) execOut {
	x := into[execOut](a.t, a.do("exec", args{"session_id": session, "command": command, "timeout_seconds": timeout, "wait_seconds": 40}))
	for x.Status == "running" {
		x = into[execOut](a.t, a.do("exec_output", args{"exec_id": x.ExecID, "stdout_offset": 0, "wait_seconds": 40}))
	}
	if !x.Truncated {
		x = into[execOut](a.t, a.do("exec_output", args{"exec_id": x.ExecID, "stdout_offset": 0}))
	}
	return x
}

// sampleMemory gives the most memory that the server was seen with until done.
func sampleMemory(t testing.TB, v *server, done <-chan struct{}) <-chan int64 {
	peak := make(chan int64, 1)
	go func() {
		var most int64
		for tick := time.NewTicker(100 * time.Millisecond); ; {
			most = max(most, v.rss(t))
			select {
			case <-tick.C:
			case <-done:
				tick.Stop()
				peak <- most
				return
			}
		}
	}()
	return peak
}
