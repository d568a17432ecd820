package wrapper

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// wrapperPid is the pid, in the box, of a command's wrapper.
func (b *box) wrapperPid(id string) string {
	b.t.Helper()
	data, err := os.ReadFile(b.file("/tmp/tai-exec." + id + ".out"))
	if err != nil {
		b.t.Fatal(err)
	}
	lines := strings.Split(string(data), "\n")
	if len(lines) != 4 {
		b.t.Fatalf("record %q", data)
	}
	return strings.Fields(lines[2])[0]
}

// running starts a command and waits until it says so.
func (b *box) running(script string) *wrapped {
	b.t.Helper()
	w := b.start(Command{Argv: []string{"sh", "-c", ": >/tmp/up.$$; " + script}})
	await(b.t, "command runs", func() bool {
		return b.has(w.id, "pid") && slices.Contains(b.tmp(), fmt.Sprintf("up.%d", b.recordedPid(w.id)))
	})
	if err := os.Remove(b.file(fmt.Sprintf("/tmp/up.%d", b.recordedPid(w.id)))); err != nil {
		b.t.Fatal(err)
	}
	return w
}

func TestEXW14_SweepsWhatNothingHolds(t *testing.T) {
	t.Parallel()
	inShells(t, func(t *testing.T, b *box) {
		live := b.running("sleep 60")
		dead := b.running("sleep 61")
		held := b.running("setsid sleep 62 & sleep 63")
		await(t, "a process has escaped", func() bool { return b.runs("sleep 62") })
		for _, w := range []*wrapped{dead, held} {
			b.signal(b.wrapperPid(w.id), "KILL")
		}
		b.kill("sleep 61")
		b.kill("sleep 63")
		<-dead.done
		if w := b.run("true"); w.code != 0 {
			t.Fatalf("got %d %q", w.code, w.stderr())
		}
		for _, kind := range []string{"out", "pid", "fifo", "status"} {
			if b.has(dead.id, kind) {
				t.Errorf("%s of a dead command is left", kind)
			}
			if !b.has(live.id, kind) {
				t.Errorf("%s of a live command is gone", kind)
			}
			if !b.has(held.id, kind) {
				t.Errorf("%s of a command whose output is held is gone", kind)
			}
		}
		b.kill("sleep 62")
		if b.run("true"); b.has(held.id, "out") {
			t.Error("left when nothing holds it any more")
		}
		if r, _ := b.stop(live.id, "KILL"); r.Status != 137 {
			t.Errorf("stop of the live one: %+v", r)
		}
		live.wait()
		if left := b.tmp(); len(left) != 0 {
			t.Errorf("left in /tmp: %v", left)
		}
	})
}

// TestEXW14_AfterKillingEverything: the wrapper falls with all else, the engine has the
// status, and the next command finds a clean /tmp.
func TestEXW14_AfterKillingEverything(t *testing.T) {
	t.Parallel()
	inShells(t, func(t *testing.T, b *box) {
		w := b.sh("echo before; kill -9 -1")
		if w.code != 137 || w.stdout() != "before\n" || w.filter.Complete() {
			t.Errorf("got %d %q, complete %v", w.code, w.stdout(), w.filter.Complete())
		}
		if w = b.run("true"); w.code != 0 || len(b.tmp()) != 0 {
			t.Errorf("got %d, left in /tmp: %v", w.code, b.tmp())
		}
	})
}

// TestEXW14_Marks: a late wrapper may still look for its mark; an old one is swept.
func TestEXW14_Marks(t *testing.T) {
	t.Parallel()
	uptime, err := os.ReadFile("/proc/uptime")
	if err != nil {
		t.Fatal(err)
	}
	now, err := strconv.Atoi(strings.Split(string(uptime), ".")[0])
	if err != nil {
		t.Fatal(err)
	}
	inShells(t, func(t *testing.T, b *box) {
		marks := map[string]bool{ // text: stays
			fmt.Sprintln(now):         true,
			fmt.Sprintln(now - 300):   true,
			fmt.Sprintln(now - 700):   false,
			fmt.Sprintln(now + 90000): false, // of before the host's restart
			"":                        false, "08\n": false, "x\n": false, "-1\n": false, strings.Repeat("9", 40) + "\n": false,
		}
		ids := map[string]string{}
		for text := range marks {
			ids[text] = testID(t)
			write(t, b.file("/tmp/tai-exec."+ids[text]+".mark"), text, 0o666)
			b.own("/tmp/tai-exec." + ids[text] + ".mark")
		}
		if w := b.run("true"); w.code != 0 {
			t.Fatalf("got %d %q", w.code, w.stderr())
		}
		for text, stays := range marks {
			// A machine that is up for minutes only has no such past.
			if got := b.has(ids[text], "mark"); got != stays && !strings.HasPrefix(text, "-") {
				t.Errorf("mark %q: there %v, want %v", text, got, stays)
			}
		}
	})
}

// own gives a file of the box to the session's user.
func (b *box) own(path string) {
	b.t.Helper()
	if err := os.Lchown(b.file(path), b.uid, b.uid); err != nil {
		b.t.Fatal(err)
	}
}

func TestEXW15_CannotReadOrRemove(t *testing.T) {
	t.Parallel()
	inShells(t, func(t *testing.T, b *box) {
		stem := "/tmp/tai-exec." + testID(t)
		record := "pipe:[1]\npipe:[2]\n999999 1\n"

		write(t, b.file(stem+".out"), record, 0o600) // another user's
		refused(t, b, b.run(leavesTrace...), "cannot read "+stem+".out")

		write(t, b.file(stem+".out"), record, 0o644) // readable, and not ours to remove
		refused(t, b, b.run(leavesTrace...), "cannot remove "+stem+".out")

		b.own(stem + ".out")
		write(t, b.file(stem+".pid"), "5\n", 0o644)
		refused(t, b, b.run(leavesTrace...), "cannot remove "+stem+".pid")

		b.own(stem + ".pid")
		if w := b.run("true"); w.code != 0 || len(b.tmp()) != 0 {
			t.Errorf("got %d %q, left in /tmp: %v", w.code, w.stderr(), b.tmp())
		}
		if err := os.Mkdir(b.file(stem+".out"), 0o755); err != nil {
			t.Fatal(err)
		}
		refused(t, b, b.run(leavesTrace...), "cannot remove "+stem+".out")
	})
}

// TestEXW14_PlantedNames: nothing planted in /tmp hangs or misleads a sweep.
func TestEXW14_PlantedNames(t *testing.T) {
	t.Parallel()
	inShells(t, func(t *testing.T, b *box) {
		write(t, b.file("/tmp/precious"), "x", 0o666)
		b.own("/tmp/precious")
		stem := func() string { return b.file("/tmp/tai-exec." + testID(t)) }
		if err := syscall.Mkfifo(stem()+".out", 0o666); err != nil {
			t.Fatal(err)
		}
		if err := syscall.Mkfifo(stem()+".mark", 0o666); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink("/tmp/precious", stem()+".out"); err != nil {
			t.Fatal(err)
		}
		for _, text := range []string{
			"", "\n\n\n", "x", "pipe:[1]\npipe:[2]\n1", "pipe:[1]\npipe:[2]\n-1 -1\n",
			"pipe:[1]\npipe:[2]\n08 09\n", "*\n*\n* *\n", "pipe:[1]\npipe:[2]\n../../x 1\n", "\x00\xff\n",
		} {
			write(t, stem()+".out", text, 0o644)
		}
		for _, name := range b.tmp() {
			b.own("/tmp/" + name)
		}
		for _, name := range []string{"x", "*", "a b", "-rf", "$(id)", "0123", strings.Repeat("g", 32)} {
			write(t, b.file("/tmp/tai-exec."+name+".out"), "x", 0o644)
		}
		began := time.Now()
		if w := b.run("true"); w.code != 0 {
			t.Errorf("got %d %q after %v", w.code, w.stderr(), time.Since(began))
		}
		left := b.tmp()
		if len(left) != 8 || !slices.Contains(left, "precious") {
			t.Errorf("left in /tmp: %q, want only what is not ours", left)
		}
	})
}

// TestEXW14_ManyLeftovers: a session can litter its own /tmp; that costs it some time.
func TestEXW14_ManyLeftovers(t *testing.T) {
	t.Parallel()
	inShells(t, func(t *testing.T, b *box) {
		for range 200 {
			name := "/tmp/tai-exec." + testID(t) + ".out"
			write(t, b.file(name), "pipe:[1]\npipe:[2]\n999999 1\n", 0o644)
			b.own(name)
		}
		w := b.run("true")
		if w.code != 0 || len(b.tmp()) != 0 {
			t.Errorf("got %d %q, left %d", w.code, w.stderr(), len(b.tmp()))
		}
		t.Logf("200 leftovers: %v", w.took)
	})
}

// TestEXW14_ConcurrentStarts: sweeps never take what belongs to a command beside them.
func TestEXW14_ConcurrentStarts(t *testing.T) {
	t.Parallel()
	inShells(t, func(t *testing.T, b *box) {
		const rounds, width = 3, 12
		for range rounds {
			all := make([]*wrapped, width)
			for i := range all {
				all[i] = b.start(Command{Argv: []string{"sh", "-c", fmt.Sprintf("echo %d; exit %d", i, i)}})
			}
			for i, w := range all {
				w.wait()
				if w.code != i || w.stdout() != fmt.Sprintln(i) || w.stderr() != "" || !w.filter.Complete() {
					t.Errorf("command %d: got %d %q %q", i, w.code, w.stdout(), w.stderr())
				}
			}
		}
		if left := b.tmp(); len(left) != 0 {
			t.Errorf("left in /tmp: %v", left)
		}
	})
}
