package e2e_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// spoolFiles is how much disk the server's spools take: their files have no names.
func (v *server) spoolFiles() (bytes int64) {
	links, _ := filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", v.cmd.Process.Pid))
	for _, link := range links {
		if target, err := os.Readlink(link); err != nil || !strings.Contains(target, "caisson-spool-") {
			continue
		}
		var file syscall.Stat_t
		if syscall.Stat(link, &file) == nil {
			bytes += file.Blocks * 512
		}
	}
	return bytes
}

// sampleSpools gives the most disk that spools were seen with until done.
func sampleSpools(v *server, done <-chan struct{}) <-chan int64 {
	peak := make(chan int64, 1)
	go func() {
		var most int64
		for tick := time.NewTicker(10 * time.Millisecond); ; {
			most = max(most, v.spoolFiles())
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

// ruler is what the commands print: each byte tells where it is, up to its line.
const ruler = "0123456789abcde\n"

// Many commands print more together than all spools may keep: the server's disk
// stays under the total, every byte is counted, and each result tells the truth
// about what it leaves out and what is gone.
func TestD13_AttackT20_SpoolsStayUnderTheirTotal(t *testing.T) {
	t.Parallel()
	const total, each, sessions, execs = 8 << 20, 3 << 20, 3, 6
	v := start(t, launch{plain: true, http: true, env: []string{"SANDBOX_DOCKER_SPOOL_TOTAL_MB=8", "SANDBOX_DOCKER_SPOOL_DISK_MB=4", "SANDBOX_DOCKER_SPOOL_MEMORY_KB=64"}})
	a := join(t, v, httpLegacy)
	var ids [sessions]string
	for i := range ids {
		ids[i] = a.session(nil)
	}
	done := make(chan struct{})
	peak := sampleSpools(v, done)
	var wg sync.WaitGroup
	var ended [sessions * execs]string
	for i := range ended {
		wg.Go(func() {
			x := a.finished(ids[i%sessions], fmt.Sprintf("yes %s | head -c %d", strings.TrimSpace(ruler), each), 120)
			if !x.exited(0) || !x.OutputComplete || x.StdoutBytes != each {
				t.Errorf("%v", x)
			}
			ended[i] = x.ExecID
		})
	}
	wg.Wait()
	close(done)
	if most := <-peak; most > total || most < total/4 {
		t.Errorf("spools took %d KiB of disk at the most, and may take %d", most>>10, total>>10)
	} else {
		t.Logf("spools took %d KiB of disk at the most", most>>10)
	}
	kept, gone := int64(0), int64(0)
	for _, exec := range ended {
		lost := a.truthful(exec, each)
		kept, gone = kept+each-lost, gone+lost
	}
	// What is in memory comes on top of the files.
	if kept > total+sessions*execs*(64<<10) || kept < total/2 || gone == 0 {
		t.Errorf("%d KiB kept, %d KiB gone", kept>>10, gone>>10)
	}
}

// truthful reads an ended command's output and holds what is shown, and what is said
// to be left out, against what was printed. It returns how much of it is gone.
func (a *actor) truthful(exec string, printed int64) (gone int64) {
	a.t.Helper()
	read := func(offset int64, most int) execOut {
		return into[execOut](a.t, a.ok("exec_output", args{"exec_id": exec, "stdout_offset": offset, "max_output_chars": most}))
	}
	x := read(0, 200_000)
	at, rest, omitted := int64(0), x.Stdout, int64(0)
	for _, o := range x.Omitted {
		n := min(o.Offset-at, int64(len(rest)))
		a.isRuler(rest[:n], at)
		at, rest, omitted = o.Offset+o.Bytes, rest[n:], omitted+o.Bytes
		piece := read(o.Offset, 1000)
		begins := len(piece.Omitted) == 0 || piece.Omitted[0].Offset > o.Offset
		switch {
		case o.Recoverable != begins, !begins && piece.Omitted[0].Recoverable:
			a.t.Errorf("%+v, and a read there: %v, omitted %+v", o, piece, piece.Omitted)
		case o.Recoverable:
			a.isRuler(piece.Stdout[:min(100, len(piece.Stdout))], o.Offset)
		default:
			gone += o.Bytes
		}
	}
	a.isRuler(rest, at)
	if shown := int64(len(x.Stdout)); shown+omitted != printed || x.StdoutBytes != printed || x.Truncated != (omitted > 0) {
		a.t.Errorf("%d shown and %d left out of %d, truncated %v, omitted %+v", shown, omitted, printed, x.Truncated, x.Omitted)
	}
	return gone
}

// isRuler checks that text is what was printed from an offset on.
func (a *actor) isRuler(text string, offset int64) {
	a.t.Helper()
	for i := range len(text) {
		if text[i] != ruler[(offset+int64(i))%int64(len(ruler))] {
			a.t.Errorf("what is shown from %d on is not what was printed there: %q", offset, clip(text))
			return
		}
	}
}
