package sandbox_test

import (
	"testing"
	"testing/synctest"

	"caisson/sandbox"
)

func TestSTR09_StreamThatEndsWithoutStatusIsLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := started(t, &backend{}, sandbox.ExecSpec{StdinOpen: true})
		e.StreamEnded(sandbox.StreamEnd{Reason: sandbox.LostStreamCut})
		if show(e.View()) != "lost stream_cut []" {
			t.Fatalf("%s", show(e.View()))
		}
		if _, err := e.WriteStdin(t.Context(), []byte("x")); sandbox.KindOf(err) != sandbox.KindStdinClosed {
			t.Fatalf("%v", err)
		}
	})
}

func TestAPI06_StdinIsOrderedAndCloses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &backend{}
		e := started(t, b, sandbox.ExecSpec{Stdin: []byte("first "), StdinOpen: true})
		if n, err := e.WriteStdin(t.Context(), []byte("second")); n != 6 || err != nil {
			t.Fatal(n, err)
		}
		if err := e.CloseStdin(t.Context()); err != nil {
			t.Fatal(err)
		}
		if string(b.stdin) != "first second" || !b.eof || e.View().StdinOpen {
			t.Fatalf("%q, eof %v", b.stdin, b.eof)
		}
		if _, err := e.WriteStdin(t.Context(), []byte("x")); sandbox.KindOf(err) != sandbox.KindStdinClosed {
			t.Fatalf("%v", err)
		}
	})
}

func TestBugEN06_UnreadStdinIsNoError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &backend{block: make(chan struct{})}
		e := started(t, b, sandbox.ExecSpec{Stdin: make([]byte, 64<<10)})
		e.StreamEnded(sandbox.StreamEnd{Code: code(0), Complete: true})
		<-e.Done()
		if show(e.View()) != "exited 0 []" {
			t.Fatalf("%s", show(e.View()))
		}
	})
}

func TestKIL07_StdinStaysOpenUntilTheGraceEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &backend{}
		e := started(t, b, sandbox.ExecSpec{StdinOpen: true})
		if _, err := e.Kill(sandbox.SignalKill); err != nil {
			t.Fatal(err)
		}
		if _, err := e.WriteStdin(t.Context(), []byte("still")); err != nil {
			t.Errorf("within the grace: %v", err)
		}
		<-e.Done()
		if _, err := e.WriteStdin(t.Context(), []byte("x")); sandbox.KindOf(err) != sandbox.KindStdinClosed {
			t.Errorf("after the grace: %v", err)
		}
	})
}
