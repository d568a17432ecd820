package sandboxtest

import (
	"fmt"
	"strings"
	"time"

	"caisson/sandbox"
)

// killCases are about what a kill returns, and what the command ends with.
func killCases() []Case {
	return []Case{
		{"KIL01_ARunningCommandEndsWith137", 0, killedRunning},
		{"KIL02_KIL03_TMO08_CommandsThatHadExited", anOutside, killedExited},
		{"KIL04_NothingIsLeftToKillAndAProcessHolds", anOutside, killedWrapper},
		{"KIL05_KIL07_TheEndIsStillOnItsWay", aLine, endOnItsWay},
		{"KIL06_D02_TheEndDoesNotCome", aLine, endDoesNotCome},
		{"KIL09_KIL10_KIL11_ByTheContainersState", anOutside, containerStates},
		{"KIL12_KillingTwiceAndAfterTheEnd", 0, killedEnded},
	}
}

func killedRunning(s *scene) {
	b := s.box()
	e := b.up("echo on; sleep 300")
	if !e.kill() {
		s.Error("it says that nothing was killed")
	}
	r := e.finish()
	s.ended(r, sandbox.StatusKilled, 137)
	if r.stdout != "on\n" {
		s.Errorf("%q", r.stdout)
	}
}

func killedExited(s *scene) {
	b := s.box()
	for code, c := range map[int]struct {
		script string
		held   bool
	}{
		5: {"sleep 321 & echo on; exit 5", false},
		6: {"setsid sleep 322 & sleep 0.3; echo on; exit 6", true},
		7: {"setsid sleep 322 & sleep 321 & sleep 0.3; echo on; exit 7", true},
	} {
		e := b.up(c.script)
		e.exited()
		if e.kill() {
			s.Errorf("%d: killed, though it had exited", code)
		}
		r := e.finish()
		s.ended(r, sandbox.StatusExited, code)
		if r.noted("output_still_held") != c.held || r.stdout != "on\n" {
			s.Errorf("%d: %q, %v", code, r.stdout, r.Notes)
		}
	}
	b.gone("sleep 321")
	if n := b.alive("sleep 322"); n != 2 {
		s.Errorf("%d of 2 that left live", n)
	}
}

// killedWrapper has a command kill its wrapper and itself, while what it started
// holds the output.
func killedWrapper(s *scene) {
	b := s.box()
	e := b.up("setsid sleep 323 & sleep 0.3; echo on; kill -9 $PPID $$")
	began := time.Now()
	e.kill()
	r := e.finish()
	s.ended(r, sandbox.StatusLost, -1)
	if took := time.Since(began); took > sandbox.StopLimit+sandbox.EndGrace {
		s.Errorf("took %v", took)
	}
	if r.OutputComplete || b.alive("sleep 323") != 1 {
		s.Errorf("complete %v, %d live", r.OutputComplete, b.alive("sleep 323"))
	}
	if got := b.sh("echo ok"); got != "ok\n" {
		s.Error(got)
	}
}

// slowly runs a command that has ended while its output is still on its way at a
// rate, and returns it once it has ended inside.
func slowly(s *scene, rate, size int) *cmd {
	p, line := s.h.Link(s.T)
	b := s.boxOf(p)
	line.Next(Fault{Rate: rate})
	e := b.start(shell(fmt.Sprintf("yes | head -c %d; exit 5", size), open))
	s.eventually("it has ended inside", func() bool {
		return e.Spool().Total(sandbox.Stdout) > 0 && b.alive("yes") == 0 && b.alive("sh -c") == 0
	})
	line.Mend()
	return e
}

func endOnItsWay(s *scene) {
	const size = 600 << 10
	e := slowly(s, 150<<10, size)
	e.kill()
	if v := e.View(); v.Status == sandbox.StatusRunning {
		if _, err := e.WriteStdin(s.Context(), []byte("still taken")); err != nil {
			s.Errorf("stdin after a kill that found nothing: %v", err)
		}
		if err := e.CloseStdin(s.Context()); err != nil {
			s.Error(err)
		}
	} else {
		s.Error("the control: it had ended before the kill")
	}
	r := e.finish()
	s.ended(r, sandbox.StatusExited, 5)
	if len(r.stdout) != size && r.OutputComplete {
		s.Errorf("%d bytes of %d, complete %v", len(r.stdout), size, r.OutputComplete)
	}
}

func endDoesNotCome(s *scene) {
	e := slowly(s, 24<<10, 600<<10)
	began := time.Now()
	e.kill()
	r := e.finish()
	s.ended(r, sandbox.StatusLost, -1)
	if took := time.Since(began); r.LostReason != sandbox.LostStatusUnknown || r.OutputComplete || took < sandbox.EndGrace || took > sandbox.StopLimit+sandbox.EndGrace {
		s.Errorf("%v, complete %v, after %v", r.LostReason, r.OutputComplete, took)
	}
	_, err := e.WriteStdin(s.Context(), []byte("x"))
	s.wantKind(err, sandbox.KindStdinClosed, "")
}

func containerStates(s *scene) {
	for name, do := range map[string]func(*box){
		"killed":  func(b *box) { b.out.Kill() },
		"removed": func(b *box) { b.out.Remove() },
	} {
		b := s.box()
		e := b.up("echo on; sleep 324")
		do(b)
		e.kill()
		r := e.finish()
		s.ended(r, sandbox.StatusLost, -1)
		if r.LostReason != sandbox.LostContainerGone || r.stdout != "on\n" {
			s.Errorf("%s: %v, %q", name, r.LostReason, r.stdout)
		}
	}
	b := s.box()
	e := b.up("echo on; sleep 325")
	b.out.Pause()
	_, err := e.Kill(sandbox.SignalKill)
	b.out.Unpause()
	s.wantKind(err, sandbox.KindKillFailed, "paused")
	if v := e.View(); v.Status != sandbox.StatusRunning || !strings.HasPrefix(e.read(sandbox.Stdout), "on") {
		s.Errorf("%+v", v)
	}
}

func killedEnded(s *scene) {
	b := s.box()
	e := b.start(shell("echo out; exit 3"))
	before := e.finish()
	for range 2 {
		if e.kill() {
			s.Error("killed, though it had ended")
		}
	}
	after := e.finish()
	s.ended(after, sandbox.StatusExited, 3)
	if before.stdout != after.stdout || !before.EndedAt.Equal(after.EndedAt) {
		s.Errorf("%+v, then %+v", before, after)
	}
}
