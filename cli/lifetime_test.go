package cli

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"caisson/sandbox"
	"caisson/sandbox/sandboxtest"
)

// A server whose instance another has taken says so by its exit status, so that nothing
// starts it again: it would take the instance back.
func TestAttackT63_AServerThatWasReplacedHasAnExitStatusOfItsOwn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fake := sandboxtest.NewFake()
		start := func() *sandbox.Manager {
			m := sandbox.NewManager(sandbox.Options{
				Provider: fake.Server("one"), Instance: "one", Grace: time.Minute, Keep: sandbox.KeepAll,
				Limits: sandbox.Limits{ReapInterval: time.Second, Retention: time.Hour, LostRetention: time.Hour, DefaultTimeout: time.Minute},
				Log:    slog.New(slog.DiscardHandler),
			})
			if err := m.Recover(t.Context()); err != nil {
				t.Fatal(err)
			}
			return m
		}
		first := start()
		ctx, graceful := (&serving{manager: first}).graceful(t.Context())
		second := start()
		select {
		case <-ctx.Done():
		case <-time.After(time.Minute):
			t.Fatal("the first goes on")
		}
		var told bytes.Buffer
		if status := (Process{Stderr: &told}).status(errors.Join(nil, graceful())); status != exitReplaced || !strings.Contains(told.String(), "SANDBOX_DOCKER_INSTANCE") {
			t.Errorf("status %d: %s", status, &told)
		}
		asked, ask := context.WithCancel(t.Context())
		_, graceful = (&serving{manager: second}).graceful(asked)
		ask()
		if status := (Process{Stderr: &told}).status(graceful()); status != exitOK {
			t.Errorf("one that was asked to end: status %d", status)
		}
		for _, m := range []*sandbox.Manager{first, second} {
			if err := m.Close(t.Context()); err != nil {
				t.Error(err)
			}
		}
	})
}

// unit reads the values of a key of deploy/caisson.service.
func unit(t *testing.T, key string) (values []string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "deploy", "caisson.service"))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if value, ok := strings.CutPrefix(line, key+"="); ok {
			values = append(values, strings.Fields(value)...)
		}
	}
	return values
}

// The unit starts the server again after every end but those that a start does not mend. A
// crash is none of these: Go's own status for one is that of a wrong setting.
func TestAttackT63_TheUnitStartsAgainWhatAStartMends(t *testing.T) {
	if got := unit(t, "RestartPreventExitStatus"); !slices.Equal(got, []string{"2", "3"}) || exitSetting != 2 || exitReplaced != 3 {
		t.Errorf("not started again: after %v", got)
	}
	if got := unit(t, "Restart"); !slices.Equal(got, []string{"on-failure"}) {
		t.Errorf("started again: %v", got)
	}
	if got := unit(t, "LimitCORE"); !slices.Equal(got, []string{"0"}) {
		t.Errorf("a crash leaves what was in memory: %v", got)
	}
	var before syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_CORE, &before); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Setrlimit(syscall.RLIMIT_CORE, &syscall.Rlimit{Max: before.Max}); err != nil {
		t.Fatal(err)
	}
	for _, row := range []struct {
		environ []string
		crashed bool
	}{{unit(t, "Environment"), true}, {nil, false}} {
		p := start(t, append(row.environ, deadEngine), "serve")
		p.call("initialize", map[string]any{"protocolVersion": "2025-11-25", "capabilities": map[string]any{}, "clientInfo": map[string]any{"name": "t", "version": "1"}})
		p.signal(syscall.SIGQUIT) // ends a Go program as a panic does
		status := p.end()
		state, ok := p.cmd.ProcessState.Sys().(syscall.WaitStatus)
		if !ok || state.Signaled() != row.crashed || row.crashed && state.Signal() != syscall.SIGABRT || !row.crashed && status != exitSetting {
			t.Errorf("with %v it ends with %v", row.environ, p.cmd.ProcessState)
		}
	}
}
