package sandboxtest

import (
	"strings"

	"caisson/sandbox"
)

// leftoverCases are about what a wrapper that was killed leaves behind.
func leftoverCases() []Case {
	return []Case{
		{"EXW14_TheNextCommandRemovesWhatNothingHolds", anOutside, sweeps},
		{"EXW15_LeftoversThatCannotBeRemovedStopTheNextCommand", anOutside, cannotSweep},
	}
}

// sweeps kills wrappers with their commands and looks which files the next command
// leaves.
func sweeps(s *scene) {
	b := s.box()
	live := b.up("echo on; sleep 300")
	mine := filesOf(b)
	for range 3 {
		s.ended(b.run(shell("kill -9 $PPID $$")), sandbox.StatusLost, -1)
	}
	if got := filesOf(b); got != mine {
		s.Errorf("left: %q, want those of the live command alone: %q", got, mine)
	}
	s.ended(b.run(shell("setsid sleep 96 & sleep 0.2; kill -9 $PPID $$")), sandbox.StatusLost, -1)
	if got := filesOf(b); strings.Count(got, ".out\n") != 2 {
		s.Errorf("files of output that is held were removed: %q", got)
	}
	b.sh(`for p in /proc/[0-9]*; do read -r l <$p/cmdline; case $l in sleep*96*) kill -9 ${p#/proc/} ;; esac; done 2>/dev/null; true`)
	b.gone("sleep 96")
	if got := filesOf(b); got != mine {
		s.Errorf("left: %q, want %q", got, mine)
	}
	live.kill()
	s.ended(live.finish(), sandbox.StatusKilled, 137)
	if got := tmpOf(b); got != "" {
		s.Errorf("left: %q", got)
	}
}

// filesOf is tmpOf after a command that has swept.
func filesOf(b *box) string {
	b.Helper()
	b.sh("true")
	return tmpOf(b)
}

func cannotSweep(s *scene) {
	b := s.box()
	const old = "/tmp/tai-exec.00000000000000000000000000000000.out"
	b.out.Root("echo x >" + old + "; chmod 600 " + old)
	s.refused(b.run(shell(": >/workspace/ran")), "cannot read "+old)
	b.out.Root("chmod 644 " + old)
	s.refused(b.run(shell(": >/workspace/ran")), "cannot remove "+old)
	b.out.Root("rm " + old)
	if got := b.sh("ls /workspace"); got != "" {
		s.Errorf("it ran: %q", got)
	}
}
