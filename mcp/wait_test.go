package mcp_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	mcpgo "github.com/mark3labs/mcp-go/mcp"

	"caisson/sandbox"
	"caisson/sandbox/sandboxtest"
)

// Without progress no call takes longer than 45 s; the command goes on.
func TestCallsAnswerWithin45Seconds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		inBubble(t, func(c *conn) {
			for _, test := range []struct {
				asked any
				took  time.Duration
				notes string
			}{{nil, 30 * time.Second, ""}, {10, 10 * time.Second, ""}, {45, 45 * time.Second, ""}, {600, 45 * time.Second, "wait_cut"}, {0, 0, ""}} {
				start := time.Now()
				got := c.ok("exec", args{"command": "sleep 10000", "wait_seconds": test.asked})
				if took := time.Since(start); took > test.took || test.took-took > time.Second || got.str("status") != "running" || got.noteCodes() != test.notes {
					t.Errorf("wait_seconds %v: after %v: %v", test.asked, took, got.fields)
				}
			}
			id := c.ok("exec", args{"command": "sleep 100; echo done", "wait_seconds": 0}).str("exec_id")
			start := time.Now()
			if got := c.ok("exec_output", args{"exec_id": id, "wait_seconds": 600}); time.Since(start) > 45*time.Second || got.noteCodes() != "wait_cut" {
				t.Errorf("after %v: %v", time.Since(start), got.fields)
			}
			if got := c.ok("exec_output", args{"exec_id": id, "wait_seconds": 600}); got.noteCodes() != "wait_cut" || got.str("status") != "running" {
				t.Errorf("%v", got.fields)
			}
			if got := c.ok("exec_output", args{"exec_id": id, "wait_seconds": 600}); got.str("stdout") != "done\n" || got.noteCodes() != "" {
				t.Errorf("%v", got.fields)
			}
		})
	})
}

// A create that takes too long is ended too, and says what is not known.
func TestSlowEngineIsNotWaitedForLonger(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		inBubble(t, func(c *conn) {
			release := c.fake.Hold(sandboxtest.OpCreate)
			defer release()
			start := time.Now()
			c.want("unknown_outcome", "session_create", nil)
			if took := time.Since(start); took != 45*time.Second {
				t.Errorf("after %v", took)
			}
		})
	})
}

// watch collects the progress notices of a client.
type watch struct {
	mu      sync.Mutex
	tokens  []any
	values  []float64
	texts   []string
	arrived []time.Time
}

func (w *watch) see(n mcpgo.JSONRPCNotification) {
	if n.Method != "notifications/progress" {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	f := n.Params.AdditionalFields
	w.tokens = append(w.tokens, f["progressToken"])
	w.values = append(w.values, f["progress"].(float64))
	text, _ := f["message"].(string)
	w.texts = append(w.texts, text)
	w.arrived = append(w.arrived, time.Now())
}

// MT-09: progress only for who asked, with the same token, rising, at least
// every 10 s, none after the result; and then a call may last longer.
func TestBugMT09_ProgressKeepsLongCallsAlive(t *testing.T) {
	for _, token := range []any{nil, 7.0, "seven"} {
		synctest.Test(t, func(t *testing.T) {
			inBubble(t, func(c *conn) {
				w := &watch{}
				c.c.OnNotification(w.see)
				var meta *mcpgo.Meta
				if token != nil {
					meta = &mcpgo.Meta{ProgressToken: token}
				}
				start := time.Now()
				got, err := c.try(t.Context(), "exec", args{"command": "echo one; sleep 20; echo two; sleep 100; echo '\x1b[2Kthree'; sleep 30", "wait_seconds": 600}, meta)
				if err != nil {
					t.Fatal(err)
				}
				took := time.Since(start)
				synctest.Wait()
				w.mu.Lock()
				n := len(w.values)
				w.mu.Unlock()
				if token == nil {
					if n != 0 || took > 45*time.Second {
						t.Errorf("%d notices without a token, after %v", n, took)
					}
					return
				}
				if got.str("status") != "exited" || took < 150*time.Second {
					t.Errorf("after %v: %v", took, got.fields)
				}
				w.check(t, token, start, took)
				<-time.After(time.Minute)
				w.mu.Lock()
				defer w.mu.Unlock()
				if len(w.values) != n {
					t.Error("progress after the result")
				}
			})
		})
	}
}

func (w *watch) check(t *testing.T, token any, start time.Time, took time.Duration) {
	t.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	last, at := -1.0, start
	for i, v := range w.values {
		if v <= last || w.tokens[i] != token || w.arrived[i].Sub(at) > 10*time.Second {
			t.Errorf("notice %d: %v after %v, token %v, %v after the one before", i, v, last, w.tokens[i], w.arrived[i].Sub(at))
		}
		last, at = v, w.arrived[i]
	}
	if start.Add(took).Sub(at) > 10*time.Second {
		t.Errorf("silent for the last %v", start.Add(took).Sub(at))
	}
	all := strings.Join(w.texts, "\n")
	for _, line := range []string{"one", "two", `\x1b[2Kthree`} {
		if !strings.Contains(all, line) {
			t.Errorf("progress does not show %q:\n%s", line, all)
		}
	}
}

// Progress over the real transports: rising, and none after the result.
func TestProgressComesBeforeTheResult(t *testing.T) {
	for _, how := range []string{"http", "sse", "inprocess"} {
		for _, version := range []string{legacy, modern} {
			r := newRig(t)
			r.server.Hurry(45*time.Second, 5*time.Millisecond, 10*time.Millisecond)
			c := r.dial(how, version)
			session := c.ok("session_create", nil).session()["session_id"].(string)
			w := &watch{}
			c.c.OnNotification(w.see)
			for i := range 5 {
				token := fmt.Sprintf("t%d", i)
				if _, err := c.try(t.Context(), "exec", args{"session_id": session, "command": "sleep 0.1"}, &mcpgo.Meta{ProgressToken: token}); err != nil {
					t.Fatal(err)
				}
				w.mu.Lock()
				n, last := len(w.tokens), any(nil)
				if n > 0 {
					last = w.tokens[n-1]
				}
				w.mu.Unlock()
				if last != token {
					t.Errorf("%s %s: %d notices when call %d had answered, last of %v", how, version, n, i, last)
				}
			}
			for i := 1; i < len(w.values); i++ {
				if w.tokens[i] == w.tokens[i-1] && w.values[i] <= w.values[i-1] {
					t.Errorf("%v after %v", w.values[i], w.values[i-1])
				}
			}
		}
	}
}

func TestBugMT04_SlowCallsDoNotBlockOthers(t *testing.T) {
	for _, how := range []string{"http", "sse", "inprocess"} {
		r := newRig(t)
		c := r.dial(how, legacy)
		session := c.ok("session_create", nil).session()["session_id"].(string)
		ctx, cancel := context.WithCancel(t.Context())
		var all sync.WaitGroup
		for range 64 {
			all.Go(func() {
				_, _ = c.try(ctx, "exec", args{"session_id": session, "command": "sleep 1000", "wait_seconds": 40}, nil)
			})
		}
		eventually(t, "64 calls wait", func() bool { return r.server.CallsUnderWay() == 64 && r.fake.Running() == 64 })
		if _, err := c.c.ListTools(t.Context(), mcpgo.ListToolsRequest{}); err != nil {
			t.Errorf("%s: %v", how, err)
		}
		if got := c.want("busy", "session_list", nil); got.raw.Meta.AdditionalFields["retriable"] != true {
			t.Errorf("%s", got.text)
		}
		// What takes load off is never refused.
		execs, err := r.manager.Execs(sandbox.Owner{Name: "local"}, session)
		if err != nil {
			t.Fatal(err)
		}
		c.ok("kill", args{"exec_id": execs[0].ID()})
		eventually(t, "one has answered", func() bool { return r.server.CallsUnderWay() < 64 })
		c.ok("session_list", nil)
		c.ok("session_destroy", args{"session_id": session})
		eventually(t, "all have answered", func() bool { return r.server.CallsUnderWay() == 0 })
		cancel()
		all.Wait()
	}
}
