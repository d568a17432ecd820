package wrapper

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

// forge overwrites what a command's files say.
func (b *box) forge(id, kind, text string) {
	b.t.Helper()
	path := "/tmp/tai-exec." + id + "." + kind
	_ = os.Remove(b.file(path))
	write(b.t, b.file(path), text, 0o644)
	b.own(path)
}

// TestSTP02_ForgedFiles: whatever the session writes into /tmp, a stop kills the
// command's own group or nothing.
func TestSTP02_ForgedFiles(t *testing.T) {
	t.Parallel()
	inShells(t, func(t *testing.T, b *box) {
		victim := b.running("sleep 71")
		victimGroup := b.recordedPid(victim.id)
		forged := []string{
			"0", "1", "-1", "-0", "00", "01", "", "x", "*", "1 1", "99999999", "../../1", "$(id)", "-" + fmt.Sprint(victimGroup),
			fmt.Sprint(victimGroup),
		}
		for _, pid := range forged {
			w := b.running("sleep 72")
			b.forge(w.id, "pid", pid+"\n")
			b.forge(w.id, "status", "h "+pid+"\np "+pid+" 1\n")
			b.forge(w.id, "out", "pipe:[1]\npipe:[2]\n"+pid+" 1\n")
			r, _ := b.stop(w.id, "KILL")
			wantReport(t, r, Report{Found: true, Status: 137})
			if w.wait(); w.code != 137 {
				t.Errorf("pid %q: got %d", pid, w.code)
			}
		}
		if !b.runs("sleep 71") || victim.ended() {
			t.Error("another command was hit")
		}
		b.stop(victim.id, "KILL")
		victim.wait()
	})
}

// TestSTP02_ForgedThroughTheDescriptor: code of the session can write into the status
// file that the wrapper itself holds.
func TestSTP02_ForgedThroughTheDescriptor(t *testing.T) {
	t.Parallel()
	inShells(t, func(t *testing.T, b *box) {
		victim := b.running("sleep 71")
		group := b.recordedPid(victim.id)
		for _, pid := range []string{"1", "-1", "0", fmt.Sprint(group), "x"} {
			w := b.running(fmt.Sprintf(`cd /proc/$PPID/fd; echo "h %s
p %s 5" >./5; : >/tmp/forged; exec sleep 72`, pid, pid))
			await(t, "it is forged", func() bool { return slices.Contains(b.tmp(), "forged") })
			_ = os.Remove(b.file("/tmp/forged"))
			r, _ := b.stop(w.id, "KILL")
			wantReport(t, r, Report{Found: true, Status: 137})
			w.wait()
		}
		if !b.runs("sleep 71") || victim.ended() {
			t.Error("another command was hit")
		}
		b.stop(victim.id, "KILL")
		victim.wait()
	})
}

// TestSTP02_WrapperGoneAndForged: without a wrapper only the files are left to go by.
func TestSTP02_WrapperGoneAndForged(t *testing.T) {
	t.Parallel()
	inShells(t, func(t *testing.T, b *box) {
		victim := b.running("sleep 71")
		group := b.recordedPid(victim.id)
		for _, pid := range []string{"1", "-1", "0", fmt.Sprint(group), "x", "*"} {
			w := b.running("sleep 72")
			await(t, "it sleeps", func() bool { return b.runs("sleep 72") })
			b.signal(b.wrapperPid(w.id), "KILL")
			b.kill("sleep 72")
			w.wait()
			b.forge(w.id, "status", "h "+pid+"\np "+pid+" 1\ns 0\n")
			if r, _ := b.stop(w.id, "KILL"); r.Found || r.Held {
				t.Errorf("pid %q: %+v", pid, r)
			}
		}
		if !b.runs("sleep 71") || victim.ended() {
			t.Error("another command was hit")
		}
		b.stop(victim.id, "KILL")
		victim.wait()
	})
}

// TestSTP02_CommandEmptiesTmp: the names are gone, a stop finds the command all the same.
func TestSTP02_CommandEmptiesTmp(t *testing.T) {
	t.Parallel()
	inShells(t, func(t *testing.T, b *box) {
		w := b.start(Command{Argv: []string{"sh", "-c", "rm -rf /tmp/*; : >/tmp/ready; sleep 98 & sleep 99"}})
		await(t, "it is empty", func() bool { return slices.Contains(b.tmp(), "ready") && b.runs("sleep 99") })
		r, _ := b.stop(w.id, "KILL")
		wantReport(t, r, Report{Found: true, Status: 137})
		if w.wait(); w.code != 137 || b.runs("sleep 98") {
			t.Errorf("got %d\n%s", w.code, b.ps())
		}
		if w = b.sh("rm -rf /tmp/*; exit 8"); w.code != 8 || !w.filter.Complete() {
			t.Errorf("got %d %q", w.code, w.stderr())
		}
	})
}

// TestSTP02_CommandFillsTmp: a disk with no room left changes nothing either.
func TestSTP02_CommandFillsTmp(t *testing.T) {
	t.Parallel()
	inShells(t, func(t *testing.T, b *box) {
		w := b.start(Command{Argv: []string{"sh", "-c", "cat /dev/zero >/tmp/full 2>/dev/null; sleep 98"}})
		await(t, "it is full", func() bool { return b.runs("sleep 98") })
		r, _ := b.stop(w.id, "KILL")
		if r.Marker = false; r != (Report{Found: true, Status: 137}) {
			t.Errorf("report %+v", r)
		}
		if w.wait(); w.code != 137 || !w.filter.Complete() {
			t.Errorf("got %d", w.code)
		}
	})
}

// TestSTP02_HolderKilled: with the holder gone the leader is enough to go by; with both
// gone there is no telling whose the group's id is, and nothing is signalled.
func TestSTP02_HolderKilled(t *testing.T) {
	t.Parallel()
	inShells(t, func(t *testing.T, b *box) {
		killHolder := func(w *wrapped) {
			for _, m := range b.inGroup(fmt.Sprint(b.recordedPid(w.id))) {
				if strings.HasSuffix(m, "(script)") {
					b.signal(strings.Fields(m)[0], "KILL")
				}
			}
		}
		w := b.running("sleep 98 & wait")
		killHolder(w)
		r, _ := b.stop(w.id, "KILL")
		wantReport(t, r, Report{Found: true, Status: 137})
		w.wait()

		w = b.start(Command{Argv: []string{"sh", "-c", "sleep 97 & exit 6"}})
		<-w.events
		killHolder(w)
		group := fmt.Sprint(b.recordedPid(w.id))
		await(t, "the holder is gone", func() bool { return len(b.inGroup(group)) == 1 })
		r, _ = b.stop(w.id, "KILL")
		wantReport(t, r, Report{Status: 6, Held: true})
		if !b.runs("sleep 97") {
			t.Error("a group that could be anyone's was signalled")
		}
		b.kill("sleep 97")
		w.wait()
	})
}

// TestEXW10_FifoWrittenTo: lines in the fifo neither end the holder nor confuse a stop.
func TestEXW10_FifoWrittenTo(t *testing.T) {
	t.Parallel()
	inShells(t, func(t *testing.T, b *box) {
		w := b.start(Command{Argv: []string{"sh", "-c", "for f in /tmp/tai-exec.*.fifo; do echo x >$f; echo y >$f; done; sleep 97 & exit 6"}})
		<-w.events
		r, _ := b.stop(w.id, "KILL")
		wantReport(t, r, Report{Found: true, Status: 6})
		if w.wait(); w.code != 6 || b.runs("sleep 97") {
			t.Errorf("got %d", w.code)
		}
	})
}

// TestEXW10_FreedIdsAreNotSignalled: with few process ids to go round, commands end and
// are stopped while others take up the ids that come free.
func TestEXW10_FreedIdsAreNotSignalled(t *testing.T) {
	t.Parallel()
	inShells(t, func(t *testing.T, b *box) {
		b.limitPids(400)
		canary := b.running("while :; do setsid sh -c 'sleep 0.05' & wait; echo ok; done")
		for i := range 20 {
			w := b.start(Command{Argv: []string{"sh", "-c", "sleep 0.01 & exit 3"}})
			if i%2 == 0 {
				w.wait()
			}
			r, _ := b.stop(w.id, "KILL")
			w.wait()
			if r.Failed != "" || (w.code != 3 && w.code != 137) {
				t.Errorf("ended with %d, report %+v", w.code, r)
			}
			if canary.ended() {
				t.Fatalf("the canary was hit: %d", canary.code)
			}
		}
		b.stop(canary.id, "KILL")
		canary.wait()
		if out := strings.Trim(canary.stdout(), "ok\n"); out != "" || canary.stderr() != "" {
			t.Errorf("the canary said %q %q", canary.stdout(), canary.stderr())
		}
	})
}

// limitPids lowers the box's pid_max where the kernel has one for each namespace, since
// Linux 6.14. Elsewhere it would be the whole machine's and stays.
func (b *box) limitPids(n int) {
	b.t.Helper()
	release, err := os.ReadFile("/proc/sys/kernel/osrelease")
	if err != nil {
		b.t.Fatal(err)
	}
	var major, minor int
	if _, err := fmt.Sscanf(string(release), "%d.%d", &major, &minor); err != nil {
		b.t.Fatal(err)
	}
	if major < 6 || major == 6 && minor < 14 {
		b.t.Log("pid_max is not limited: this kernel has one for the whole machine")
		return
	}
	if out, err := b.commandAs(0, "/bin/bash", "-c", fmt.Sprintf("echo %d >/proc/sys/kernel/pid_max", n)).CombinedOutput(); err != nil {
		b.t.Fatalf("set pid_max: %v %s", err, out)
	}
}

// TestSTP02_ManyProcesses: the cost of looking at every process there is.
func TestSTP02_ManyProcesses(t *testing.T) {
	t.Parallel()
	inShells(t, func(t *testing.T, b *box) {
		crowd := b.start(Command{Argv: []string{"sh", "-c", "i=0; while [ $i -lt 300 ]; do sleep 600 >/dev/null 2>&1 & i=$((i+1)); done; : >/tmp/ready; wait"}})
		await(t, "the crowd is there", func() bool { return slices.Contains(b.tmp(), "ready") })
		w := b.running("setsid sleep 97 & sleep 98")
		await(t, "it has left", func() bool { return b.runs("sleep 97") })
		r, took := b.stop(w.id, "KILL")
		wantReport(t, r, Report{Found: true, Status: 137, Held: true})
		if took > 5*time.Second {
			t.Errorf("took %v", took)
		}
		b.kill("sleep 97")
		w.wait()
		quick := b.run("true")
		state := quick.cmd.ProcessState
		t.Logf("with 300 processes: stop %v, command %v, %v of processor", took, quick.took, state.UserTime()+state.SystemTime())
		b.stop(crowd.id, "KILL")
		crowd.wait()
	})
}

// TestSTP11_MarkIsPlanted: a fifo or a link for a marker neither hangs nor misleads.
func TestSTP11_MarkIsPlanted(t *testing.T) {
	t.Parallel()
	inShells(t, func(t *testing.T, b *box) {
		for _, plant := range []func(path string) error{
			func(path string) error { return syscall.Mkfifo(path, 0o666) },
			func(path string) error { return os.Symlink("/nowhere/at/all", path) },
			func(path string) error { return os.Mkdir(path, 0o755) },
		} {
			w := b.running("sleep 98")
			if err := plant(b.file("/tmp/tai-exec." + w.id + ".mark")); err != nil {
				t.Fatal(err)
			}
			r, took := b.stop(w.id, "KILL")
			wantReport(t, r, Report{Found: true, Status: 137})
			if w.wait(); w.code != 137 || took > 1900*time.Millisecond {
				t.Errorf("got %d after %v", w.code, took)
			}
			for _, name := range b.tmp() {
				_ = os.RemoveAll(filepath.Join(b.file("/tmp"), name))
			}
		}
	})
}
