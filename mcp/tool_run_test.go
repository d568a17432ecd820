package mcp_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	mcpgo "github.com/mark3labs/mcp-go/mcp"

	"caisson/sandbox"
	"caisson/sandbox/sandboxtest"
)

func TestRunLeavesNothingBehind(t *testing.T) {
	for _, how := range []string{"inprocess", "http"} {
		for _, version := range []string{legacy, modern} {
			r := newRig(t)
			c := r.dial(how, version)
			got := c.ok("run", args{
				"command": "cat in.txt; cat; env K; exit 4", "stdin": "two\n", "env": args{"K": "three"},
				"files":   []args{{"path": "in.txt", "content": "one\n"}, {"path": "out/bin", "content": "/w==", "encoding": "base64"}},
				"outputs": []string{"in.txt", "out/bin", "nope"}, "network": "none", "cpu": 1, "memory_mb": 128,
			})
			if got.str("stdout") != "one\ntwo\nthree\n" || got.num("exit_code") != 4 || got.noteCodes() != "outputs_missing" {
				t.Errorf("%v", got.fields)
			}
			want := `[{"content":"one\n","encoding":"utf-8","path":"in.txt"},{"content":"/w==","encoding":"base64","path":"out/bin"}]`
			if outputs := mustJSON(t, got.list("outputs")); outputs != want {
				t.Errorf("%s", outputs)
			}
			if !strings.Contains(got.text, `file "in.txt", 4 bytes`) || strings.Contains(got.text, "/w==") || !strings.Contains(got.text, `"nope": no such file`) {
				t.Errorf("%s", got.text)
			}
			if n := len(r.fake.Sessions()); n != 0 {
				t.Errorf("%d sessions left", n)
			}
			// Its output stays readable, as every exec's.
			if again := c.ok("exec_output", args{"exec_id": got.str("exec_id"), "stdout_offset": 0}); again.str("stdout") != "one\ntwo\nthree\n" {
				t.Errorf("%v", again.fields)
			}
		}
	}
}

func TestRunEndsItsSessionHoweverItFails(t *testing.T) {
	r := newRig(t)
	c := r.dial("inprocess", legacy)
	sentence := func(kind sandbox.Kind) error { return sandbox.Errorf("op", kind, "a sentence") }
	for _, test := range []struct {
		op   string
		kind sandbox.Kind
		code string
	}{
		{sandboxtest.OpCreate, sandbox.KindImageNotFound, "image_not_found"},
		{sandboxtest.OpWrite, sandbox.KindNoSpace, "no_space"},
		{sandboxtest.OpStart, sandbox.KindImageUnusable, "image_unusable"},
		{sandboxtest.OpStart, sandbox.KindUnavailable, "engine_unavailable"},
	} {
		r.fake.Fail(test.op, sentence(test.kind))
		c.want(test.code, "run", args{"command": "true", "files": []args{{"path": "a", "content": "b"}}})
		r.fake.Fail(test.op, nil)
		if n := len(r.fake.Sessions()); n != 0 {
			t.Errorf("%s: %d sessions left", test.op, n)
		}
	}
	r.fake.Fail(sandboxtest.OpStart, panicking{context.Canceled})
	c.want("internal", "run", args{"command": "true"})
	r.fake.Fail(sandboxtest.OpStart, nil)
	for _, wrong := range []args{{}, {"command": "a", "argv": []string{"b"}}, {"command": "true", "shell": "bash"}, {"command": "true", "files": []args{{"path": "../x", "content": ""}}}} {
		if got := c.call("run", wrong); got.code != "invalid_argument" && got.code != "path_escapes_workspace" {
			t.Errorf("%v: %s", wrong, got.text)
		}
	}
	got := c.want("lost", "run", args{"command": "echo x; cut"})
	if got.str("stdout") != "x\n" || got.list("outputs") == nil {
		t.Errorf("%v", got.fields)
	}
	if n := len(r.fake.Sessions()); n != 0 {
		t.Errorf("%d sessions left", n)
	}
	// An engine that does not destroy is said so, beside the result.
	r.fake.Fail(sandboxtest.OpDestroy, sentence(sandbox.KindUnavailable))
	if got := c.ok("run", args{"command": "echo x"}); !strings.Contains(got.noteCodes(), "still_destroying") {
		t.Errorf("%v", got.fields)
	}
	r.fake.Fail(sandboxtest.OpDestroy, nil)
}

func TestCancelledRunEndsItsSession(t *testing.T) {
	r := newRig(t)
	for _, how := range []string{"inprocess", "http", "sse"} {
		c := r.dial(how, legacy)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() {
			defer close(done)
			_, _ = c.try(ctx, "run", args{"command": "sleep 1000"}, nil)
		}()
		eventually(t, "the command runs", func() bool { return r.fake.Running() == 1 })
		cancel()
		<-done
		if how == "sse" {
			_ = c.c.Close()
		}
		eventually(t, how+": the session is gone", func() bool { return len(r.fake.Sessions()) == 0 && r.server.CallsUnderWay() == 0 })
	}
}

// run has to end within the call: 40 s without progress, or what was asked for
// with it.
func TestRunFitsItsTimeoutIntoTheCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		inBubble(t, func(c *conn) {
			for _, test := range []struct {
				asked any
				limit time.Duration
				notes string
			}{{nil, 40 * time.Second, ""}, {3, 3 * time.Second, ""}, {600, 40 * time.Second, "timeout_cut"}} {
				start := time.Now()
				got := c.want("timed_out", "run", args{"command": "echo x; sleep 1000", "timeout_seconds": test.asked})
				if took := time.Since(start); took < test.limit || took > test.limit+2*time.Second || got.str("stdout") != "x\n" || got.noteCodes() != test.notes {
					t.Errorf("timeout_seconds %v: after %v: %v", test.asked, took, got.fields)
				}
			}
			start := time.Now()
			got, err := c.try(t.Context(), "run", args{"command": "sleep 200", "timeout_seconds": 250}, &mcpgo.Meta{ProgressToken: "p"})
			if err != nil || got.str("status") != "exited" || time.Since(start) < 200*time.Second {
				t.Errorf("with progress, after %v: %v %v", time.Since(start), got, err)
			}
		})
	})
}

func TestRunOutputsAreBounded(t *testing.T) {
	c := newRig(t).dial("inprocess", legacy)
	three := base64.StdEncoding.EncodeToString(bytes.Repeat([]byte{0xff}, 3<<20))
	files := []args{{"path": "a", "content": three, "encoding": "base64"}, {"path": "b", "content": three, "encoding": "base64"}, {"path": "c", "content": strings.Repeat("é", 300_000)}}
	got := c.ok("run", args{"command": "true", "files": files, "outputs": []string{"a", "b", "a", "c"}})
	if len(got.list("outputs")) != 3 || len(got.text) > 500_000 || !strings.Contains(got.text, "100000 more characters are in the structured result") || got.noteCodes() != "outputs_missing" || !strings.Contains(got.text, "too large") {
		t.Errorf("%d outputs, notes %s", len(got.list("outputs")), got.noteCodes())
	}
}
