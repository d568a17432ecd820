package sandboxtest

import (
	"fmt"
	"strings"
	"time"

	"caisson/sandbox"
)

// streamCases are about what of a command's output arrives, and when.
func streamCases() []Case {
	return []Case{
		{"STR01_STR03_AReaderThatTakesNothingForLong", aKernel, lateReader},
		{"STR02_OverASlowLineNothingIsLostInSilence", aLine, slowLine},
		{"STR04_WhatAChildPrintsLateIsRead", aKernel, heldOutput},
		{"STR05_TMO09_D04_HeldAtTheTimeoutIsATimeout", anOutside, heldAtTimeout},
		{"STP07_STR06_STR07_STR08_AStreamThatIsNotTakenHoldsUpNobody", aLine | anOutside, notTaken},
		{"STR09_ACutStreamIsLostAndKillStillStopsItsCommand", aLine | anOutside, cutStream},
		{"STR10_GoneContainersEndTheOutput", anOutside, goneMidStream},
		{"STR11_TheStreamsStayApartByteByByte", aLine, byteByByte},
		{"STR12_WhatCameBeforeAKillIsKeptInOrder", aKernel, keptBeforeKill},
	}
}

// lateReader lets 50 MiB be written before it reads any of it.
func lateReader(s *scene) {
	b := s.box()
	const lines, size = 50 << 13, 50 << 20 // of 128 bytes each
	e := b.start(shell(fmt.Sprintf("yes %s | head -n %d; exit 9", strings.Repeat("x", 127), lines)))
	for began := time.Now(); time.Since(began) < 30*time.Second; {
		r := b.run(shell("echo beside; exit 4"))
		s.ended(r, sandbox.StatusExited, 4)
		if r.stdout != "beside\n" || r.took > 2*busy {
			s.Errorf("beside it: %q after %v", r.stdout, r.took)
		}
	}
	r := e.finish()
	s.ended(r, sandbox.StatusExited, 9)
	if len(r.stdout) != size || !r.OutputComplete || strings.Trim(r.stdout, "x\n") != "" {
		s.Errorf("%d bytes of %d, complete %v", len(r.stdout), size, r.OutputComplete)
	}
}

// slowLine writes 1,300 KiB at once over lines on which the engine cuts a stream off.
func slowLine(s *scene) {
	const size = 1300 << 10
	type slow struct {
		*cmd
		rate  int
		input string
	}
	var all []slow
	for _, rate := range []int{24 << 10, 64 << 10} {
		for _, input := range []string{"", "x"} {
			p, line := s.h.Link(s.T)
			b := s.boxOf(p)
			line.Next(Fault{Rate: rate})
			all = append(all, slow{b.start(shell(fmt.Sprintf("yes | head -c %d; exit 5", size), reading(input))), rate, input})
		}
	}
	for _, c := range all {
		r := c.finish()
		whole := len(r.stdout) == size
		s.Logf("at %d KiB/s, input %q: %d bytes of %d, code %d, complete %v, after %v", c.rate>>10, c.input, len(r.stdout), size, r.code(), r.OutputComplete, r.took)
		if r.OutputComplete && !whole || r.ExitCode != nil && r.code() != 5 {
			s.Errorf("short in silence, or an invented code")
		}
		if c.input == "" && (!whole || !r.OutputComplete || r.code() != 5) {
			s.Error("without input all must arrive")
		}
	}
}

func heldAtTimeout(s *scene) {
	b := s.box()
	for _, script := range []string{"sleep 331 & exit 4", "(sleep 331; echo late) & exit 0"} {
		r := b.run(shell(script, within(time.Second)))
		s.ended(r, sandbox.StatusTimedOut, -1)
		if r.stdout != "" || r.took > time.Second+sandbox.StopLimit+busy {
			s.Errorf("%q after %v", r.stdout, r.took)
		}
	}
	b.gone("sleep 331")
}

// notTaken leaves the output of a command that has ended in the engine: it then holds
// back the ends of all others in the session, and a stop's own.
func notTaken(s *scene) {
	p, line := s.h.Link(s.T)
	b := s.boxOf(p)
	other := b.up("echo on; sleep 341")
	later := b.up("echo on; read l; exit 6", open)
	beside := b.up("echo on; sleep 342", within(20*time.Second))
	taken := make(chan struct{})
	line.Next(Fault{Pause: taken})
	e := b.start(shell("yes | head -c 1331200; sleep 1.5; exit 5", reading("x")))
	// Only from outside: a command that looks would not end either.
	s.eventually("all is written", func() bool { return b.alive("sleep 1.5") == 1 })
	s.eventually("it has ended inside", func() bool { return b.alive("/bin/sh -c tai_id=") == 3 })
	line.Mend()

	began := time.Now()
	if !other.kill() {
		s.Error("it says that nothing was killed")
	}
	b.gone("sleep 341")
	r := other.finish()
	s.ended(r, sandbox.StatusKilled, 137)
	if !r.OutputComplete || r.stdout != "on\n" || r.noted("count_may_miss_output") {
		s.Errorf("the killed one: %q, complete %v, %v", r.stdout, r.OutputComplete, r.Notes)
	}
	if took := time.Since(began); took > sandbox.StopLimit+sandbox.EndGrace+time.Second {
		s.Errorf("the killed one ended after %v", took)
	}

	began = time.Now()
	if _, err := later.WriteStdin(s.Context(), []byte("\n")); err != nil {
		s.Error(err)
	}
	r = later.finish()
	// Its status stays unknown where the engine holds its end back, and is its own where the
	// engine, slow to begin with that, let it through.
	unknown := r.Status == sandbox.StatusLost && r.LostReason == sandbox.LostStatusUnknown
	own := r.Status == sandbox.StatusExited && r.code() == 6
	if took := time.Since(began); !unknown && !own || !r.OutputComplete || took > 30*time.Second {
		s.Errorf("one that ends beside: %v with %d, complete %v, after %v, %v", r.Status, r.code(), r.OutputComplete, took, r.Notes)
	}
	b.gone("sleep 342")
	r = beside.finish()
	s.ended(r, sandbox.StatusTimedOut, -1)
	if !r.OutputComplete || r.stdout != "on\n" {
		s.Errorf("one that runs out of time beside: %q, complete %v, %v", r.stdout, r.OutputComplete, r.Notes)
	}
	if took := r.EndedAt.Sub(r.TimeoutAt); took > sandbox.StopLimit+sandbox.EndGrace {
		s.Errorf("one that runs out of time beside: %v later", took)
	}
	if got, err := b.try(s.Context(), shell("echo still starts; sleep 300")); err != nil {
		s.Error(err)
	} else {
		s.eventually("its output comes", func() bool { return got.read(sandbox.Stdout) == "still starts\n" })
		got.kill()
	}
	close(taken)
	r = e.finish()
	if r.code() != 5 || r.OutputComplete && len(r.stdout) != 1331200 {
		s.Errorf("the paused one: %v with %d, %d bytes, complete %v", r.Status, r.code(), len(r.stdout), r.OutputComplete)
	}
}

func cutStream(s *scene) {
	p, line := s.h.Link(s.T)
	b := s.boxOf(p)
	line.Next(Fault{CutAt: 40})
	e := b.start(shell("while :; do echo 0123456789; sleep 0.1; done & sleep 351", open))
	r := e.finish()
	s.ended(r, sandbox.StatusLost, -1)
	if r.LostReason != sandbox.LostStreamCut || r.OutputComplete || !strings.HasPrefix(r.stdout, "0123456789\n") {
		s.Errorf("%v, complete %v, %q", r.LostReason, r.OutputComplete, r.stdout)
	}
	_, err := e.WriteStdin(s.Context(), []byte("x"))
	s.wantKind(err, sandbox.KindStdinClosed, "")
	if b.alive("sleep 351") != 1 {
		s.Fatal("the control: the command does not run on")
	}
	if !e.kill() {
		s.Error("it says that nothing was killed")
	}
	b.gone("sleep 351")
	s.ended(e.finish(), sandbox.StatusLost, -1)
	if e.kill() {
		s.Error("killed twice")
	}
}

func goneMidStream(s *scene) {
	b := s.box()
	e := b.up("echo on; while :; do echo x >&2; sleep 0.1; done")
	began := time.Now()
	b.out.Remove()
	r := e.finish()
	s.ended(r, sandbox.StatusLost, -1)
	if r.LostReason != sandbox.LostContainerGone || r.OutputComplete || time.Since(began) > 5*time.Second+busy {
		s.Errorf("%v, complete %v, after %v", r.LostReason, r.OutputComplete, time.Since(began))
	}
	_, err := b.try(s.Context(), shell("true"))
	s.wantKind(err, sandbox.KindSessionLost, "")
}

func byteByByte(s *scene) {
	p, line := s.h.Link(s.T)
	b := s.boxOf(p)
	line.Next(Fault{Bytes: true})
	r := b.run(shell("i=0; while [ $i -lt 300 ]; do echo out$i; echo err$i >&2; i=$((i+1)); done; exit 9"))
	var out, err strings.Builder
	for i := range 300 {
		fmt.Fprintf(&out, "out%d\n", i)
		fmt.Fprintf(&err, "err%d\n", i)
	}
	s.ended(r, sandbox.StatusExited, 9)
	if r.stdout != out.String() || r.stderr != err.String() || !r.OutputComplete {
		s.Errorf("%d and %d bytes, complete %v", len(r.stdout), len(r.stderr), r.OutputComplete)
	}
}

func keptBeforeKill(s *scene) {
	b := s.box()
	const n = 20000
	e := b.start(shell(fmt.Sprintf("seq 1 %d; sleep 300", n)))
	last := fmt.Sprintf("\n%d\n", n)
	var want strings.Builder
	for i := 1; i <= n; i++ {
		fmt.Fprintln(&want, i)
	}
	s.eventually("all has come", func() bool { return e.Spool().Total(sandbox.Stdout) == int64(want.Len()) })
	e.kill()
	r := e.finish()
	s.ended(r, sandbox.StatusKilled, 137)
	if r.stdout != want.String() || !r.OutputComplete || !strings.HasSuffix(r.stdout, last) {
		s.Errorf("%d bytes of %d, complete %v", len(r.stdout), want.Len(), r.OutputComplete)
	}
}
