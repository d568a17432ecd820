package wrapper

import (
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"
)

// leaveMainThread is a program whose main thread ends while another goes on.
func leaveMainThread() {
	started := make(chan struct{})
	go func() {
		close(started)
		<-time.After(time.Second)
		os.Exit(0)
	}()
	<-started
	_, _, _ = syscall.RawSyscall(syscall.SYS_EXIT, 0, 0, 0)
}

// self puts the test binary into the box and returns its path there.
func (b *box) self() string {
	b.t.Helper()
	exe, err := os.Executable()
	if err != nil {
		b.t.Fatal(err)
	}
	data, err := os.ReadFile(exe)
	if err != nil {
		b.t.Fatal(err)
	}
	write(b.t, b.file("/tmp/self"), string(data), 0o755)
	return "/tmp/self"
}

func exited(w *wrapped) (code, n int) {
	code = -1
	for _, e := range w.all {
		if e.Kind == Exited {
			code = e.Code
			n++
		}
	}
	return code, n
}

func TestEXW11_HeldOutput(t *testing.T) {
	t.Parallel()
	cases := []struct{ name, script, out, err string }{
		{"both", "(sleep 1; echo late) & echo hi; exit 3", "hi\nlate\n", ""},
		{"stdout", "(exec 2>/dev/null; sleep 1; echo late) & exit 3", "late\n", ""},
		{"stderr", "(exec >/dev/null; sleep 1; echo late >&2) & exit 3", "", "late\n"},
		{"escaped", "setsid sh -c 'sleep 1; echo late' & exit 3", "late\n", ""},
		{"by a high descriptor", "(exec 9>&1 >/dev/null 2>&1; sleep 1; echo late >&9) & exit 3", "late\n", ""},
		{"handed on", "(sleep 0.4; (sleep 0.8; echo late) & ) & exit 3", "late\n", ""},
	}
	inShells(t, func(t *testing.T, b *box) {
		var all []*wrapped
		for _, c := range cases {
			all = append(all, b.start(Command{Argv: []string{"sh", "-c", c.script}}))
		}
		for i, c := range cases {
			w := all[i].wait()
			if w.code != 3 || w.stdout() != c.out || w.stderr() != c.err || !w.filter.Complete() {
				t.Errorf("%s: got %d %q %q", c.name, w.code, w.stdout(), w.stderr())
			}
			if w.took < time.Second || w.took > 8*time.Second {
				t.Errorf("%s: took %v", c.name, w.took)
			}
			if code, n := exited(w); code != 3 || n != 1 {
				t.Errorf("%s: told %d times that it exited, with %d", c.name, n, code)
			}
		}
		if left := b.tmp(); len(left) != 0 {
			t.Errorf("left in /tmp: %v", left)
		}
	})
}

// notHeld is far below the half minute and more that who could hold the output would do so
// in these tests, and far above what a wrapper takes on a busy machine.
const notHeld = 10 * time.Second

func TestEXW11_NotHeld(t *testing.T) {
	t.Parallel()
	inShells(t, func(t *testing.T, b *box) {
		w := b.sh("sleep 30 >/dev/null 2>&1 & (sleep 31 <&0 >/dev/null 2>&1 &) ; exit 4")
		if w.code != 4 || w.took > notHeld {
			t.Errorf("got %d after %v", w.code, w.took)
		}
		if code, n := exited(w); n != 0 {
			t.Errorf("told that it exited with %d, though nothing held", code)
		}
	})
}

// TestEXW12_Unreadable: a program nobody may read hides its open files.
func TestEXW12_Unreadable(t *testing.T) {
	t.Parallel()
	inShells(t, func(t *testing.T, b *box) {
		w := b.sh("cp /usr/bin/sleep /tmp/hidden; chmod 111 /tmp/hidden; /tmp/hidden 1 & sleep 0.1; exit 2")
		if w.code != 2 || w.took < time.Second || w.took > 8*time.Second {
			t.Errorf("held: got %d after %v %q", w.code, w.took, w.stderr())
		}
		// One that is older than the wrapper cannot hold, readable or not.
		w = b.start(Command{Argv: []string{"sh", "-c", "/tmp/hidden 30 >/dev/null 2>&1 & exit 0"}})
		await(t, "the old one runs", func() bool { return b.runs("/tmp/hidden 30") })
		// Ages are told in hundredths of a second, so one of the same age could hold.
		seen := time.Now()
		await(t, "it is older than what starts now", func() bool { return time.Since(seen) > 30*time.Millisecond })
		if took := b.sh("exit 5").took; took > 5*time.Second {
			t.Fatalf("an older hidden process kept a later command from ending for %v", took)
		}
		b.kill("/tmp/hidden 30")
		w.wait()
		// And one that was killed and lies about as a zombie cannot either.
		if left := b.tmp(); fmt.Sprint(left) != "[hidden]" {
			t.Errorf("left in /tmp: %v", left)
		}
	})
}

// TestEXW12_ThreadOfADeadMainThread: its leader is a zombie, which shows no files.
func TestEXW12_ThreadOfADeadMainThread(t *testing.T) {
	t.Parallel()
	inShells(t, func(t *testing.T, b *box) {
		self := b.self()
		w := b.sh("WRAPPER_TEST_ROLE=leave " + self + " & sleep 0.2; exit 6")
		if w.code != 6 || w.took < time.Second || w.took > 8*time.Second {
			t.Errorf("got %d after %v", w.code, w.took)
		}
	})
}

// TestEXW23_OthersNeverHold: process 1, other users' processes, other commands.
func TestEXW23_OthersNeverHold(t *testing.T) {
	t.Parallel()
	inShells(t, func(t *testing.T, b *box) {
		other := b.start(Command{Argv: []string{"sleep", "60"}})
		root := b.commandAs(0, "sleep", "60")
		if err := root.Start(); err != nil {
			t.Fatal(err)
		}
		defer func() {
			_ = root.Process.Kill()
			_ = root.Wait()
		}()
		for range 5 {
			if w := b.run("true"); w.code != 0 || w.took > notHeld {
				t.Errorf("got %d after %v", w.code, w.took)
			}
		}
		b.stop(other.id, "KILL")
		other.wait()
	})
}

func TestEXW09_HolderKeepsTheGroup(t *testing.T) {
	t.Parallel()
	inShells(t, func(t *testing.T, b *box) {
		w := b.sh(`trap '' HUP; echo $$; sleep 1 & kill -HUP 0; wait_for=1; exit 0`)
		if w.code != 0 {
			t.Fatalf("got %d %q", w.code, w.stderr())
		}
		group := strings.TrimSpace(w.stdout())
		await(t, "the group is gone", func() bool { return len(b.inGroup(group)) == 0 })

		held := b.start(Command{Argv: []string{"sh", "-c", "echo $$; sleep 20 & exit 0"}})
		<-held.events
		group = fmt.Sprint(b.recordedPid(held.id))
		await(t, "the sleep runs", func() bool { return b.runs("sleep 20") })
		members := b.inGroup(group)
		if len(members) != 2 {
			t.Errorf("group has %v, want the sleep and the holder\n%s", members, b.ps())
		}
		b.kill("sleep 20")
		held.wait()
		await(t, "the holder is gone", func() bool { return len(b.inGroup(group)) == 0 })
	})
}

// TestEXW09_CommandMayWaitForAllItsChildren: the holder is none of them.
func TestEXW09_CommandMayWaitForAllItsChildren(t *testing.T) {
	t.Parallel()
	inShells(t, func(t *testing.T, b *box) {
		if w := b.sh("sleep 0.1 & wait; exit 7"); w.code != 7 || w.took > 2*time.Second {
			t.Errorf("got %d after %v", w.code, w.took)
		}
		if w := b.run("perl", "-e", "1 while wait > 0; exit 8"); w.code != 8 {
			t.Errorf("got %d %q", w.code, w.stderr())
		}
	})
}

// TestEXW16_PoliteSignalsToEverything neither end the wrapper nor the holder.
func TestEXW16_PoliteSignalsToEverything(t *testing.T) {
	t.Parallel()
	inShells(t, func(t *testing.T, b *box) {
		w := b.sh("trap '' HUP INT QUIT TERM USR1 USR2 ALRM PIPE; for s in HUP INT QUIT TERM USR1 USR2 ALRM PIPE; do kill -$s -1; done; sleep 0.2; echo alive; exit 9")
		if w.code != 9 || w.stdout() != "alive\n" || w.stderr() != "" || !w.filter.Complete() {
			t.Errorf("got %d %q %q", w.code, w.stdout(), w.stderr())
		}
		if left := b.tmp(); len(left) != 0 {
			t.Errorf("left in /tmp: %v", left)
		}
	})
}

// TestEXW22_CommandEndsBySignal: its status is the shell's, and no shell says "Killed".
func TestEXW22_CommandEndsBySignal(t *testing.T) {
	t.Parallel()
	inShells(t, func(t *testing.T, b *box) {
		for sig, code := range map[string]int{"KILL": 137, "TERM": 143, "INT": 130, "SEGV": 139, "PIPE": 141} {
			w := b.sh("echo a; kill -" + sig + " $$")
			if w.code != code || w.stdout() != "a\n" || w.stderr() != "" {
				t.Errorf("%s: got %d %q %q", sig, w.code, w.stdout(), w.stderr())
			}
		}
	})
}
