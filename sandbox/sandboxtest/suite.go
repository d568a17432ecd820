package sandboxtest

import (
	"strings"
	"testing"

	"caisson/sandbox"
)

// Harness is a provider under test, with what the suite needs beside it.
type Harness struct {
	// Provider makes the sessions. It outlives the case.
	Provider sandbox.Provider
	// Image is a small image with the usual tools (a whole busybox), Full one with
	// Python as well, Bare one with the commands of the image contract and no others.
	Image, Full, Bare string
	// Others are further images in which commands must run as well.
	Others []string
	// Outside is a look at a session, and a hand on it, past the provider; nil where
	// there is no outside.
	Outside func(t *testing.T, session string) Outside
	// Link is the provider again, behind a line that can be made bad; nil where there
	// is no line. It ends with the test.
	Link func(t *testing.T) (sandbox.Provider, Line)
}

// Outside is what the host's operator sees of one session and can do to it. Its
// methods end the test when they cannot do what they say.
type Outside interface {
	// Processes are the command lines of all processes of the session.
	Processes() []string
	// Root runs a shell script as the session's root, which holds no capability, and
	// returns what it printed.
	Root(script string) string
	// Pause, Unpause, Kill and Remove are done to the session's container.
	Pause()
	Unpause()
	Kill()
	Remove()
	// SmallTmp puts a file system of so many KiB on the session's /tmp.
	SmallTmp(kib int)
	// FewPids leaves so many process ids to go round in the session. It says false
	// where that would be the whole machine's number.
	FewPids(n int) bool
	// LogBytes is how much the engine has logged of what process 1 printed.
	LogBytes() int64
	// CPU is how much processor time the session has used, in seconds.
	CPU() float64
}

// Line is a line to the engine that can be made bad.
type Line interface {
	// Next says what becomes of the next command that is started, a stop's own
	// included.
	Next(Fault)
	// Mend takes back what Next said.
	Mend()
}

// Fault is what a line does to one command.
type Fault struct {
	Lose  bool            // the engine gets the start, and we no answer
	Hang  bool            // the engine never gets the start, and we no answer
	CutAt int             // its stream breaks after so many bytes
	Bytes bool            // its output comes byte by byte
	Rate  int             // its output comes at so many bytes a second
	Pause <-chan struct{} // nothing of its output is taken from the engine until this is closed
}

// Case is one case of the suite. Its name begins with the ids of the rows that it
// shows.
type Case struct {
	Name string

	needs need
	run   func(*scene)
}

// need is what a case cannot do without.
type need int

const (
	aKernel   need = 1 << iota // real processes
	anOutside                  // Harness.Outside
	aLine                      // Harness.Link
)

// Cases are all cases of the suite, each row of exec in at least one.
func Cases() []Case {
	var all []Case
	for _, part := range [][]Case{wrapperCases(), leftoverCases(), stopCases(), streamCases(), timeoutCases(), killCases(), hostileCases(), floodCases()} {
		all = append(all, part...)
	}
	return all
}

// Run runs all cases of the suite that the harness has the means for, each as a
// subtest.
func Run(t *testing.T, h Harness) {
	for _, c := range Cases() {
		if h.lacks(c) == "" {
			t.Run(c.Name, func(t *testing.T) { c.run(newScene(t, h)) })
		}
	}
}

// RunCase runs the one case of a name, which may be a test's with Test in front, and
// fails where there is none, or the harness lacks what it needs.
func RunCase(t *testing.T, h Harness, name string) {
	t.Helper()
	name = strings.TrimPrefix(name, "Test")
	for _, c := range Cases() {
		if c.Name != name {
			continue
		}
		if lacks := h.lacks(c); lacks != "" {
			t.Fatalf("the harness has no %s", lacks)
		}
		c.run(newScene(t, h))
		return
	}
	t.Fatalf("the suite has no case %s", name)
}

func (h Harness) lacks(c Case) string {
	switch {
	case c.needs&(aKernel|anOutside|aLine) != 0 && h.Image == "":
		return "image"
	case c.needs&anOutside != 0 && h.Outside == nil:
		return "outside"
	case c.needs&aLine != 0 && h.Link == nil:
		return "line"
	}
	return ""
}
