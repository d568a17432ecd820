package sandboxtest

import (
	"fmt"
	"strings"
	"time"

	"caisson/sandbox"
)

// timeoutCases are about commands that run out of time.
func timeoutCases() []Case {
	return []Case{
		{"TMO01_TMO02_TMO03_D03_TheTimeoutIsOursAndCutsTheOutput", 0, timedOut},
		{"TMO04_EveryByteIsCounted", aLine, everyByteCounted},
		{"TMO05_ACountThatMayMissOutputSaysSo", aLine, countMayMiss},
		{"TMO06_AHolderThatLeftIsNoted", anOutside, holderAtTimeout},
		{"TMO07_AFailedKillLeavesItATimeout", anOutside, failedKillAtTimeout},
		{"TMO10_EndAndTimeoutRace", aKernel, timeoutRaces},
	}
}

// timedOut reads nothing before the timeout.
func timedOut(s *scene) {
	b := s.box()
	began := time.Now()
	r := b.run(shell("echo before; sleep 60; echo after", within(time.Second)))
	s.ended(r, sandbox.StatusTimedOut, -1)
	if took := time.Since(began); r.stdout != "before\n" || took < time.Second || took > time.Second+sandbox.StopLimit+busy {
		s.Errorf("%q after %v", r.stdout, took)
	}
}

// everyByteCounted has a known amount on its way over a slow line at the timeout.
func everyByteCounted(s *scene) {
	p, line := s.h.Link(s.T)
	b := s.boxOf(p)
	const size = 600 << 10
	line.Next(Fault{Rate: 200 << 10})
	r := b.run(shell(fmt.Sprintf("yes | head -c %d; echo err >&2; sleep 300", size), within(time.Second)))
	s.ended(r, sandbox.StatusTimedOut, -1)
	if len(r.stdout) != size || r.stderr != "err\n" || r.noted("count_may_miss_output") {
		s.Errorf("%d bytes of %d, %q, %v", len(r.stdout), size, r.stderr, r.Notes)
	}
}

func countMayMiss(s *scene) {
	p, line := s.h.Link(s.T)
	b := s.boxOf(p)
	const size = 600 << 10
	line.Next(Fault{Rate: 24 << 10})
	r := b.run(shell(fmt.Sprintf("yes | head -c %d; sleep 300", size), within(time.Second)))
	s.ended(r, sandbox.StatusTimedOut, -1)
	if len(r.stdout) >= size || r.OutputComplete || !r.noted("count_may_miss_output") {
		s.Errorf("%d bytes of %d, complete %v, %v", len(r.stdout), size, r.OutputComplete, r.Notes)
	}
}

func holderAtTimeout(s *scene) {
	b := s.box()
	e := b.start(shell("setsid sh -c 'while :; do echo x; sleep 0.1; done' & sleep 361", within(2*time.Second)))
	r := e.finish()
	s.ended(r, sandbox.StatusTimedOut, -1)
	if !r.OutputHeld || !r.noted("output_still_held") || r.OutputComplete || len(r.stdout) == 0 || strings.Trim(r.stdout, "x\n") != "" {
		s.Errorf("held %v, complete %v, %q, %v", r.OutputHeld, r.OutputComplete, r.stdout, r.Notes)
	}
	if r.took > 2*time.Second+sandbox.StopLimit+busy {
		s.Errorf("took %v", r.took)
	}
	b.gone("sleep 361")
	if total := e.Spool().Total(sandbox.Stdout); total != int64(len(r.stdout)) {
		s.Errorf("%d bytes, then %d: what came after the stop was kept", len(r.stdout), total)
	}
}

func failedKillAtTimeout(s *scene) {
	b := s.box()
	r := b.run(shell("kill -STOP $PPID; sleep 362", within(time.Second)))
	s.ended(r, sandbox.StatusTimedOut, -1)
	if !r.noted("kill_failed") || r.took > time.Second+sandbox.StopLimit+sandbox.EndGrace+busy {
		s.Errorf("%v after %v", r.Notes, r.took)
	}
	b.gone("sleep 362")

	b = s.box()
	e := b.up("echo on; sleep 363", within(2*time.Second))
	b.out.Pause()
	r = e.finish()
	b.out.Unpause()
	s.ended(r, sandbox.StatusTimedOut, -1)
	if !r.noted("kill_failed") || r.stdout != "on\n" {
		s.Errorf("%q, %v", r.stdout, r.Notes)
	}
}

// timeoutRaces ends commands near their timeouts, and some well before.
func timeoutRaces(s *scene) {
	b := s.box()
	seen := map[sandbox.Status]int{}
	for i := range 10 {
		r := b.run(shell("sleep 0.5; exit 8", within(time.Duration(500+40*i)*time.Millisecond)))
		seen[r.Status]++
		if r.Status != sandbox.StatusTimedOut && (r.Status != sandbox.StatusExited || r.code() != 8) {
			s.Errorf("%v with %d, %v", r.Status, r.code(), r.Notes)
		}
		if r.took > 2*time.Second+sandbox.StopLimit+busy {
			s.Errorf("took %v", r.took)
		}
		s.ended(b.run(shell("sleep 0.2; exit 8", within(20*time.Second))), sandbox.StatusExited, 8)
	}
	s.Log(seen)
}
