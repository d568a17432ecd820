package sandboxtest

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"caisson/sandbox"
)

// wrapperCases are about what a command is run in, and what it gets.
func wrapperCases() []Case {
	return []Case{
		{"EXW01_STP15_EveryImageOfTheContract", aKernel, everyImage},
		{"EXW02_EXW03_EXW04_CommandsRunInTheWrapper", aKernel, recorded},
		{"EXW05_PidFileIsWholeOrAbsent", aKernel, pidFileIsWhole},
		{"EXW07_NothingRunsWhereTmpCannotBeWritten", anOutside, unwritableTmp},
		{"EXW01_EXW08_NothingRunsWithoutACommandOfTheContract", anOutside, commandTakenAway},
		{"EXW09_HolderKeepsTheGroupsId", anOutside, holderKeepsTheGroup},
		{"EXW10_FreedIdsAreNotSignalled", anOutside, freedIds},
		{"EXW11_ARunningChildThatHoldsIsWaitedFor", aKernel, heldOutput},
		{"EXW12_UnreadableProcessesAreWaitedFor", aKernel, unreadable},
		{"EXW13_ExitCodesPassThrough", 0, exitCodes},
		{"EXW18_InputArrivesWithItsEnd", 0, inputArrives},
		{"EXW19_NothingOfTheWrapperLeaks", aKernel, nothingLeaks},
		{"EXW21_NoSuchCommandAndNotExecutable", aKernel, notExecutable},
		{"EXW22_TheWrapperHoldsNothingUp", aKernel, endsAtOnce},
		{"EXW23_OthersAreNeverWaitedFor", anOutside, othersNeverHold},
	}
}

// everyImage runs the main kinds of commands in each image.
func everyImage(s *scene) {
	for _, image := range slices.Concat([]string{s.h.Image, s.h.Full, s.h.Bare}, s.h.Others) {
		b := s.box(on(image))
		r := b.run(shell("read l; echo $l; echo err >&2; exit 3", reading("in\n")))
		s.ended(r, sandbox.StatusExited, 3)
		if r.stdout != "in\n" || r.stderr != "err\n" || !r.OutputComplete {
			s.Errorf("%s: %q, %q, complete %v", image, r.stdout, r.stderr, r.OutputComplete)
		}
		e := b.up("echo on; sleep 300")
		e.kill()
		s.ended(e.finish(), sandbox.StatusKilled, 137)
		s.ended(b.run(shell("sleep 300 & sleep 300", within(time.Second))), sandbox.StatusTimedOut, -1)
		e = b.start(shell("sleep 300 & exit 4"))
		e.exited()
		e.kill()
		s.ended(e.finish(), sandbox.StatusExited, 4)
		if left := tmpOf(b); left != "" {
			s.Errorf("%s: left in /tmp: %q", image, left)
		}
	}
}

// tmpOf is what stands in /tmp but for the files of the look itself.
func tmpOf(b *box) string {
	b.Helper()
	r := b.run(shell(`for f in /tmp/tai-exec.*.pid; do read p <$f; [ "$p" != $$ ] || me=${f%.pid}; done
for f in /tmp/*; do case $f in $me.*) ;; *) [ ! -e "$f" ] || echo "$f" ;; esac; done`))
	b.ended(r, sandbox.StatusExited, r.code())
	return r.stdout
}

func recorded(s *scene) {
	b := s.box()
	got := b.sh(`for f in /tmp/tai-exec.*.pid; do read p <$f; [ "$p" != $$ ] || out=${f%.pid}.out; done
{ read a; read b; } <$out
[ "$a" = "$(readlink /proc/$$/fd/1)" ] && [ "$b" = "$(readlink /proc/$$/fd/2)" ] && [ "$a" != "$b" ] && echo recorded
set -- $(cat /proc/$$/stat)
[ $5 = $$ ] && [ $6 = $$ ] && echo "a group and a session"
set -- $(cat /proc/$PPID/stat)
[ $5 != $$ ] && [ $4 = 0 ] && echo "below $2"`)
	if got != "recorded\na group and a session\nbelow (sh)\n" {
		s.Errorf("%q", got)
	}
}

// pidFileIsWhole reads the pid files of commands that come and go.
func pidFileIsWhole(s *scene) {
	b := s.box()
	watch := b.up(`echo on
i=0
while [ $i -lt 1000 ]; do
  for f in /tmp/tai-exec.*.pid; do
    p=$(cat $f 2>/dev/null) || continue
    i=$((i+1))
    case $p in ''|*[!0-9]*) echo "bad: $p" ;; esac
  done
done`)
	for watch.View().Status == sandbox.StatusRunning {
		s.ended(b.run(shell("exit 6")), sandbox.StatusExited, 6)
	}
	if r := watch.finish(); r.stdout != "on\n" {
		s.Errorf("%.300q", r.stdout)
	}
}

// refused checks that a command was not run, for a reason with a word.
func (s *scene) refused(r result, word string) {
	s.Helper()
	s.ended(r, sandbox.StatusExited, 126)
	if !r.noted("not_run") || !strings.HasPrefix(r.stderr, "tai-exec: ") || !strings.Contains(r.stderr, word) || r.stdout != "" {
		s.Errorf("not told that %q: %q, %q, %v", word, r.stderr, r.stdout, r.Notes)
	}
}

func unwritableTmp(s *scene) {
	b := s.box()
	b.out.Root("chmod 555 /tmp")
	s.refused(b.run(shell(": >/workspace/ran")), "cannot write")
	b.out.Root("chmod 1777 /tmp")
	if got := b.sh("ls /workspace"); got != "" {
		s.Errorf("it ran: %q", got)
	}
}

// commandTakenAway takes each command of the contract from a session in turn. The
// command is refused, or did not need it; nothing hangs.
func commandTakenAway(s *scene) {
	b := s.box(on(s.h.Bare))
	for _, name := range []string{"setsid", "mkfifo", "mv", "rm", "sleep", "cat", "kill", "readlink", "ls"} {
		b.out.Root("mv /bin/" + name + " /usr/" + name)
		r := b.run(shell(": >/workspace/ran; exit 3"))
		if r.code() == 3 {
			s.Logf("a command needs no %s", name)
		} else {
			s.refused(r, name)
		}
		if r.took > 5*time.Second+busy {
			s.Errorf("without %s: %v", name, r.took)
		}
		e, err := b.try(s.Context(), shell("while :; do :; done", within(time.Second)))
		if err == nil {
			r = e.finish()
			if r.took > time.Second+2*sandbox.StopLimit+busy || r.Status != sandbox.StatusTimedOut && r.code() != 126 {
				s.Errorf("without %s: %v, %d after %v", name, r.Status, r.code(), r.took)
			}
		}
		b.out.Root("PATH=/bin:/usr; mv /usr/" + name + " /bin/" + name)
		b.sh("rm -f /workspace/ran")
	}
}

// holderKeepsTheGroup looks for the small process that stays in a group whose
// leader has gone, and for its end.
func holderKeepsTheGroup(s *scene) {
	b := s.box()
	e := b.start(shell("sleep 97 & exit 0"))
	e.exited()
	const look = `for f in /tmp/tai-exec.*.pid; do read p <$f; [ -e /proc/$p ] || g=$p; done
[ -z "$1" ] || g=$1
echo $g
for d in /proc/[0-9]*; do set -- $(cat $d/stat 2>/dev/null); [ "$5" != $g ] || echo $2$3; done | sort`
	found := strings.Fields(b.sh(look))
	if len(found) != 3 || found[1] != "(sh)S" || found[2] != "(sleep)S" {
		s.Fatalf("in the group: %v", found)
	}
	e.kill()
	e.finish()
	s.eventually("the holder is gone, and no zombie stays", func() bool {
		r := b.run(sandbox.ExecSpec{Argv: []string{"sh", "-c", look, "sh", found[0]}})
		return r.stdout == found[0]+"\n"
	})
}

// freedIds ends and stops commands while others take up the ids that come free.
func freedIds(s *scene) {
	b := s.box()
	if !b.out.FewPids(400) {
		s.Log("process ids are not few: this kernel has one number for the whole machine")
	}
	canary := b.up("echo on; while :; do setsid sh -c 'sleep 0.05' & wait; echo ok; done")
	for i := range 20 {
		e := b.start(shell("sleep 0.01 & exit 3"))
		if i%2 == 0 {
			e.settle(20 * time.Millisecond)
		}
		e.kill()
		if r := e.finish(); r.code() != 3 && r.code() != 137 {
			s.Errorf("%v with %d, %v", r.Status, r.code(), r.Notes)
		}
		if v := canary.View(); v.Status != sandbox.StatusRunning {
			s.Fatalf("the canary was hit: %v", v.Status)
		}
	}
	canary.kill()
	if r := canary.finish(); strings.Trim(strings.TrimPrefix(r.stdout, "on\n"), "ok\n") != "" || r.stderr != "" {
		s.Errorf("the canary says %.200q, %q", r.stdout, r.stderr)
	}
}

// settle waits for the command's end, at most so long.
func (c *cmd) settle(limit time.Duration) {
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case <-c.Done():
	case <-timer.C:
	}
}

func heldOutput(s *scene) {
	b := s.box()
	for _, script := range []string{
		"(sleep 2; echo late) & echo hi; exit 3",
		"setsid sh -c 'sleep 2; echo late' & echo hi; exit 3",
		"(exec 9>&1 >/dev/null 2>&1; sleep 2; echo late >&9) & echo hi; exit 3",
	} {
		e := b.start(shell(script))
		e.exited()
		if v := e.View(); *v.CommandExitCode != 3 || !v.OutputHeld || v.Status != sandbox.StatusRunning {
			s.Errorf("meanwhile: %+v", v)
		}
		r := e.finish()
		s.ended(r, sandbox.StatusExited, 3)
		if r.stdout != "hi\nlate\n" || !r.OutputComplete || r.took < 2*time.Second {
			s.Errorf("%q, complete %v, after %v", r.stdout, r.OutputComplete, r.took)
		}
	}
}

// hidden is a copy of sleep that nobody may read: its open files are hidden.
const hidden = "cp /bin/sleep /tmp/sleep; chmod 111 /tmp/sleep; "

func unreadable(s *scene) {
	b := s.box()
	r := b.run(shell(hidden + "/tmp/sleep 2 & sleep 0.2; exit 2"))
	s.ended(r, sandbox.StatusExited, 2)
	if r.took < 2*time.Second {
		s.Errorf("it was not waited for: %v", r.took)
	}
	// One that is older than the wrapper cannot hold its output, readable or not.
	b.run(shell("setsid /tmp/sleep 60 >/dev/null 2>&1 </dev/null & sleep 0.2; kill -9 $PPID $$"))
	s.eventually("an older hidden process holds nothing up", func() bool {
		r := b.run(shell("exit 5", within(10*time.Second)))
		return r.code() == 5 && r.took < 2*time.Second
	})
}

func exitCodes(s *scene) {
	b := s.box()
	for _, code := range []int{0, 1, 2, 42, 126, 127, 137, 255} {
		r := b.run(shell(fmt.Sprintf("echo out; echo err >&2; exit %d", code)))
		s.ended(r, sandbox.StatusExited, code)
		if r.stdout != "out\n" || r.stderr != "err\n" || !r.OutputComplete || r.noted("not_run") {
			s.Errorf("%d: %q, %q, complete %v", code, r.stdout, r.stderr, r.OutputComplete)
		}
	}
}

func inputArrives(s *scene) {
	b := s.box()
	cat := sandbox.ExecSpec{Argv: []string{"cat"}}
	if r := b.run(cat); r.stdout != "" || r.code() != 0 {
		s.Errorf("without input: %q, %d", r.stdout, r.code())
	}
	cat.Stdin = []byte(strings.Repeat("0123456789abcdef", 10<<10))
	if r := b.run(cat); r.stdout != string(cat.Stdin) || r.code() != 0 {
		s.Errorf("%d bytes of %d, %d", len(r.stdout), len(cat.Stdin), r.code())
	}
	cat.Stdin, cat.StdinOpen = []byte("1"), true
	e := b.start(cat)
	if n, err := e.WriteStdin(s.Context(), []byte("2")); n != 1 || err != nil {
		s.Errorf("%d, %v", n, err)
	}
	if err := e.CloseStdin(s.Context()); err != nil {
		s.Error(err)
	}
	if r := e.finish(); r.stdout != "12" || r.code() != 0 {
		s.Errorf("%q, %d", r.stdout, r.code())
	}
	_, err := e.WriteStdin(s.Context(), []byte("3"))
	s.wantKind(err, sandbox.KindStdinClosed, "")
}

func nothingLeaks(s *scene) {
	b := s.box()
	if r := b.run(sandbox.ExecSpec{Argv: []string{"ls", "/proc/self/fd"}}); r.stdout != "0\n1\n2\n3\n" { // 3 is the ls's own
		s.Errorf("descriptors %q", r.stdout)
	}
	r := b.run(sandbox.ExecSpec{Argv: []string{"cat", "/proc/self/status"}})
	for _, want := range []string{"SigBlk:\t0000000000000000\n", "SigCgt:\t0000000000000000\n", "Umask:\t0022\n"} {
		if !strings.Contains(r.stdout, want) {
			s.Errorf("no %q in %s", want, r.stdout)
		}
	}
	// Signals 32 and 33 are the C library's own: no shell can ignore them, and
	// what the engine's starter had ignored comes through.
	_, ignored, _ := strings.Cut(r.stdout, "SigIgn:\t")
	ignored, _, _ = strings.Cut(ignored, "\n")
	if mask, err := strconv.ParseUint(ignored, 16, 64); err != nil || mask&^(3<<31) != 0 {
		s.Errorf("signals are ignored: %q", ignored)
	}
	for line := range strings.Lines(b.run(sandbox.ExecSpec{Argv: []string{"env"}, Env: map[string]sandbox.Secret{"GIVEN": sandbox.NewSecret("x")}}).stdout) {
		name, _, _ := strings.Cut(line, "=")
		if !slices.Contains([]string{"GIVEN", "PATH", "HOME", "USER", "LOGNAME", "HOSTNAME"}, name) {
			s.Errorf("in the environment: %q", line)
		}
	}
}

func notExecutable(s *scene) {
	b := s.box()
	for name, code := range map[string]int{"no-such-command": 127, "/no/such/file": 127, "/etc/passwd": 126, "/etc": 126} {
		r := b.run(sandbox.ExecSpec{Argv: []string{name}})
		s.ended(r, sandbox.StatusExited, code)
		if r.noted("not_run") || strings.HasPrefix(r.stderr, "tai-exec") || !strings.Contains(r.stderr, name) {
			s.Errorf("%s: %q, %v", name, r.stderr, r.Notes)
		}
	}
}

func endsAtOnce(s *scene) {
	b := s.box()
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			for range 3 {
				r := b.run(sandbox.ExecSpec{Argv: []string{"true"}})
				s.ended(r, sandbox.StatusExited, 0)
				if r.took > busy {
					s.Errorf("a command that does nothing took %v", r.took)
				}
			}
		})
	}
	all.Wait()
}

// othersNeverHold has a process of root's, which cannot be read, and other commands
// run beside one that ends.
func othersNeverHold(s *scene) {
	b := s.box()
	b.up("echo on; sleep 300")
	b.out.Root("sleep 300 >/dev/null 2>&1 </dev/null & sleep 0.1")
	for range 3 {
		r := b.run(shell("exit 4"))
		s.ended(r, sandbox.StatusExited, 4)
		if r.took > busy || r.noted("output_held") {
			s.Errorf("%v, %v", r.took, r.Notes)
		}
	}
}
