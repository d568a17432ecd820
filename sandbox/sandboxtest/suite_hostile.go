package sandboxtest

import (
	"fmt"
	"strings"
	"time"

	"caisson/sandbox"
)

// hostileCases are commands that work against what runs them.
func hostileCases() []Case {
	return []Case{
		{"AttackT11_EXW17_WordsAndNamesAreTakenLiterally", aKernel, literally},
		{"AttackT13_EX04_OrphansAndSleepersStayBelowTheCap", anOutside, orphans},
		{"AttackT13_D24_ForksUpToTheCapAreStopped", anOutside, forkBomb},
		{"STP02_EXW10_ForgedFilesHitNobody", anOutside, forged},
		{"STP02_EXW07_FullTmpHindersNoStop", anOutside, fullTmp},
		{"STP02_EmptiedTmpHindersNoStop", anOutside, emptiedTmp},
		{"STP09_AKilledWrapperIsNoExitCode", anOutside, selfMadeLoss},
		{"D19_PlantedCommandsAreNotRun", aKernel, planted},
	}
}

func literally(s *scene) {
	b := s.box()
	words := []string{"", " ", "'; touch PWN #", "$(touch PWN)", "`touch PWN`", "a\nb", "\r", "-n", "--", "*", "\\", "\"", "日本 \u202e\U0001F600", strings.Repeat("x", 4<<10), strings.Repeat("y", 127<<10)}
	r := b.run(sandbox.ExecSpec{Argv: append([]string{"printf", "%s\\0"}, words...), Env: map[string]sandbox.Secret{"E": sandbox.NewSecret("$(touch PWN)\n`touch PWN`'\"")}})
	s.ended(r, sandbox.StatusExited, 0)
	if want := strings.Join(words, "\x00") + "\x00"; r.stdout != want {
		s.Errorf("%d bytes, want %d: %.200q", len(r.stdout), len(want), r.stdout)
	}
	r = b.run(shell(`printf %s "$E"; exit 3`, func(spec *sandbox.ExecSpec) {
		spec.Env = map[string]sandbox.Secret{"E": sandbox.NewSecret("$(touch PWN)\n`touch PWN`'\"")}
	}))
	if r.stdout != "$(touch PWN)\n`touch PWN`'\"" || r.code() != 3 {
		s.Errorf("%q with %d", r.stdout, r.code())
	}
	for _, long := range [][]string{{strings.Repeat("z", 129<<10)}, {strings.Repeat("z", 3<<20)}, {"\xff\xfe"}} {
		_, err := b.try(s.Context(), sandbox.ExecSpec{Argv: append([]string{"true"}, long...)})
		s.wantKind(err, sandbox.KindInvalid, "")
	}
	for _, name := range []string{"'; touch PWN #", "$(touch PWN)", "-n", "--", "*"} {
		s.ended(b.run(sandbox.ExecSpec{Argv: []string{name}}), sandbox.StatusExited, 127)
	}
	if got := b.sh("ls / /tmp /workspace | grep PWN; true"); got != "" {
		s.Errorf("a word was run: %q", got)
	}
}

// orphans leaves double-forked processes behind, below the cap and up to it.
func orphans(s *scene) {
	b := s.box(func(spec *sandbox.Spec) { spec.Pids = ptr(int64(100)) })
	r := b.run(shell("i=0; while [ $i -lt 500 ]; do (sleep 0.05 >/dev/null 2>&1 &); i=$((i+1)); [ $((i%40)) != 0 ] || sleep 0.1; done"))
	s.ended(r, sandbox.StatusExited, 0)
	began := time.Now()
	s.eventually("no zombie is left", func() bool {
		return b.sh(`n=0; for f in /proc/[0-9]*/stat; do read -r l <$f && case ${l##*)} in " Z"*) n=$((n+1)) ;; esac; done 2>/dev/null; echo $n`) == "0\n"
	})
	if took := time.Since(began); took > 5*time.Second+busy {
		s.Errorf("zombies for %v", took)
	}
	e := b.up("i=0; while [ $i -lt 60 ]; do sleep 371 & i=$((i+1)); done; echo on; wait")
	if got := b.sh("echo ok"); got != "ok\n" {
		s.Error(got)
	}
	e.kill()
	s.ended(e.finish(), sandbox.StatusKilled, 137)
	b.gone("sleep 371")
}

// forkBomb fills the cap of processes, so that there is none left for its own stop, while
// a second session does the same.
func forkBomb(s *scene) {
	const limit = 60
	capped := func(spec *sandbox.Spec) { spec.Pids = ptr(int64(limit)) }
	b, other, neighbour := s.box(capped), s.box(capped), s.box()
	worst := func() (most time.Duration) {
		for range 10 {
			r := neighbour.run(shell("echo ok"))
			if r.stdout != "ok\n" {
				s.Errorf("beside it: %q", r.stdout)
			}
			most = max(most, r.took)
		}
		return most
	}
	quiet := worst()
	filled := func(b *box, script string) *cmd {
		e := b.start(shell(script, within(time.Minute)))
		s.eventually("the cap is reached", func() bool { return len(b.out.Processes()) >= limit-2 })
		return e
	}
	for _, script := range []string{
		"exec 2>/dev/null; while :; do command eval 'sleep 372 &'; done",
		// The first shell stays whatever it cannot fork, so that there is something to kill.
		"exec 2>/dev/null; f() { command eval 'f &'; command eval 'f &'; sleep 372; }; command eval 'f &'; while :; do command eval 'sleep 372'; done",
		"exec 2>/dev/null; i=0; while [ $i -lt 200 ]; do command eval 'sleep 372 &'; i=$((i+1)); done; sleep 372",
	} {
		load := filled(other, script)
		e := filled(b, script)
		if n := worst(); n > 2*quiet+busy {
			s.Errorf("beside it a command takes %v, %v when it is quiet", n, quiet)
		}
		if n := len(b.out.Processes()); n > limit+1 { // docker's init is not a process of the group's count on all kernels
			s.Errorf("%d processes", n)
		}
		b.full()
		if !e.kill() {
			s.Error("it says that nothing was killed")
		}
		s.ended(e.finish(), sandbox.StatusKilled, 137)
		s.eventually("all of it is gone", func() bool { return len(b.out.Processes()) <= 3 })
		if got := b.sh("echo ok"); got != "ok\n" {
			s.Error(got)
		}
		load.kill()
		s.ended(load.finish(), sandbox.StatusKilled, 137)
	}
	filled(b, "exec 2>/dev/null; while :; do command eval 'sleep 372 &'; done")
	began := time.Now()
	if _, err := s.h.Provider.Destroy(s.Context(), b.session.Info().ID); err != nil || time.Since(began) > 5*time.Second+busy {
		s.Errorf("destroyed: %v, after %v", err, time.Since(began))
	}
}

// full sees that a session at its cap says so, and soon. A bomb that is slow to fill the
// last places may let a command in before.
func (b *box) full() {
	b.eventually("there is no room left", func() bool {
		began := time.Now()
		e, err := b.try(b.Context(), shell("echo room"))
		if err == nil {
			e.finish()
			return false
		}
		b.wantKind(err, sandbox.KindCapacity, "")
		if took := time.Since(began); took > 3*time.Second+busy {
			b.Errorf("%v until there is said to be no room", took)
		}
		return true
	})
}

// forged writes other processes' ids and worse into a command's own files, and into
// what its wrapper holds.
func forged(s *scene) {
	b := s.box()
	victim := b.up("echo $$; echo on; sleep 381")
	group, _, _ := strings.Cut(victim.read(sandbox.Stdout), "\n")
	for _, pid := range []string{"0", "1", "-1", "", "x", "*", "1 1", "99999999", "-" + group, group} {
		for _, where := range []string{"/tmp/tai-exec.*.", "/proc/$PPID/fd/"} {
			e := b.up(fmt.Sprintf(`p='%s'
for f in /tmp/tai-exec.*.pid; do read q <$f; [ "$q" != $$ ] || me=${f%%.pid}; done
case '%s' in
/tmp*) echo "$p" >$me.pid; printf 'h %%s\np %%s 1\n' "$p" "$p" >$me.status; printf 'pipe:[1]\npipe:[2]\n%%s 1\n' "$p" >$me.out ;;
*) printf 'h %%s\np %%s 5\n' "$p" "$p" >>/proc/$PPID/fd/5 ;;
esac
echo on; sleep 382`, pid, where))
			if !e.kill() {
				s.Errorf("%q in %s: it says that nothing was killed", pid, where)
			}
			s.ended(e.finish(), sandbox.StatusKilled, 137)
		}
	}
	if b.alive("sleep 381") != 1 || victim.View().Status != sandbox.StatusRunning || b.alive("sleep 382") != 0 {
		s.Errorf("the other command: %v; %q", victim.View().Status, b.out.Processes())
	}
	victim.kill()
	s.ended(victim.finish(), sandbox.StatusKilled, 137)
	s.ended(b.run(shell("exit 3")), sandbox.StatusExited, 3)
}

func fullTmp(s *scene) {
	b := s.box()
	b.out.SmallTmp(256)
	e := b.up("cat /dev/zero >/tmp/full 2>/dev/null; echo on; sleep 383")
	if !e.kill() {
		s.Error("it says that nothing was killed")
	}
	s.ended(e.finish(), sandbox.StatusKilled, 137)
	b.gone("sleep 383")
	r := b.run(shell("echo ran; exit 3")) // with no room for its record it is not run
	if r.code() != 3 {
		s.refused(r, "cannot ")
	}
	if r.took > 5*time.Second+busy {
		s.Errorf("took %v", r.took)
	}
	b.out.Root("rm -f /tmp/full; : >/tmp/full; rm -f /tmp/full")
	s.eventually("it runs again", func() bool { return b.run(shell("exit 3")).code() == 3 })
}

func emptiedTmp(s *scene) {
	b := s.box()
	e := b.up("rm -rf /tmp/* /tmp/.[!.]*; sleep 384 & echo on; sleep 384")
	if !e.kill() {
		s.Error("it says that nothing was killed")
	}
	s.ended(e.finish(), sandbox.StatusKilled, 137)
	b.gone("sleep 384")
	s.ended(b.run(shell("rm -rf /tmp/*; exit 8")), sandbox.StatusExited, 8)
	s.ended(b.run(shell("rm -rf /tmp/*; sleep 384", within(time.Second))), sandbox.StatusTimedOut, -1)
	b.gone("sleep 384")
}

// selfMadeLoss kills the wrapper, and everything.
func selfMadeLoss(s *scene) {
	b := s.box()
	for _, script := range []string{"echo on; kill -9 $PPID; sleep 1", "echo on; kill -9 $PPID; exit 0", "echo on; kill -9 -1"} {
		r := b.run(shell(script))
		if r.ExitCode != nil && r.code() != 137 || r.OutputComplete && r.ExitCode == nil || r.took > 10*time.Second+busy {
			s.Errorf("%s: %v with %d, complete %v, after %v, %v", script, r.Status, r.code(), r.OutputComplete, r.took, r.Notes)
		}
		if strings.Contains(script, "PPID") && r.ExitCode != nil {
			s.Errorf("%s: an invented code %d", script, r.code())
		}
		if got := b.sh("echo ok"); got != "ok\n" {
			s.Error(got)
		}
	}
	e := b.up("echo on; kill -9 $PPID; exec sleep 385")
	_, err := e.Kill(sandbox.SignalKill) // it may find nothing that is certainly the command's, or not know how it ended
	if r := e.finish(); r.ExitCode != nil {
		s.Errorf("an invented code %d (%v)", r.code(), err)
	}
}

// planted puts commands of the contract's names in front of the session's PATH.
func planted(s *scene) {
	names := []string{"kill", "ls", "cat", "rm", "mv", "mkfifo", "setsid", "sleep", "readlink", "sh"}
	b := s.box(on(s.h.Full), func(spec *sandbox.Spec) { // a busybox may run its own before what PATH has
		spec.Env = map[string]sandbox.Secret{"PATH": sandbox.NewSecret("/workspace/first:/bin:/usr/bin")}
	})
	b.sh("mkdir first; for n in " + strings.Join(names, " ") + `; do printf '#!/bin/sh\necho %s >>/workspace/PWN\nexit 99\n' $n >first/$n; done; chmod 755 first/*`)
	direct := sandbox.ExecSpec{Argv: []string{"/bin/sh", "-c", "exit 4"}}
	s.ended(b.run(direct), sandbox.StatusExited, 4)
	s.ended(b.run(sandbox.ExecSpec{Argv: []string{"/bin/sh", "-c", "/bin/sleep 386 & exit 5"}, Timeout: time.Second}), sandbox.StatusTimedOut, -1)
	e := b.start(sandbox.ExecSpec{Argv: []string{"/bin/sleep", "386"}})
	e.kill()
	s.ended(e.finish(), sandbox.StatusKilled, 137)
	s.ended(b.run(sandbox.ExecSpec{Argv: []string{"/bin/sh", "-c", "kill -9 $PPID $$"}}), sandbox.StatusLost, -1)
	s.ended(b.run(direct), sandbox.StatusExited, 4)
	if _, err := b.session.WriteFiles(s.Context(), []sandbox.FileWrite{{Path: "f", Content: []byte("x")}}); err != nil {
		s.Error(err)
	}
	if c, err := b.session.ReadFile(s.Context(), sandbox.FileRead{Path: "f", Limit: 10}); err != nil || string(c.Content) != "x" {
		s.Errorf("%q, %v", c.Content, err)
	}
	if _, _, err := b.session.ReadDir(s.Context(), ".", false, 100); err != nil {
		s.Error(err)
	}
	r := b.run(sandbox.ExecSpec{Argv: []string{"/bin/cat", "/workspace/PWN"}})
	if r.code() != 1 {
		s.Errorf("run: %q", r.stdout)
	}
	if r := b.run(sandbox.ExecSpec{Argv: []string{"cat"}}); r.code() != 99 {
		s.Errorf("the control: the command's own PATH is not the session's: %d", r.code())
	}
}
