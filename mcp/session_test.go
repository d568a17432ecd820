package mcp_test

import (
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"caisson/sandbox"
	"caisson/sandbox/sandboxtest"
)

func (r *result) session() args { return r.fields }

func TestSessionTools(t *testing.T) {
	for _, version := range []string{legacy, modern} {
		r := newRig(t)
		c := r.dial("inprocess", version)
		got := c.ok("session_create", args{
			"image": "other", "network": "egress", "cpu": "0.5", "memory_mb": 256, "pids": 64, "ttl_seconds": 600,
			"env": args{"TOKEN": "canary-value"}, "labels": args{"team": "a"},
		}).session()
		for name, want := range map[string]any{
			"image": "other", "network": "egress", "durability": "ephemeral", "cpu": 0.5, "memory_mb": 256.0, "pids": 64.0,
			"workspace_path": "/workspace", "state": "running", "running_execs": 0.0,
		} {
			if got[name] != want {
				t.Errorf("%s is %v, not %v", name, got[name], want)
			}
		}
		if mustJSON(t, got["env_names"]) != `["TOKEN"]` || mustJSON(t, got["labels"]) != `{"team":"a"}` || strings.Contains(mustJSON(t, got), "canary") {
			t.Errorf("%v", got)
		}
		id := got["session_id"].(string)
		expires, err := time.Parse(time.RFC3339, got["expires_at"].(string))
		if left := time.Until(expires); err != nil || left > 10*time.Minute || left < 9*time.Minute {
			t.Errorf("expires in %v (%v)", left, err)
		}
		if listed := c.ok("session_list", nil); len(listed.list("sessions")) != 1 || listed.list("sessions")[0].(args)["session_id"] != id {
			t.Errorf("%v", listed.fields)
		}
		if one := c.ok("session_list", args{"session_id": id}); len(one.list("sessions")) != 1 {
			t.Errorf("%v", one.fields)
		}
		later := c.ok("session_extend", args{"session_id": id, "ttl_seconds": 3600}).session()
		if at, _ := time.Parse(time.RFC3339, later["expires_at"].(string)); at.Sub(expires) < 49*time.Minute {
			t.Errorf("extended to %v", at)
		}
		if gone := c.ok("session_destroy", args{"session_id": id}); gone.fields["destroyed"] != true || gone.str("workspace") != "deleted" {
			t.Errorf("%v", gone.fields)
		}
		for _, unknown := range []string{id, "sbx_nope", "x"} {
			if gone := c.ok("session_destroy", args{"session_id": unknown}); gone.fields["destroyed"] != false || gone.fields["workspace"] != nil {
				t.Errorf("%v", gone.fields)
			}
			c.want("session_not_found", "session_extend", args{"session_id": unknown})
			c.want("session_not_found", "session_list", args{"session_id": unknown})
			c.want("session_not_found", "exec", args{"session_id": unknown, "command": "true"})
		}
		if strings.Contains(r.log.String(), "canary-value") {
			t.Error("the log carries an environment value")
		}
	}
}

func TestSessionCreateSaysWhatItRefuses(t *testing.T) {
	c := newRig(t).dial("inprocess", legacy)
	for _, test := range []struct {
		arguments args
		code      string
		field     string
	}{
		{args{"durability": "persistent"}, "spec_rejected", "workspace_key"},
		{args{"workspace_key": "a/b"}, "invalid_argument", "workspace_key"},
		{args{"cpu": 0}, "spec_rejected", "cpu"},
		{args{"memory_mb": -1}, "spec_rejected", "memory_mb"},
		{args{"isolation": "vm"}, "spec_rejected", "isolation"},
		{args{"network": "host"}, "invalid_argument", "network"},
		{args{"labels": args{"caisson.owner": "x"}}, "spec_rejected", "labels"},
		{args{"ttl_seconds": 1 << 40}, "spec_rejected", "ttl_seconds"},
	} {
		if got := c.want(test.code, "session_create", test.arguments); got.field() != test.field {
			t.Errorf("%v: field %q: %s", test.arguments, got.field(), got.text)
		}
	}
}

func TestWorkspaceTools(t *testing.T) {
	c := newRig(t).dial("inprocess", legacy)
	first := c.ok("session_create", args{"workspace_key": "main"}).session()
	if first["durability"] != "persistent" || first["workspace_key"] != "main" {
		t.Errorf("%v", first)
	}
	id := first["session_id"].(string)
	c.ok("upload", args{"session_id": id, "path": "keep", "content": "x"})
	c.want("workspace_in_use", "workspace_delete", args{"workspace_key": "main"})
	c.want("workspace_in_use", "session_create", args{"workspace_key": "main", "image": "other"})
	if same := c.ok("session_create", args{"workspace_key": "main"}).session(); same["session_id"] != id {
		t.Errorf("D10: %v", same)
	}
	if gone := c.ok("session_destroy", args{"session_id": id}); gone.str("workspace") != "kept" {
		t.Errorf("%v", gone.fields)
	}
	if list := c.ok("workspace_list", nil); len(list.list("workspaces")) != 1 || list.list("workspaces")[0].(args)["in_use"] != false {
		t.Errorf("%v", list.fields)
	}
	again := c.ok("session_create", args{"workspace_key": "main"}).session()["session_id"].(string)
	if got := c.ok("download", args{"session_id": again, "path": "keep"}); got.str("content") != "x" {
		t.Errorf("%v", got.fields)
	}
	c.ok("session_destroy", args{"session_id": again})
	if got := c.ok("workspace_delete", args{"workspace_key": "main"}); got.fields["deleted"] != true {
		t.Errorf("%v", got.fields)
	}
	c.want("workspace_not_found", "workspace_delete", args{"workspace_key": "main"})
}

func TestDefaultSessionIsOnePerClient(t *testing.T) {
	r := newRig(t)
	a, b := r.dial("http", legacy), r.dial("sse", legacy)
	first := a.ok("exec", args{"command": "true"})
	second := a.ok("list_files", nil)
	other := b.ok("exec", args{"command": "true"})
	if first.fields["session_created"] != true || other.fields["session_created"] != true || first.str("session_id") == other.str("session_id") || second.raw.IsError {
		t.Errorf("%v and %v", first.fields, other.fields)
	}
	if n := len(r.fake.Sessions()); n != 2 {
		t.Errorf("%d sessions", n)
	}
	// The owner is the same: a handle may be named by either.
	if got := b.ok("exec", args{"command": "true", "session_id": first.str("session_id")}); got.fields["session_created"] != nil {
		t.Errorf("%v", got.fields)
	}
	// What was destroyed is nobody's default; that is no loss.
	a.ok("session_destroy", args{"session_id": first.str("session_id")})
	if got := a.ok("exec", args{"command": "true"}); got.fields["session_created"] != true {
		t.Errorf("%v", got.fields)
	}
}

// Whichever tool makes the default session says so.
func TestToolsSayThatTheyMadeTheSession(t *testing.T) {
	c := newRig(t).dial("inprocess", legacy)
	for tool, a := range map[string]args{"list_files": nil, "upload": {"path": "f", "content": "x"}, "exec": {"command": "true"}} {
		got := c.ok(tool, a)
		if got.fields["session_created"] != true || !strings.Contains(got.text, got.str("session_id")) {
			t.Errorf("%s: %v\n%s", tool, got.fields, got.text)
		}
		if again := c.ok(tool, a); again.fields["session_created"] != nil {
			t.Errorf("%s: %v", tool, again.fields)
		}
		c.ok("session_destroy", args{"session_id": got.str("session_id")})
	}
}

func TestFirstCallsAtOnceMakeOneDefaultSession(t *testing.T) {
	r := newRig(t)
	c := r.dial("inprocess", legacy)
	release := r.fake.Hold(sandboxtest.OpCreate)
	var all sync.WaitGroup
	created := make(chan bool, 8)
	for range cap(created) {
		all.Go(func() { created <- c.ok("exec", args{"command": "true"}).fields["session_created"] == true })
	}
	eventually(t, "all calls wait", func() bool { return r.server.CallsUnderWay() == cap(created) })
	release()
	all.Wait()
	close(created)
	n := 0
	for made := range created {
		if made {
			n++
		}
	}
	if n != 1 || len(r.fake.Sessions()) != 1 {
		t.Errorf("%d calls say that they made it, %d sessions", n, len(r.fake.Sessions()))
	}
}

// A default session that is lost is said so once; the next call makes another.
func TestLostDefaultSessionIsSaidOnce(t *testing.T) {
	for _, tool := range []struct {
		name      string
		arguments args
	}{{"exec", args{"command": "true"}}, {"list_files", nil}, {"download", args{"path": "f"}}} {
		r := newRig(t)
		c := r.dial("inprocess", legacy)
		id := c.ok("exec", args{"command": "true"}).str("session_id")
		c.ok("upload", args{"path": "f", "content": ""})
		r.fake.Vanish(id)
		got := c.want("session_lost", tool.name, tool.arguments)
		if got.raw.Meta.AdditionalFields["retriable"] != true || !strings.Contains(got.text, "makes a new default session") {
			t.Errorf("%s", got.text)
		}
		if again := c.ok("exec", args{"command": "true"}); again.fields["session_created"] != true || again.str("session_id") == id {
			t.Errorf("%v", again.fields)
		}
		// Named, it stays lost, with the reason.
		if named := c.want("session_lost", "exec", args{"command": "true", "session_id": id}); named.raw.Meta.AdditionalFields["retriable"] != false {
			t.Errorf("%s", named.text)
		}
	}
}

// A client of the stateless protocol over HTTP has no identity of its own: an
// empty session id must never key anything that strangers could share.
func TestStatelessClientMustNameItsSession(t *testing.T) {
	r := newRig(t)
	c := r.dial("http", modern)
	for _, tool := range []string{"exec", "list_files"} {
		a := args{}
		if tool == "exec" {
			a["command"] = "true"
		}
		if got := c.want("invalid_argument", tool, a); got.field() != "session_id" || !strings.Contains(got.text, "session_create") {
			t.Errorf("%s", got.text)
		}
	}
	if n := len(r.fake.Sessions()); n != 0 {
		t.Errorf("%d sessions were made", n)
	}
	id := c.ok("session_create", nil).session()["session_id"].(string)
	if got := c.ok("exec", args{"command": "echo hi", "session_id": id}); got.str("stdout") != "hi\n" {
		t.Errorf("%v", got.fields)
	}
	c.ok("run", args{"command": "true"})
	for _, empty := range []string{"", " "} {
		if got := c.call("exec", args{"command": "true", "session_id": empty}); !got.raw.IsError {
			t.Errorf("session_id %q: %s", empty, got.text)
		}
	}
}

// T47: a foreign or made-up handle is not found, in the same words.
func TestAttackT47_GuessedHandlesAreNotFound(t *testing.T) {
	r := newRig(t)
	c := r.dial("inprocess", legacy)
	other := sandbox.Owner{Name: "somebody else", Principal: true}
	info, err := r.manager.Create(t.Context(), sandbox.Spec{Owner: other}, nil)
	if err != nil {
		t.Fatal(err)
	}
	exec, err := r.manager.StartExec(t.Context(), other, info.ID, sandbox.ExecSpec{Argv: []string{"sleep", "1000"}})
	if err != nil {
		t.Fatal(err)
	}
	guess := func(session, execID string) []string {
		return []string{
			c.want("session_not_found", "exec", args{"session_id": session, "command": "true"}).text,
			c.want("session_not_found", "upload", args{"session_id": session, "path": "f", "content": ""}).text,
			c.want("session_not_found", "download", args{"session_id": session, "path": "f"}).text,
			c.want("session_not_found", "edit_file", args{"session_id": session, "path": "f", "old_string": "a", "new_string": "b"}).text,
			c.want("session_not_found", "list_files", args{"session_id": session}).text,
			c.want("session_not_found", "session_list", args{"session_id": session}).text,
			c.want("session_not_found", "session_extend", args{"session_id": session}).text,
			c.want("session_not_found", "exec_list", args{"session_id": session}).text,
			c.want("exec_not_found", "exec_output", args{"exec_id": execID}).text,
			c.want("exec_not_found", "exec_input", args{"exec_id": execID, "data": "x"}).text,
			c.want("exec_not_found", "kill", args{"exec_id": execID}).text,
		}
	}
	foreign, none := guess(info.ID, exec.ID()), guess(sandbox.NewSessionID(), sandbox.NewExecID())
	if mustJSON(t, foreign) != mustJSON(t, none) {
		t.Errorf("a foreign handle answers differently from none:\n%v\n%v", foreign, none)
	}
	if got := c.ok("session_destroy", args{"session_id": info.ID}); got.fields["destroyed"] != false {
		t.Error("a foreign session was destroyed")
	}
	for range 1000 {
		c.want("session_not_found", "session_list", args{"session_id": sandbox.NewSessionID()})
	}
	if listed := c.ok("session_list", nil); len(listed.list("sessions")) != 0 {
		t.Errorf("%v", listed.fields)
	}
	if exec.View().Status != sandbox.StatusRunning {
		t.Error("the other owner's command was touched")
	}
}

// MT-05: an explicit end of a client session ends its default session, which no
// one else was told of; a session that was asked for stays for its idle time.
func TestBugMT05_DeleteEndsTheDefaultSession(t *testing.T) {
	r := newRig(t)
	web := r.web()
	initialize := func() string {
		response, _ := post(t, web, "/mcp", `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`)
		return response.Header.Get("Mcp-Session-Id")
	}
	tool := func(session, name, arguments string) string {
		_, body := post(t, web, "/mcp", `{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"`+name+`","arguments":`+arguments+`}}`, "Mcp-Session-Id", session)
		return body
	}
	client := initialize()
	tool(client, "exec", `{"command":"true"}`)
	tool(client, "session_create", `{}`)
	if n := len(r.fake.Sessions()); n != 2 {
		t.Fatalf("%d sessions", n)
	}
	if response, _ := send(t, web, http.MethodDelete, "/mcp", "", "Mcp-Session-Id", client); response.StatusCode != http.StatusOK {
		t.Errorf("DELETE: %s", response.Status)
	}
	eventually(t, "the default session is gone", func() bool { return len(r.fake.Sessions()) == 1 })
	if response, body := post(t, web, "/mcp", `{"jsonrpc":"2.0","id":3,"method":"tools/list"}`, "Mcp-Session-Id", client); response.StatusCode != http.StatusNotFound {
		t.Errorf("after DELETE: %s %s", response.Status, body)
	}
}

func TestBugMT05_SilentClientsAreForgotten(t *testing.T) {
	r := newRig(t)
	r.server.IdleAfter(2 * time.Second)
	web := r.web()
	for range 200 {
		post(t, web, "/mcp", `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`)
	}
	if n := r.server.ClientSessions(); n != 200 {
		t.Errorf("%d client sessions", n)
	}
	eventually(t, "silent clients are forgotten", func() bool { return r.server.ClientSessions() == 0 })
}
