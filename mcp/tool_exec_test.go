package mcp_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"caisson/sandbox"
	"caisson/sandbox/sandboxtest"
)

func TestExecReturnsHowTheCommandEnded(t *testing.T) {
	for _, version := range []string{legacy, modern} {
		c := newRig(t).dial("inprocess", version)
		got := c.ok("exec", args{"command": "echo hello; echo no >&2; exit 3"})
		if got.str("status") != "exited" || got.num("exit_code") != 3 || got.str("stdout") != "hello\n" || got.str("stderr") != "no\n" {
			t.Errorf("%s: %v", version, got.fields)
		}
		if got.fields["session_created"] != true || got.fields["truncated"] != false || got.fields["output_complete"] != true {
			t.Errorf("%s: %v", version, got.fields)
		}
		for _, part := range []string{"exited with code 3", "hello\n", "no\n", got.str("exec_id"), got.str("session_id")} {
			if !strings.Contains(got.text, part) {
				t.Errorf("text lacks %q:\n%s", part, got.text)
			}
		}
		if again := c.ok("exec", args{"argv": []string{"pwd"}, "cwd": "sub"}); again.str("stdout") != "/workspace/sub\n" || again.fields["session_created"] != nil || again.str("session_id") != got.str("session_id") {
			t.Errorf("%v", again.fields)
		}
	}
}

// A word of argv is passed on as it is, and only command goes through a shell.
func TestAttackT11_WordsArePassedOnLiterally(t *testing.T) {
	c := newRig(t).dial("inprocess", legacy)
	words := []string{"echo", "'; touch PWN #", "$(id)", "`id`", "a\nb", "\r", "-n", "--", "*", "", "é\u202e", strings.Repeat("x", 129<<10)}
	got := c.ok("exec", args{"argv": words, "max_output_chars": 200_000})
	if want := strings.Join(words[1:], " ") + "\n"; got.str("stdout") != want {
		t.Errorf("%.200q", got.str("stdout"))
	}
	execs, err := c.manager.Execs(sandbox.Owner{Name: "local"}, "")
	if err != nil {
		t.Fatal(err)
	}
	if argv := execs[0].View().Argv; len(argv) != len(words) || argv[1] != words[1] {
		t.Errorf("%.200q", argv)
	}
	for _, test := range []struct{ shell, want string }{{"", "sh"}, {"auto", "sh"}, {"sh", "sh"}} {
		a := args{"command": "echo 'a  b'"}
		if test.shell != "" {
			a["shell"] = test.shell
		}
		c.ok("exec", a)
		execs, err = c.manager.Execs(sandbox.Owner{Name: "local"}, "")
		if err != nil {
			t.Fatal(err)
		}
		if argv := execs[len(execs)-1].View().Argv; argv[0] != test.want || argv[1] != "-c" || argv[2] != "echo 'a  b'" {
			t.Errorf("shell %q: %q", test.shell, argv)
		}
	}
	for _, wrong := range []args{
		{"command": "a", "argv": []string{"a"}},
		{},
		{"argv": []string{}},
		{"argv": []string{""}},
		{"command": ""},
		{"argv": []string{"a"}, "shell": "sh"},
		{"command": "true", "shell": "bash"}, // the fake image has none
	} {
		c.want("invalid_argument", "exec", wrong)
	}
	c.want("path_escapes_workspace", "download", args{"path": "../x"})
}

func TestExecThatOutlivesItsWaitGoesOn(t *testing.T) {
	c := newRig(t).dial("inprocess", legacy)
	got := c.ok("exec", args{"command": "echo first; await go; echo second", "wait_for": "^fir.t$"})
	if got.str("status") != "running" || got.str("stdout") != "first\n" || got.fields["exit_code"] != nil || got.fields["output_complete"] != false {
		t.Errorf("%v", got.fields)
	}
	id := got.str("exec_id")
	if again := c.ok("exec_output", args{"exec_id": id}); again.str("stdout") != "" || !strings.Contains(again.text, "no output since the last result") {
		t.Errorf("%v\n%s", again.fields, again.text)
	}
	c.ok("upload", args{"path": "go", "content": ""})
	if rest := c.ok("exec_output", args{"exec_id": id, "wait_seconds": 20}); rest.str("status") != "exited" || rest.str("stdout") != "second\n" || rest.num("exit_code") != 0 {
		t.Errorf("%v", rest.fields)
	}
	// An explicit offset reads again, also after the session has ended.
	if again := c.ok("exec_output", args{"exec_id": id, "stdout_offset": 3}); again.str("stdout") != "st\nsecond\n" {
		t.Errorf("%v", again.fields)
	}
	c.ok("session_destroy", args{"session_id": got.str("session_id")})
	if again := c.ok("exec_output", args{"exec_id": id, "stdout_offset": -7}); again.str("stdout") != "second\n" {
		t.Errorf("%v", again.fields)
	}
}

func TestTwoReadersOfOneExecEachHaveTheirPlace(t *testing.T) {
	r := newRig(t)
	a, b := r.dial("http", legacy), r.dial("http", legacy)
	got := a.ok("exec", args{"command": "echo one"})
	id := got.str("exec_id")
	if mine, theirs := a.ok("exec_output", args{"exec_id": id}), b.ok("exec_output", args{"exec_id": id}); mine.str("stdout") != "" || theirs.str("stdout") != "one\n" {
		t.Errorf("%q and %q", mine.str("stdout"), theirs.str("stdout"))
	}
}

func TestExecOutputGreps(t *testing.T) {
	c := newRig(t).dial("inprocess", legacy)
	var script strings.Builder
	for i := range 500 {
		fmt.Fprintf(&script, "echo line %d;", i)
	}
	id := c.ok("exec", args{"command": script.String() + "printf 'line 999 without end'"}).str("exec_id")
	got := c.ok("exec_output", args{"exec_id": id, "stdout_offset": 0, "grep": "[0-9]99"})
	if got.str("stdout") != "line 199\nline 299\nline 399\nline 499\nline 999 without end" || got.fields["truncated"] != false {
		t.Errorf("%q", got.str("stdout"))
	}
	// What does not fit is read on from next.
	var all string
	for at := int64(0); at < got.num("stdout_bytes"); {
		part := c.ok("exec_output", args{"exec_id": id, "stdout_offset": at, "grep": "99", "max_output_chars": 20})
		if part.num("stdout_next") <= at {
			t.Fatalf("stuck at %d", at)
		}
		all += part.str("stdout")
		at = part.num("stdout_next")
	}
	if strings.Count(all, "99") != 6 || strings.Contains(all, "98") {
		t.Errorf("%q", all)
	}
	for _, wrong := range []string{"(", "(?=x)"} {
		if got := c.want("invalid_argument", "exec_output", args{"exec_id": id, "grep": wrong}); got.field() != "grep" {
			t.Errorf("%s", got.text)
		}
	}
	c.want("invalid_argument", "exec", args{"command": "true", "wait_for": "["})
	c.want("exec_not_found", "exec_output", args{"exec_id": "exec_nope"})
}

// A timeout and a loss are failures that keep what there is (EX rows): nobody
// may take them for a clean end.
func TestTimedOutAndLostAreErrorsThatKeepTheOutput(t *testing.T) {
	r := newRig(t)
	c := r.dial("inprocess", legacy)
	got := c.want("timed_out", "exec", args{"command": "echo before; sleep 100", "timeout_seconds": 1})
	if got.str("status") != "timed_out" || got.str("stdout") != "before\n" || got.fields["exit_code"] != nil || !strings.Contains(got.text, "before") {
		t.Errorf("%v\n%s", got.fields, got.text)
	}
	got = c.want("lost", "exec", args{"command": "echo before; cut"})
	if got.str("lost_reason") != "stream_cut" || got.str("stdout") != "before\n" || got.fields["exit_code"] != nil {
		t.Errorf("%v", got.fields)
	}
	running := c.ok("exec", args{"command": "echo x; sleep 100", "wait_for": "x"})
	r.fake.Vanish(running.str("session_id"))
	got = c.want("lost", "exec_output", args{"exec_id": running.str("exec_id"), "wait_seconds": 10, "stdout_offset": 0})
	if got.str("lost_reason") != "container_gone" || got.str("stdout") != "x\n" {
		t.Errorf("%v", got.fields)
	}
}

func TestKill(t *testing.T) {
	r := newRig(t)
	c := r.dial("inprocess", legacy)
	running := c.ok("exec", args{"command": "echo x; sleep 100", "wait_for": "x"})
	got := c.ok("kill", args{"exec_id": running.str("exec_id")})
	if got.fields["killed"] != true || got.str("status") != "killed" || got.num("exit_code") != 137 || got.str("stdout") != "" {
		t.Errorf("%v", got.fields)
	}
	if again := c.ok("kill", args{"exec_id": running.str("exec_id")}); again.fields["killed"] != false || again.str("status") != "killed" {
		t.Errorf("%v", again.fields)
	}
	held := c.ok("exec", args{"command": "hold 4", "wait_seconds": 0})
	eventually(t, "held output is seen", func() bool {
		held = c.ok("exec_output", args{"exec_id": held.str("exec_id")})
		return held.fields["output_held"] == true
	})
	if held.str("status") != "running" || held.num("command_exit_code") != 4 || held.noteCodes() != "output_held" {
		t.Errorf("%v", held.fields)
	}
	if got = c.ok("kill", args{"exec_id": held.str("exec_id")}); got.num("exit_code") != 4 || got.fields["killed"] != false || got.str("status") != "exited" {
		t.Errorf("a command that had exited before the kill: %v", got.fields)
	}
	polite := c.ok("exec", args{"command": "sleep 100", "wait_seconds": 0})
	if got = c.ok("kill", args{"exec_id": polite.str("exec_id"), "signal": "TERM"}); got.fields["killed"] != true {
		t.Errorf("%v", got.fields)
	}
	c.want("invalid_argument", "kill", args{"exec_id": polite.str("exec_id"), "signal": "STOP"})
	stuck := c.ok("exec", args{"command": "sleep 100", "wait_seconds": 0})
	r.fake.Fail(sandboxtest.OpStop, sandbox.Errorf("stop", sandbox.KindKillFailed, "the wrapper does not answer"))
	if got = c.want("kill_failed", "kill", args{"exec_id": stuck.str("exec_id")}); !strings.Contains(got.text, "the wrapper does not answer") {
		t.Errorf("%s", got.text)
	}
	r.fake.Fail(sandboxtest.OpStop, nil)
	r.fake.Vanish(stuck.str("session_id"))
	if got = c.ok("kill", args{"exec_id": stuck.str("exec_id")}); got.fields["killed"] != false || got.str("status") != "lost" {
		t.Errorf("a container that is gone: %v", got.fields)
	}
}

func TestBugIN02_StdinGivenAndNotGiven(t *testing.T) {
	c := newRig(t).dial("inprocess", legacy)
	if got := c.ok("exec", args{"argv": []string{"cat"}}); got.num("exit_code") != 0 || got.num("stdout_bytes") != 0 {
		t.Errorf("without stdin: %v", got.fields)
	}
	if got := c.ok("exec", args{"argv": []string{"cat"}, "stdin": "a\n\x00b"}); got.str("stdout") != "a\n\x00b" {
		t.Errorf("with stdin: %v", got.fields)
	}
	got := c.ok("exec", args{"argv": []string{"cat"}, "stdin": "0", "stdin_open": true, "wait_for": "0"})
	id := got.str("exec_id")
	in := c.ok("exec_input", args{"exec_id": id, "data": "MTI=", "encoding": "base64"})
	if in.num("bytes_written") != 2 || in.fields["stdin_open"] != true {
		t.Errorf("%v", in.fields)
	}
	if in = c.ok("exec_input", args{"exec_id": id, "data": "3", "close": true}); in.fields["stdin_open"] != false {
		t.Errorf("%v", in.fields)
	}
	if got = c.ok("exec_output", args{"exec_id": id, "wait_seconds": 10, "stdout_offset": 0}); got.str("stdout") != "0123" || got.num("exit_code") != 0 {
		t.Errorf("%v", got.fields)
	}
	c.want("stdin_closed", "exec_input", args{"exec_id": id, "data": "4"})
	c.want("invalid_argument", "exec_input", args{"exec_id": id})
	c.want("invalid_argument", "exec_input", args{"exec_id": id, "data": "!", "encoding": "base64"})
	c.want("exec_not_found", "exec_input", args{"exec_id": "exec_x", "data": "4"})
}

// A command that does not read takes what its pipe holds, and the call says how
// much that was.
func TestExecInputAnswersWithinTenSeconds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		inBubble(t, func(c *conn) {
			id := c.ok("exec", args{"command": "sleep 100", "stdin_open": true, "wait_seconds": 0}).str("exec_id")
			start := time.Now()
			got := c.ok("exec_input", args{"exec_id": id, "data": strings.Repeat("x", 1<<20)})
			if took := time.Since(start); took != 10*time.Second || got.num("bytes_written") == 0 || got.num("bytes_written") == 1<<20 || got.fields["stdin_open"] != true {
				t.Errorf("after %v: %v", took, got.fields)
			}
		})
	})
}

func TestExecList(t *testing.T) {
	c := newRig(t).dial("inprocess", legacy)
	if got := c.ok("exec_list", nil); len(got.list("execs")) != 0 {
		t.Errorf("%v", got.fields)
	}
	first := c.ok("exec", args{"command": "echo secret-output; exit 2"})
	other := c.ok("session_create", nil).session()["session_id"].(string)
	c.ok("exec", args{"command": "sleep 100", "wait_seconds": 0, "session_id": other})
	got := c.ok("exec_list", nil)
	if len(got.list("execs")) != 2 || strings.Contains(got.text, "secret-output") {
		t.Errorf("%s", got.text)
	}
	if e := got.list("execs")[0].(args); e["exec_id"] != first.str("exec_id") || e["exit_code"] != 2.0 || e["status"] != "exited" {
		t.Errorf("%v", e)
	}
	if got = c.ok("exec_list", args{"session_id": other}); len(got.list("execs")) != 1 {
		t.Errorf("%v", got.fields)
	}
	c.want("session_not_found", "exec_list", args{"session_id": "sbx_nope"})
}

// inBubble runs f with a client in fake time.
func inBubble(t *testing.T, f func(c *conn)) {
	t.Helper()
	r := newRig(t)
	c := r.dial("inprocess", legacy)
	f(c)
	for _, id := range r.fake.Sessions() {
		c.ok("session_destroy", args{"session_id": id})
	}
}

// SZ-01: endless output is bounded here, counted, and stopped at its timeout.
func TestBugSZ01_EndlessOutputIsBounded(t *testing.T) {
	c := newRig(t).dial("inprocess", legacy)
	got := c.want("timed_out", "exec", args{"argv": []string{"yes"}, "timeout_seconds": 1})
	if got.num("stdout_bytes") < 1<<20 || len(got.str("stdout")) > 16_000 || got.fields["truncated"] != true {
		t.Errorf("%d bytes, %d shown", got.num("stdout_bytes"), len(got.str("stdout")))
	}
}

func TestCancelledExecStopsItsCommand(t *testing.T) {
	for _, how := range []string{"inprocess", "http", "sse"} {
		for _, version := range []string{legacy, modern} {
			r := newRig(t)
			c := r.dial(how, version)
			session := c.ok("session_create", nil).session()["session_id"].(string)
			ctx, cancel := context.WithCancel(t.Context())
			done := make(chan struct{})
			go func() {
				defer close(done)
				_, _ = c.try(ctx, "exec", args{"session_id": session, "command": "sleep 1000", "wait_seconds": 40}, nil) // what is left behind is what counts
			}()
			eventually(t, "the command runs", func() bool { return r.fake.Running() == 1 })
			cancel()
			<-done
			if how == "sse" {
				_ = c.c.Close() // nothing else tells the server
			}
			eventually(t, how+" "+version+": the command is stopped", func() bool { return r.fake.Running() == 0 })
			eventually(t, "no call is left", func() bool { return r.server.CallsUnderWay() == 0 })
		}
	}
}

// A command whose exec has answered belongs to the session: no later cancel or
// disconnect stops it.
func TestAnsweredExecOutlivesItsClient(t *testing.T) {
	r := newRig(t)
	c := r.dial("sse", legacy)
	id := c.ok("exec", args{"command": "sleep 1000", "wait_seconds": 0}).str("exec_id")
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		_, _ = c.try(ctx, "exec_output", args{"exec_id": id, "wait_seconds": 40}, nil)
	}()
	eventually(t, "the call waits", func() bool { return r.server.CallsUnderWay() == 1 })
	cancel()
	<-done
	_ = c.c.Close()
	eventually(t, "no call is left", func() bool { return r.server.CallsUnderWay() == 0 })
	if other := r.dial("http", legacy); other.ok("exec_output", args{"exec_id": id}).str("status") != "running" {
		t.Error("the command was stopped")
	}
}
