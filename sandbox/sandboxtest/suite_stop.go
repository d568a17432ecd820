package sandboxtest

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"caisson/sandbox"
)

// stopCases are about what a stop does.
func stopCases() []Case {
	return []Case{
		{"STP01_STP11_AStartThatIsCancelledNeverRuns", aLine, cancelledStart},
		{"STP02_EXW16_TheWholeGroupEndsAtOnce", anOutside, groupEnds},
		{"STP03_STP04_STP10_WhatIsInTheGroupAndWhatIsNot", anOutside, groupAlone},
		{"STP05_WhatStillHoldsIsReported", anOutside, reportsHolders},
		{"STP06_AStopThatCannotLookFails", anOutside, cannotLook},
		{"STP08_EXW06_KillsAtRandomInstants", aKernel, randomKills},
		{"STP09_KIL08_AStoppedWrapperMakesTheStopFail", anOutside, stoppedWrapper},
		{"STP12_STP13_AStopEndsInTimeWhoeverWaits", aLine, stopIsBounded},
		{"STP14_AFailedStopSaysWhatItHadHeard", anOutside, refusedStop},
	}
}

// cancelledStart cancels a start of which the engine never hears: the stop leaves its
// marker, and the command does not run.
func cancelledStart(s *scene) {
	p, line := s.h.Link(s.T)
	b := s.boxOf(p)
	line.Next(Fault{Hang: true})
	ctx, cancel := context.WithTimeout(s.Context(), 500*time.Millisecond)
	defer cancel()
	_, err := b.try(ctx, shell(": >/workspace/ran"))
	line.Mend()
	s.wantKind(err, sandbox.KindUnknownOutcome, "")
	if left := tmpOf(b); strings.Count(left, ".mark\n") != 1 {
		s.Errorf("in /tmp: %q", left)
	}
	line.Next(Fault{Lose: true})
	_, err = b.try(s.Context(), shell("sleep 311 & sleep 311"))
	s.wantKind(err, sandbox.KindUnknownOutcome, "")
	b.gone("sleep 311")
	if got := b.sh("ls /workspace"); got != "" {
		s.Errorf("it ran: %q", got)
	}
}

func groupEnds(s *scene) {
	b := s.box()
	e := b.up("trap '' TERM HUP INT; sleep 301 & sh -c 'sleep 302; sleep 302' & echo on; wait; wait")
	s.eventually("all run", func() bool { return b.alive("sleep 301")+b.alive("sleep 302") == 2 })
	if !e.kill() {
		s.Error("it says that nothing was killed")
	}
	r := e.finish()
	s.ended(r, sandbox.StatusKilled, 137)
	if r.stdout != "on\n" || r.stderr != "" || !r.OutputComplete {
		s.Errorf("%q, %q, complete %v", r.stdout, r.stderr, r.OutputComplete)
	}
	b.gone("sleep 301")
	b.gone("sleep 302")
	if left := tmpOf(b); left != "" {
		s.Errorf("left in /tmp: %q", left)
	}
}

func groupAlone(s *scene) {
	b := s.box()
	e := b.start(shell("sleep 303 & setsid sleep 304 & sleep 0.3; exit 4"))
	e.exited()
	e.kill()
	r := e.finish()
	s.ended(r, sandbox.StatusExited, 4)
	if !r.OutputHeld || !r.noted("output_still_held") {
		s.Errorf("held %v, %v", r.OutputHeld, r.Notes)
	}
	b.gone("sleep 303")
	if b.alive("sleep 304") != 1 {
		s.Error("what left the group was stopped")
	}
}

func reportsHolders(s *scene) {
	b := s.box()
	for script, held := range map[string]bool{
		"setsid sleep 305 & sleep 0.3; echo on; sleep 305":                             true,
		"setsid sleep 305 >/dev/null & sleep 0.3; echo on; sleep 305":                  true, // by stderr
		"setsid sleep 305 >/dev/null 2>&1 & sleep 0.3; echo on; sleep 305":             false,
		"setsid sh -c 'exec 7>&1 >&- 2>&-; sleep 305' & sleep 0.3; echo on; sleep 305": true,
	} {
		e := b.up(script)
		e.kill()
		r := e.finish()
		s.ended(r, sandbox.StatusKilled, 137)
		if r.noted("output_still_held") != held || r.OutputHeld != held || r.OutputComplete == held {
			s.Errorf("%s: held %v, complete %v, %v", script, r.OutputHeld, r.OutputComplete, r.Notes)
		}
	}
	if n := b.alive("sleep 305"); n != 4 {
		s.Errorf("%d of 4 that left their groups live", n)
	}
}

func cannotLook(s *scene) {
	b := s.box()
	e := b.up(hidden + "setsid /tmp/sleep 6 & sleep 0.3; echo on; sleep 306")
	began := time.Now()
	_, err := e.Kill(sandbox.SignalKill)
	s.wantKind(err, sandbox.KindKillFailed, "cannot be read")
	if took := time.Since(began); took > sandbox.StopLimit+time.Second {
		s.Errorf("took %v", took)
	}
	b.gone("sleep 306")
	r := e.finish() // once the hidden one has ended
	if !r.noted("kill_failed") || r.code() != 137 {
		s.Errorf("%v with %d, %v", r.Status, r.code(), r.Notes)
	}
}

// randomKills kills commands that exit with 7 at about the same time.
func randomKills(s *scene) {
	b := s.box()
	seen := map[int]int{}
	for range 12 {
		e := b.start(shell(fmt.Sprintf("sleep 0.%02d; exit 7", rand.IntN(30))))
		e.settle(time.Duration(rand.IntN(300)) * time.Millisecond)
		e.kill()
		r := e.finish()
		seen[r.code()]++
		if r.code() != 7 && r.code() != 137 || r.stderr != "" || !r.OutputComplete {
			s.Errorf("%v with %d, %q, complete %v, %v", r.Status, r.code(), r.stderr, r.OutputComplete, r.Notes)
		}
	}
	s.Log(seen)
	for name := range strings.Lines(tmpOf(b)) { // a stop that found nothing leaves its marker
		if !strings.HasSuffix(name, ".mark\n") {
			s.Errorf("left in /tmp: %q", name)
		}
	}
}

// stoppedWrapper has the command stop its wrapper, which then cannot tell its status.
func stoppedWrapper(s *scene) {
	b := s.box()
	e := b.up("kill -STOP $PPID; echo $PPID; echo on; sleep 307")
	wrapper, _, _ := strings.Cut(e.read(sandbox.Stdout), "\n")
	began := time.Now()
	_, err := e.Kill(sandbox.SignalKill)
	s.wantKind(err, sandbox.KindKillFailed, "status did not come")
	if took := time.Since(began); took < 2*time.Second || took > sandbox.StopLimit+time.Second {
		s.Errorf("took %v", took)
	}
	b.gone("sleep 307")
	if v := e.View(); v.Status != sandbox.StatusRunning || v.ExitCode != nil {
		s.Errorf("a code without a status: %+v", v)
	}
	b.sh("kill -CONT " + wrapper)
	r := e.finish()
	if r.code() != 137 || !r.noted("kill_failed") {
		s.Errorf("once it goes on: %v with %d, %v", r.Status, r.code(), r.Notes)
	}
}

// stopIsBounded loses the stop's own exec on the line.
func stopIsBounded(s *scene) {
	p, line := s.h.Link(s.T)
	b := s.boxOf(p)
	e := b.up("echo on; sleep 308")
	line.Next(Fault{Hang: true})
	began := time.Now()
	_, err := e.Kill(sandbox.SignalKill)
	s.wantKind(err, sandbox.KindKillFailed, "")
	if took := time.Since(began); took < 4*time.Second || took > sandbox.StopLimit+time.Second {
		s.Errorf("took %v", took)
	}
	line.Mend()
	// A caller that gives up waiting does not end the stop.
	ctx, cancel := context.WithCancel(s.Context())
	go func() { _, _ = e.Kill(sandbox.SignalKill) }()
	cancel()
	_, _ = e.Wait(ctx)
	s.ended(e.finish(), sandbox.StatusKilled, 137)
	b.gone("sleep 308")
}

func refusedStop(s *scene) {
	b := s.box()
	e := b.up("echo on; sleep 309")
	b.out.Pause()
	_, err := e.Kill(sandbox.SignalKill)
	s.wantKind(err, sandbox.KindKillFailed, "paused")
	b.out.Unpause()
	if !e.kill() {
		s.Error("nothing was killed after the pause")
	}
	s.ended(e.finish(), sandbox.StatusKilled, 137)
}
