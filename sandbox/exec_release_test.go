package sandbox_test

import (
	"errors"
	"log/slog"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"
	"weak"

	"caisson/sandbox"
)

// TestEndedCommandsLetGoOfTheirConnection releases commands after each kind of end. The
// backend, which has the connection and its buffers, is garbage then; the record is read as
// before.
func TestEndedCommandsLetGoOfTheirConnection(t *testing.T) {
	killed := sandbox.StopReport{Found: true, Status: code(137)}
	for name, end := range map[string]func(e *sandbox.Exec){
		"exited":         func(e *sandbox.Exec) { e.StreamEnded(exit7) },
		"killed":         func(e *sandbox.Exec) { _, _ = e.Kill(sandbox.SignalKill) },
		"container gone": func(e *sandbox.Exec) { e.Lose(sandbox.LostContainerGone, "") },
	} {
		b := &backend{report: killed}
		ref := weak.Make(b)
		spec := sandbox.ExecSpec{ID: sandbox.NewExecID(), Argv: []string{"x"}, Stdin: []byte("input"), StdinOpen: true}
		e := sandbox.NewExec("sbx_x", spec, pool(t, 1024, 0, 0).New(), slog.New(slog.DiscardHandler))
		e.Attach(b)
		e.Output(sandbox.Stdout, []byte("said"))
		if name == "killed" {
			e.OutputWhole(true)
		}
		e.Release()
		if ref.Value() == nil || e.View().Status != sandbox.StatusRunning {
			t.Fatalf("%s: released while it ran", name)
		}
		end(e)
		before := e.View()
		e.Release()
		e.Release()
		if !b.closed {
			t.Errorf("%s: not closed", name)
		}
		for deadline := time.Now().Add(5 * time.Second); ref.Value() != nil && time.Now().Before(deadline); {
			runtime.GC()
		}
		if ref.Value() != nil {
			t.Errorf("%s: the backend is kept", name)
		}
		if after := e.View(); show(after) != show(before) || e.Spool().Total(sandbox.Stdout) != 4 {
			t.Errorf("%s: %s, before %s", name, show(after), show(before))
		}
		if again, err := e.Kill(sandbox.SignalKill); again || err != nil {
			t.Errorf("%s: kill: %v, %v", name, again, err)
		}
		if _, err := e.WriteStdin(t.Context(), []byte("x")); sandbox.KindOf(err) != sandbox.KindStdinClosed || !strings.Contains(err.Error(), "no input") {
			t.Errorf("%s: %v", name, err)
		}
		if err := errors.Join(e.CloseStdin(t.Context()), e.Close()); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestSTR09_ACommandThatMayRunOnCanStillBeKilled releases one whose stream was cut.
func TestSTR09_ACommandThatMayRunOnCanStillBeKilled(t *testing.T) {
	b := &backend{report: sandbox.StopReport{Found: true, Status: code(137)}}
	e := started(t, b, sandbox.ExecSpec{Argv: []string{"x"}})
	e.Lose(sandbox.LostStreamCut, "")
	e.Release()
	if b.closed {
		t.Error("closed")
	}
	if killed, err := e.Kill(sandbox.SignalKill); !killed || err != nil || b.stops != 1 {
		t.Errorf("%v, %v, %d stops", killed, err, b.stops)
	}
}

// TestAttackT53_RecordsOfLongCommandsAreSmall: a record is kept for an hour, and a command
// may have more than a MiB of words.
func TestAttackT53_RecordsOfLongCommandsAreSmall(t *testing.T) {
	word := strings.Repeat("w", 100<<10)
	for name, c := range map[string]struct{ argv, want []string }{
		"short":     {[]string{"sh", "-c", "true"}, []string{"sh", "-c", "true"}},
		"long":      {[]string{"sh", "-c", word, word}, []string{"sh", "-c", word[:1024-6]}},
		"long name": {[]string{word, "x"}, []string{word[:1024]}},
		"many":      {slices.Repeat([]string{"a"}, 100_000), slices.Repeat([]string{"a"}, 512)},
	} {
		e := sandbox.NewExec("sbx_x", sandbox.ExecSpec{ID: sandbox.NewExecID(), Argv: c.argv}, pool(t, 1024, 0, 0).New(), slog.New(slog.DiscardHandler))
		e.Attach(&backend{})
		e.StreamEnded(exit7)
		e.Release()
		if got := e.View().Argv; strings.Join(got, " ") != strings.Join(c.want, " ") {
			t.Errorf("%s: %d words, %.40s…", name, len(got), strings.Join(got, " "))
		}
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	}
}
