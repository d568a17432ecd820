package docker

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/docker/docker/api/types/container"

	"caisson/sandbox"
)

func TestEXW17_ArgumentsAreTakenLiterally(t *testing.T) {
	t.Parallel()
	s := create(t, provider(t), specOf(""))
	args := []string{"", " ", "'; touch /tmp/PWN #", "$(id)", "`id`", "a\nb\r", "-n", "--", "*", "日本 \u202e", strings.Repeat("x", 100<<10)}
	r := run(t, s, sandbox.ExecSpec{Argv: append([]string{"printf", "%s\\0"}, args...)})
	if want := strings.Join(args, "\x00") + "\x00"; r.code() != 0 || r.stdout != want {
		t.Errorf("code %d, %d bytes, want %d; %.200q %s", r.code(), len(r.stdout), len(want), r.stdout, r.stderr)
	}
	if got := sh(t, s, "ls /tmp/PWN 2>/dev/null || true"); got != "" {
		t.Error("an argument was run")
	}
	many := slices.Repeat([]string{strings.Repeat("x", 100<<10)}, 40) // each fits, together they do not
	if r := run(t, s, sandbox.ExecSpec{Argv: append([]string{"true"}, many[:15]...)}); r.code() != 0 {
		t.Errorf("1.5 MB of arguments: code %d, %s", r.code(), r.stderr)
	}
	for _, words := range [][]string{{"\xff\xfe"}, {strings.Repeat("x", 129<<10)}, {strings.Repeat("x", 3<<20)}, many} {
		_, err := start(t, s, sandbox.ExecSpec{Argv: append([]string{"true"}, words...)})
		wantError(t, err, sandbox.KindInvalid, "argv")
	}
}

func TestEXW18_CON09_StdinReachesTheCommandAndEnds(t *testing.T) {
	t.Parallel()
	s := create(t, provider(t), specOf(""))
	input := bytes.Repeat([]byte("0123456789abcdef"), 10<<16)
	want := fmt.Sprintf("%x  -\n", sha256.Sum256(input))
	if r := run(t, s, sandbox.ExecSpec{Argv: []string{"sha256sum"}, Stdin: input}); r.stdout != want || r.code() != 0 {
		t.Errorf("%q, code %d", r.stdout, r.code())
	}
	if r := run(t, s, sandbox.ExecSpec{Argv: []string{"cat"}}); r.stdout != "" || r.code() != 0 {
		t.Errorf("without stdin: %q, code %d", r.stdout, r.code())
	}
	e := mustStart(t, s, sandbox.ExecSpec{Argv: []string{"cat"}, StdinOpen: true, Stdin: []byte("1")})
	for _, part := range []string{"2", "3"} {
		if n, err := e.WriteStdin(t.Context(), []byte(part)); n != 1 || err != nil {
			t.Errorf("%d, %v", n, err)
		}
		eventually(t, "echo", func() bool { return strings.HasSuffix(output(t, e, sandbox.Stdout), part) })
	}
	if err := e.CloseStdin(t.Context()); err != nil {
		t.Error(err)
	}
	if r := finish(t, e); r.stdout != "123" || r.code() != 0 {
		t.Errorf("%q, code %d", r.stdout, r.code())
	}
	_, err := e.WriteStdin(t.Context(), []byte("x"))
	wantError(t, err, sandbox.KindStdinClosed, "")
}

// TestAPI06_CancelledWriteDoesNotBreakTheInput writes to a command that does not
// read, gives up, and lets it read on.
func TestAPI06_CancelledWriteDoesNotBreakTheInput(t *testing.T) {
	t.Parallel()
	s := create(t, provider(t), specOf(""))
	e := mustStart(t, s, sandbox.ExecSpec{Argv: []string{"sh", "-c", "while [ ! -e /tmp/go ]; do sleep 0.05; done; sha256sum"}, StdinOpen: true})
	big := bytes.Repeat([]byte("x"), 16<<20)
	ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
	defer cancel()
	n, err := e.WriteStdin(ctx, big)
	if err == nil || n >= len(big) {
		t.Fatalf("the control: all of it was taken (%d, %v)", n, err)
	}
	sh(t, s, "touch /tmp/go")
	if m, err := e.WriteStdin(t.Context(), []byte("end")); m != 3 || err != nil {
		t.Fatalf("%d, %v", m, err)
	}
	if err := e.CloseStdin(t.Context()); err != nil {
		t.Error(err)
	}
	if r := finish(t, e); r.stdout != fmt.Sprintf("%x  -\n", sha256.Sum256(append(big[:n:n], "end"...))) {
		t.Errorf("%q", r.stdout)
	}
}

func TestAPI07_WhereACommandStarts(t *testing.T) {
	t.Parallel()
	s := create(t, provider(t), specOf(""))
	sh(t, s, "mkdir -p /workspace/a/b; touch /workspace/file")
	for cwd, want := range map[string]string{"": "/workspace", "a": "/workspace/a", "a/../a/b/": "/workspace/a/b", ".": "/workspace", "/": "/", "/etc//": "/etc"} {
		if r := run(t, s, sandbox.ExecSpec{Argv: []string{"pwd"}, Cwd: cwd}); strings.TrimSpace(r.stdout) != want {
			t.Errorf("%q: %q, want %q", cwd, r.stdout, want)
		}
	}
	for cwd, kind := range map[string]sandbox.Kind{
		"nowhere": sandbox.KindInvalid, "/nowhere": sandbox.KindInvalid, "file": sandbox.KindInvalid, "a\x00b": sandbox.KindInvalid,
		"..": sandbox.KindPathEscapes, "a/../../etc": sandbox.KindPathEscapes, "../workspace2": sandbox.KindPathEscapes,
	} {
		_, err := start(t, s, sandbox.ExecSpec{Argv: []string{"pwd"}, Cwd: cwd})
		wantError(t, err, kind, "cwd")
	}
	if got := sh(t, s, "ls -d /nowhere /workspace/nowhere 2>/dev/null || true"); got != "" {
		t.Errorf("a directory was made: %s", got)
	}
}

func TestEXW11_STR04_HeldOutputIsReadToItsEnd(t *testing.T) {
	t.Parallel()
	s := create(t, provider(t), specOf(""))
	began := time.Now()
	e := mustStart(t, s, shell("(sleep 3; echo late) & echo hi; exit 3"))
	eventually(t, "the command's own exit", func() bool { v := e.View(); return v.CommandExitCode != nil && *v.CommandExitCode == 3 && v.OutputHeld })
	r := finish(t, e)
	if r.code() != 3 || r.stdout != "hi\nlate\n" || !r.OutputComplete || time.Since(began) < 3*time.Second {
		t.Errorf("code %d, %q, complete %v after %v", r.code(), r.stdout, r.OutputComplete, time.Since(began))
	}
}

func TestKIL01_KIL02_KIL03_WhatAKillEndsWith(t *testing.T) {
	t.Parallel()
	s := create(t, provider(t), specOf(""))
	for name, c := range map[string]struct {
		script string
		status sandbox.Status
		code   int
		killed bool
	}{
		"running":                      {"echo on; sleep 300 & sleep 300", sandbox.StatusKilled, 137, true},
		"exited, its child holds":      {"sleep 301 & echo on; exit 4", sandbox.StatusExited, 4, false},
		"an escaped process holds":     {"setsid sleep 302 & echo on; sleep 302", sandbox.StatusKilled, 137, true},
		"exited, an escaped one holds": {"setsid sleep 303 & sleep 303 & echo on; exit 5", sandbox.StatusExited, 5, false},
		"ignores every polite signal":  {"trap '' TERM INT HUP; echo on; sleep 304; sleep 304", sandbox.StatusKilled, 137, true},
	} {
		t.Run(name, func(t *testing.T) {
			e := mustStart(t, s, shell(c.script))
			eventually(t, "output", func() bool { return output(t, e, sandbox.Stdout) == "on\n" })
			if strings.HasPrefix(name, "exited") {
				eventually(t, "its own exit", func() bool { return e.View().CommandExitCode != nil })
			}
			began := time.Now()
			killed, err := e.Kill(sandbox.SignalKill)
			r := finish(t, e)
			if err != nil || killed != c.killed || r.Status != c.status || r.code() != c.code || r.stdout != "on\n" || time.Since(began) > sandbox.StopLimit {
				t.Errorf("killed %v, %v; %v %d %q after %v", killed, err, r.Status, r.code(), r.stdout, time.Since(began))
			}
		})
	}
	if left := sh(t, s, `for p in /proc/[0-9]*; do tr '\0' ' ' <$p/cmdline; echo; done 2>/dev/null | grep -E '^sleep 30[0-4]' | sort -u || true`); left != "sleep 302 \nsleep 303 \n" {
		t.Errorf("left running: %q, want the escaped ones alone", left)
	}
	e := mustStart(t, s, shell("true"))
	finish(t, e)
	if killed, err := e.Kill(sandbox.SignalKill); killed || err != nil {
		t.Errorf("KIL-12: %v, %v", killed, err)
	}
}

func TestKIL09_KIL10_KIL11_KillsByTheContainersState(t *testing.T) {
	t.Parallel()
	p := provider(t)
	begin := func() (*Session, *sandbox.Exec) {
		s := create(t, p, specOf(""))
		e := mustStart(t, s, shell("echo on; sleep 300"))
		eventually(t, "output", func() bool { return output(t, e, sandbox.Stdout) == "on\n" })
		return s, e
	}
	s, e := begin()
	if err := p.api.ContainerPause(t.Context(), s.containerID); err != nil {
		t.Fatal(err)
	}
	_, err := e.Kill(sandbox.SignalKill)
	wantError(t, err, sandbox.KindKillFailed, "", "paused")
	_, err = start(t, s, shell("true"))
	wantError(t, err, sandbox.KindBusy, "", "paused")
	if err := p.api.ContainerUnpause(t.Context(), s.containerID); err != nil {
		t.Fatal(err)
	}
	if killed, err := e.Kill(sandbox.SignalKill); !killed || err != nil {
		t.Errorf("after the pause: %v, %v", killed, err)
	}

	s, e = begin()
	if err := p.api.ContainerKill(t.Context(), s.containerID, "KILL"); err != nil {
		t.Fatal(err)
	}
	if _, err := e.Kill(sandbox.SignalKill); err != nil {
		t.Errorf("stopped: %v", err)
	}
	if r := finish(t, e); r.Status != sandbox.StatusLost || r.LostReason != sandbox.LostContainerGone || r.ExitCode != nil {
		t.Errorf("stopped: %v, %v, %d", r.Status, r.LostReason, r.code())
	}

	s, e = begin()
	destroy(t, p, s.info.ID)
	if _, err := e.Kill(sandbox.SignalKill); err != nil {
		t.Errorf("gone: %v", err)
	}
	if r := finish(t, e); r.Status != sandbox.StatusLost || r.LostReason != sandbox.LostContainerGone || r.ExitCode != nil || r.stdout != "on\n" {
		t.Errorf("gone: %v, %v, %d", r.Status, r.LostReason, r.code())
	}
}

func TestTMO02_BugEX02_BugEX03_TimeoutsStopTheGroup(t *testing.T) {
	t.Parallel()
	s := create(t, provider(t), specOf(""))
	for _, script := range []string{
		"echo part; sleep 301 & while :; do echo x >>/tmp/t; sleep 0.05; done",
		`echo part; trap "" TERM; sleep 302 & sleep 302`,
	} {
		began := time.Now()
		spec := shell(script)
		spec.Timeout = time.Second
		r := run(t, s, spec)
		if r.Status != sandbox.StatusTimedOut || r.ExitCode != nil || r.stdout != "part\n" || time.Since(began) > 6*time.Second {
			t.Errorf("%v %d %q after %v", r.Status, r.code(), r.stdout, time.Since(began))
		}
		if left := sh(t, s, `wc -l </tmp/t; for p in /proc/[0-9]*; do tr '\0' ' ' <$p/cmdline; echo; done 2>/dev/null | grep '^sleep 30[12]' || true; wc -l </tmp/t`); strings.Contains(left, "sleep") || strings.Fields(left)[0] != strings.Fields(left)[1] {
			t.Errorf("runs on: %q", left)
		}
	}
}

func TestBugEX05_OutOfMemoryIsToldApart(t *testing.T) {
	t.Parallel()
	p := provider(t)
	spec := specOf("")
	spec.MemoryMB = ptr(int64(64))
	s := create(t, p, spec)
	for range 2 {
		if r := run(t, s, shell("kill -9 $$")); r.code() != 137 || r.OOMKilled == nil || *r.OOMKilled {
			t.Errorf("kill -9: code %d, oom %v", r.code(), r.OOMKilled)
		}
		if r := run(t, s, sandbox.ExecSpec{Argv: []string{"tail", "/dev/zero"}}); r.code() != 137 || r.OOMKilled == nil || !*r.OOMKilled {
			t.Errorf("tail: code %d, oom %v, %v", r.code(), r.OOMKilled, r.Notes)
		}
		if got := sh(t, s, "echo ok"); got != "ok\n" {
			t.Error(got)
		}
	}
	timed := sandbox.ExecSpec{Argv: []string{"sleep", "60"}, Timeout: time.Second}
	if r := run(t, s, timed); r.Status != sandbox.StatusTimedOut || r.OOMKilled != nil && *r.OOMKilled {
		t.Errorf("timeout: %v, oom %v", r.Status, r.OOMKilled)
	}
}

func TestBugEX06_NoExitCodeOrOutputIsLost(t *testing.T) {
	t.Parallel()
	p := provider(t)
	const each, atOnce = 25, 8
	a, b := create(t, p, specOf("")), create(t, p, specOf(""))
	var all sync.WaitGroup
	for i := range atOnce {
		s := a
		if i%2 == 1 {
			s = b
		}
		all.Go(func() {
			for range each {
				e, err := start(t, s, shell("echo running; exit 7"))
				if err != nil {
					t.Error(err)
					return
				}
				v, err := e.Wait(t.Context())
				if err != nil || v.ExitCode == nil || *v.ExitCode != 7 || !v.OutputComplete || output(t, e, sandbox.Stdout) != "running\n" {
					t.Errorf("%v: %+v %q", err, v, output(t, e, sandbox.Stdout))
				}
			}
		})
	}
	all.Wait()
}

func TestBugEX07_STR10_ContainerRemovedMidStream(t *testing.T) {
	t.Parallel()
	p := provider(t)
	s := create(t, p, specOf(""))
	e := mustStart(t, s, shell("echo on; sleep 300"))
	eventually(t, "output", func() bool { return output(t, e, sandbox.Stdout) == "on\n" })
	if err := p.api.ContainerRemove(t.Context(), s.containerID, container.RemoveOptions{Force: true, RemoveVolumes: true}); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	if r := finish(t, e); r.LostReason != sandbox.LostContainerGone || r.ExitCode != nil || time.Since(began) > 5*time.Second {
		t.Errorf("%v, %d after %v", r.LostReason, r.code(), time.Since(began))
	}
	began = time.Now()
	_, err := start(t, s, shell("echo hi"))
	wantError(t, err, sandbox.KindSessionLost, "")
	if took := time.Since(began); took > 3*time.Second {
		t.Errorf("took %v", took)
	}
}

// TestAttackT13_D24_ForkBombIsStopped fills the session's cap of processes and
// kills what did, though no process is left for the kill.
func TestAttackT13_D24_ForkBombIsStopped(t *testing.T) {
	t.Parallel()
	p := provider(t)
	spec := specOf("")
	spec.Pids = ptr(int64(40))
	s := create(t, p, spec)
	e := mustStart(t, s, shell("exec 2>/dev/null; while :; do command eval 'sleep 300 &'; done"))
	eventually(t, "the cap is reached", func() bool {
		c, err := p.api.ContainerTop(t.Context(), s.containerID, nil)
		return err == nil && len(c.Processes) >= 40
	})
	began := time.Now()
	other, err := start(t, s, shell("echo no room"))
	if err == nil {
		t.Errorf("a command in a full session: %+v", finish(t, other))
	}
	wantError(t, err, sandbox.KindCapacity, "")
	if took := time.Since(began); took > 3*time.Second {
		t.Errorf("took %v to say so", took)
	}
	began = time.Now()
	killed, err := e.Kill(sandbox.SignalKill)
	if !killed || err != nil || time.Since(began) > sandbox.StopLimit+time.Second {
		t.Errorf("%v, %v after %v", killed, err, time.Since(began))
	}
	finish(t, e)
	if got := sh(t, s, "echo ok"); got != "ok\n" {
		t.Error(got)
	}
	if limit := inspect(t, p, s).HostConfig.PidsLimit; limit == nil || *limit != 40 {
		t.Errorf("the cap is %v afterwards", limit)
	}
}

func TestTrap18_KilledWrapperIsNoExitCode(t *testing.T) {
	t.Parallel()
	s := create(t, provider(t), specOf(""))
	r := run(t, s, shell("echo on; kill -9 $PPID; sleep 1"))
	if r.Status != sandbox.StatusLost || r.LostReason != sandbox.LostStatusUnknown || r.ExitCode != nil || !r.noted("wrapper_killed") {
		t.Errorf("%v, %v, %d, %v", r.Status, r.LostReason, r.code(), r.Notes)
	}
	if got := sh(t, s, "echo ok"); got != "ok\n" {
		t.Error(got)
	}
}

// TestBugSZ01_AttackT20_EndlessOutputIsBounded reads a flood for a second; the
// spool keeps what it may, and counts the rest.
func TestBugSZ01_AttackT20_EndlessOutputIsBounded(t *testing.T) {
	t.Parallel()
	s := create(t, provider(t), specOf(""))
	spec := shell("yes")
	spec.Timeout = 2 * time.Second
	r := run(t, s, spec)
	if r.Status != sandbox.StatusTimedOut {
		t.Errorf("%v", r.Status)
	}
	if n := len(r.stdout); n > 33<<20 {
		t.Errorf("%d bytes kept", n)
	}
}
