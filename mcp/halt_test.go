package mcp_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"caisson/mcp"
	"caisson/sandbox"
	"caisson/sandbox/sandboxtest"
)

// T57: everything ends, calls under way included, nothing is begun, and whoever asks is
// told why; what was done is on record.
func TestAttackT57_AHaltEndsEverySessionAndRefusesNewOnes(t *testing.T) {
	r, path := audited(t, func(o *mcp.Options) { o.Ready = o.Manager.Ready })
	web := r.web()
	c := r.dial("http", legacy)
	for range 15 {
		c.ok("session_create", nil)
	}
	id := c.ok("session_create", nil).session()["session_id"].(string)
	answered := make(chan *result, 1)
	go func() {
		got, _ := c.try(t.Context(), "exec", args{"session_id": id, "command": "sleep 1000"}, nil)
		answered <- got
	}()
	eventually(t, "the command runs", func() bool { return r.fake.Running() == 1 })
	if _, body := send(t, web, http.MethodGet, "/readyz", ""); body != "ready\n" {
		t.Error(body)
	}
	began := time.Now()
	ended, err := r.server.Halt(t.Context())
	if err != nil || ended != 16 || time.Since(began) > 10*time.Second || len(r.fake.Sessions()) != 0 {
		t.Errorf("%d ended in %v, %v left: %v", ended, time.Since(began), r.fake.Sessions(), err)
	}
	select {
	case got := <-answered:
		if got == nil || got.str("status") != "lost" && got.code == "" {
			t.Errorf("the call under way: %+v", got)
		}
	case <-time.After(time.Minute):
		t.Error("the call under way goes on")
	}
	for tool, a := range map[string]args{"session_create": nil, "exec": {"command": "true"}, "run": {"command": "true"}} {
		if got := c.want("engine_unavailable", tool, a); !strings.Contains(got.text, "stopped by the operator") || got.raw.Meta.AdditionalFields["retriable"] != false {
			t.Errorf("%s: %s %v", tool, got.text, got.raw.Meta)
		}
	}
	if got := c.want("session_lost", "exec", args{"session_id": id, "command": "true"}); strings.Contains(got.text, "session_create") || !strings.Contains(got.text, "operator") {
		t.Errorf("a session that was ended: %s", got.text)
	}
	if response, body := send(t, web, http.MethodGet, "/readyz", ""); response.StatusCode != http.StatusServiceUnavailable || body != "not ready: halted\n" {
		t.Errorf("%s %s", response.Status, body)
	}
	if response, _ := send(t, web, http.MethodGet, "/healthz", ""); response.StatusCode != http.StatusOK {
		t.Error(response.Status)
	}
	halts := 0
	for _, e := range ends(t, path) {
		if e.str("action") == "halt" && e["count"] == 16.0 && e.str("code") == "ok" && e["tool"] == nil {
			halts++
		}
	}
	if halts != 1 || !strings.Contains(r.log.String(), "halted by the operator") || !strings.Contains(metricsOf(t, r), "caisson_halted 1") {
		t.Errorf("%d records of it\n%s", halts, r.log)
	}
}

// The switch answers in its time when the engine does not, says that something may be
// left, and needs no audit log.
func TestAttackT57_AHaltOnAnEngineThatFails(t *testing.T) {
	r := newRig(t, func(o *mcp.Options) {
		audit, err := mcp.NewAuditLog(t.TempDir()+"/audit", nil)
		if err != nil {
			t.Fatal(err)
		}
		_ = audit.Close() // cannot be written any more
		o.Audit = audit
	})
	if _, err := r.manager.Create(t.Context(), sandbox.Spec{Owner: sandbox.Owner{Name: "local"}}, nil); err != nil {
		t.Fatal(err)
	}
	r.fake.Fail(sandboxtest.OpDestroy, sandbox.Errorf("destroy", sandbox.KindUnavailable, "down"))
	began := time.Now()
	ended, err := r.server.Halt(t.Context())
	if err == nil || ended != 0 || time.Since(began) > 12*time.Second {
		t.Errorf("%d ended in %v: %v", ended, time.Since(began), err)
	}
	if !strings.Contains(r.log.String(), "level=ERROR msg=\"halted by the operator") {
		t.Errorf("%s", r.log)
	}
	r.fake.Fail(sandboxtest.OpDestroy, nil)
	if ended, err := r.server.Halt(t.Context()); err != nil || ended != 1 {
		t.Errorf("again: %d %v", ended, err)
	}
}

// A tool of the manifest is refused like any other, and not run.
func TestAttackT57_AHaltRefusesDeclaredTools(t *testing.T) {
	box := withTools("greet")
	r := newRig(t, func(o *mcp.Options) { o.Toolbox = box })
	c := r.dial("inprocess", legacy)
	c.ok("greet", nil)
	if _, err := r.server.Halt(t.Context()); err != nil {
		t.Fatal(err)
	}
	got := c.want("engine_unavailable", "greet", nil)
	if !strings.Contains(got.text, "stopped by the operator") || got.raw.IsError && got.raw.Meta.AdditionalFields["retriable"] != false {
		t.Errorf("%s %v", got.text, got.raw.Meta)
	}
	if n := len(box.calls); n != 1 {
		t.Errorf("%d calls", n)
	}
}
