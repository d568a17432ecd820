package e2e_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"
)

// Eight calls that wait: everything else is answered at once, on stdio and HTTP.
func TestBugMT04_SlowCallsHoldUpNobody(t *testing.T) {
	for _, way := range []via{stdioLegacy, httpLegacy, stdioModern} {
		v := start(t, launch{plain: true, http: way.http()})
		var a *actor
		var w *wire
		if way.http() {
			a = join(t, v, way)
		} else {
			a, w = attach(t, v, way)
		}
		busy, other := a.session(nil), a.session(nil)
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 8)
		for i := range 8 {
			go func() {
				_, err := a.call(ctx, "exec", args{"session_id": busy, "argv": []string{"sleep", fmt.Sprint(600 + i)}})
				ended <- err
			}()
		}
		eventually(t, 20*time.Second, "eight commands run", func() bool { return a.processes(busy, "sleep 60") == 8 })
		for what, step := range map[string]func() error{
			"ping":                    func() error { return a.alive(t.Context()) },
			"session_list":            func() error { a.ok("session_list", args{}); return nil },
			"exec in another session": func() error { a.sh(other, "echo hi"); return nil },
			"exec in the same":        func() error { a.sh(busy, "echo hi"); return nil },
		} {
			began := time.Now()
			if err := step(); err != nil {
				t.Errorf("%s: %s: %v", way, what, err)
			}
			took(t, began, time.Second, fmt.Sprintf("%s: %s", way, what))
		}
		cancel() // over HTTP the client goes away, which cancels
		if w != nil {
			w.cancelAll(t)
		}
		eventually(t, 10*time.Second, "the cancelled commands are gone", func() bool { return a.processes(busy, "sleep 60") == 0 })
		for range 8 {
			if err := <-ended; err == nil {
				t.Errorf("%s: a cancelled call was answered as if nothing had been", way)
			}
		}
	}
}

// A cancel notice stops what its call started, whatever the form of the id, and
// nothing is sent for it afterwards.
func TestBugMT01_ACancelledCallIsStoppedAndNotAnswered(t *testing.T) {
	t.Parallel()
	v := start(t, launch{})
	a, w := attach(t, v, stdioLegacy)
	s := a.session(nil)
	for _, id := range []string{"7001", `"7001"`, `"a string"`} {
		call, err := json.Marshal(map[string]any{
			"jsonrpc": "2.0", "id": json.RawMessage(id), "method": "tools/call",
			"params": callParams("exec", args{"session_id": s, "argv": []string{"sleep", "777"}}),
		})
		if err != nil {
			t.Fatal(err)
		}
		if err := w.line(call); err != nil {
			t.Fatal(err)
		}
		eventually(t, 10*time.Second, "the command runs", func() bool { return a.processes(s, "sleep 777") == 1 })
		for _, cancelled := range []string{`"nobody"`, "123456", id} {
			if err := w.notify("notifications/cancelled", map[string]any{"requestId": json.RawMessage(cancelled)}); err != nil {
				t.Fatal(err)
			}
		}
		eventually(t, 5*time.Second, "the command is gone", func() bool { return a.processes(s, "sleep 777") == 0 })
	}
	if out := a.sh(s, "echo usable"); out != "usable\n" {
		t.Errorf("%q", out)
	}
	if err := v.end(); err != nil {
		t.Error(err)
	}
	<-w.done
	for _, m := range w.heard() {
		if len(m.ID) > 0 {
			t.Errorf("answered though cancelled: %s %s", m.ID, clip(string(m.Result)))
		}
	}
	pure(t, w)
}

// cancelAll cancels every call that is still waited for.
func (w *wire) cancelAll(t *testing.T) {
	t.Helper()
	w.mu.Lock()
	var ids []string
	for id := range w.waiting {
		ids = append(ids, id)
	}
	w.mu.Unlock()
	for _, id := range ids {
		if err := w.notify("notifications/cancelled", map[string]any{"requestId": json.RawMessage(id)}); err != nil {
			t.Error(err)
		}
	}
}

func TestBugMS02_NumbersAreReadLenientlyOrRefusedByName(t *testing.T) {
	t.Parallel()
	for _, way := range []via{stdioLegacy, httpModern} {
		a := connect(t, way)
		s := a.session(nil)
		call := func(timeout string) result {
			return a.do("exec", json.RawMessage(fmt.Sprintf(`{"session_id":%q,"argv":["true"],"timeout_seconds":%s}`, s, timeout)))
		}
		for _, five := range []string{`5`, `"5"`, `5.0`, `"5.0"`, `null`} {
			r := call(five)
			if r.IsError || !into[execOut](t, r).exited(0) {
				t.Errorf("%s: %s: %s", way, five, r.text())
			}
			if five != "null" {
				x := into[struct {
					TimeoutAt time.Time `json:"timeout_at"`
				}](t, r)
				if left := time.Until(x.TimeoutAt); left > 5*time.Second {
					t.Errorf("%s: %s: the timeout is %v ahead", way, five, left)
				}
			}
		}
		for _, wrong := range []string{`"abc"`, `true`, `""`, `[5]`, `{}`, `-1`, `"5 "`, `1e99`} {
			r := call(wrong)
			if r.code() != "invalid_argument" || !strings.Contains(r.text(), "timeout_seconds") || r.Meta["field"] != "timeout_seconds" {
				t.Errorf("%s: %s: %v %s", way, wrong, r.Meta, r.text())
			}
		}
	}
}

func TestBugMS03_UnknownArgumentsAreNamedWithTheNearestKnown(t *testing.T) {
	t.Parallel()
	for _, way := range []via{stdioModern, sseLegacy} {
		a := connect(t, way)
		s := a.session(nil)
		for wrong, right := range map[string]string{"timout_seconds": "timeout_seconds", "sessionId": "session_id", "comand": "command", "workdir": ""} {
			r := a.fails("invalid_argument", "exec", args{"session_id": s, "command": "sleep 5", wrong: 2})
			if !strings.Contains(r.text(), wrong) || !strings.Contains(r.text(), right) {
				t.Errorf("%s: %s", way, r.text())
			}
		}
		a.ok("exec", args{"session_id": s, "command": "true", "_meta": args{"anything": []int{1}}})
	}
}

// everyTool lists the tools that the contract fixes.
var everyTool = []string{
	"session_create", "session_list", "session_extend", "session_destroy", "workspace_list", "workspace_delete",
	"exec", "exec_output", "exec_input", "exec_list", "kill", "run", "upload", "download", "edit_file", "list_files",
}

func TestBugMS04_ArgumentsThatAreNoObjectHurtNobody(t *testing.T) {
	t.Parallel()
	v := start(t, launch{})
	a, w := attach(t, v, stdioLegacy)
	// These do something sensible without any argument.
	willing := map[string]bool{"session_create": true, "session_list": true, "workspace_list": true, "exec_list": true, "list_files": true}
	for _, tool := range everyTool {
		for _, shape := range []string{"", "null", "{}", "[]", `"x"`, "5", `{"session_id":{"nested":[]}}`, `{"exec_id":7,"path":[],"workspace_key":{}}`} {
			params := map[string]any{"name": tool}
			if shape != "" {
				params["arguments"] = json.RawMessage(shape)
			}
			ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
			raw, err := w.request(ctx, "tools/call", params)
			cancel()
			if err != nil {
				if rpc := new(rpcError); !errors.As(err, &rpc) || rpc.Code != -32602 {
					t.Errorf("%s %s: %v", tool, shape, err)
				}
				continue
			}
			r, err := readResult(raw)
			empty := shape == "" || shape == "null" || shape == "{}"
			switch {
			case err != nil:
				t.Errorf("%s %s: %v", tool, shape, err)
			case empty && willing[tool]:
				if r.IsError {
					t.Errorf("%s %s: %s", tool, shape, r.text())
				}
			case r.code() != "invalid_argument" && r.code() != "session_not_found":
				t.Errorf("%s %s: %v %s", tool, shape, r.Meta, clip(r.text()))
			case strings.Contains(r.text(), "goroutine") || strings.Contains(r.text(), ".go:"):
				t.Errorf("%s %s: %s", tool, shape, r.text())
			}
		}
	}
	if err := w.alive(t.Context()); err != nil {
		t.Error(err)
	}
	_ = a
}

// Whatever fails is told in words with a code, and its structured part, where
// there is one, fits what the tool has declared. That declared schemas are met
// is checked again by the TypeScript SDK.
func TestBugMS05_ErrorsAreReadableAndFitTheSchema(t *testing.T) {
	t.Parallel()
	a := connect(t, sseModern)
	s := a.session(nil)
	a.sh(s, "mkdir d; echo one one > f; ln -s / out; touch ro; chmod 444 ro")
	gone := a.session(nil)
	a.ok("session_destroy", args{"session_id": gone})
	quick := a.exec(s, "true")
	for _, c := range []struct {
		code, tool string
		args       args
	}{
		{"invalid_argument", "exec", args{"session_id": s}},
		{"spec_rejected", "session_create", args{"durability": "persistent"}},
		{"spec_rejected", "session_create", args{"isolation": "vm"}},
		{"image_not_found", "session_create", args{"image": "nobody-has-this@sha256:" + strings.Repeat("0", 64)}},
		{"session_not_found", "exec", args{"session_id": "sbx_" + strings.Repeat("a", 26), "command": "true"}},
		{"session_not_found", "exec", args{"session_id": gone, "command": "true"}},
		{"exec_not_found", "exec_output", args{"exec_id": "exec_nobody"}},
		{"stdin_closed", "exec_input", args{"exec_id": quick.ExecID, "data": "x"}},
		{"file_not_found", "download", args{"session_id": s, "path": "none"}},
		{"is_a_directory", "upload", args{"session_id": s, "path": "d", "content": "x"}},
		{"not_a_directory", "upload", args{"session_id": s, "path": "f/x", "content": "x"}},
		{"permission_denied", "upload", args{"session_id": s, "path": "/etc/x", "content": "x"}},
		{"permission_denied", "upload", args{"session_id": s, "path": "ro", "content": "x"}},
		{"path_escapes_workspace", "download", args{"session_id": s, "path": "out/etc/passwd"}},
		{"string_not_found", "edit_file", args{"session_id": s, "path": "f", "old_string": "two", "new_string": "x"}},
		{"string_not_unique", "edit_file", args{"session_id": s, "path": "f", "old_string": "one", "new_string": "x"}},
		{"workspace_not_found", "workspace_delete", args{"workspace_key": "nobody-has-this"}},
		{"too_large", "download", args{"session_id": s, "path": "f", "limit": 100 << 20}},
	} {
		r := a.do(c.tool, c.args)
		if r.code() != c.code && !(c.code == "too_large" && r.code() == "invalid_argument") && !(c.code == "image_not_found" && r.code() == "image_pull_failed") {
			t.Errorf("%s %v: want %s, got %v %s", c.tool, c.args, c.code, r.Meta, r.text())
		}
		if len(r.Structured) > 0 && string(r.Structured) != "null" {
			t.Errorf("%s %v: a refusal carries %s", c.tool, c.args, r.Structured)
		}
		if _, ok := r.Meta["retriable"].(bool); !ok {
			t.Errorf("%s %v: does not say whether to try again: %v", c.tool, c.args, r.Meta)
		}
	}
	timed := a.do("exec", args{"session_id": s, "command": "echo before; sleep 60", "timeout_seconds": 1})
	if x := into[execOut](t, timed); timed.code() != "timed_out" || x.Stdout != "before\n" || x.Status != "timed_out" {
		t.Errorf("a timeout: %v %v", timed.Meta, x)
	}
}
