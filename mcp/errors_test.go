package mcp_test

import (
	"errors"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"caisson/mcp"
	"caisson/sandbox"
	"caisson/sandbox/sandboxtest"
)

// Every kind reaches a client as a code of its own, with its sentence, and
// never with its cause.
func TestEveryKindHasItsCode(t *testing.T) {
	r := newRig(t)
	c := r.dial("inprocess", legacy)
	id := c.ok("session_create", nil).session()["session_id"].(string)
	seen := map[string]sandbox.Kind{}
	for _, kind := range sandbox.Kinds() {
		cause := errors.New("dial tcp 10.1.2.3:2376: canary")
		r.fake.Fail(sandboxtest.OpReadDir, &sandbox.Error{Op: "op", Kind: kind, Field: "f", Text: "a sentence for the caller", RetryAfter: 1500 * time.Millisecond, Err: cause})
		got := c.call("list_files", args{"session_id": id})
		// Both are a server that has no engine to work on.
		if kind == sandbox.KindFenced && got.code == "engine_unavailable" {
			delete(seen, got.code)
		}
		if other, twice := seen[got.code]; got.code == "" || twice {
			t.Errorf("%v: code %q, also of %v", kind, got.code, other)
		}
		seen[got.code] = kind
		if strings.Contains(got.text, "canary") || strings.Contains(got.text, "10.1.2.3") || got.raw.StructuredContent != nil {
			t.Errorf("%v: %s", kind, got.text)
		}
		ref, _ := got.raw.Meta.AdditionalFields["ref"].(string)
		if len(ref) != 24 || !strings.Contains(r.log.String(), "request_id="+ref) {
			t.Errorf("%v: ref %q is not in the log", kind, ref)
		}
		if kind == sandbox.KindInternal {
			if !strings.Contains(got.text, ref) || !strings.Contains(r.log.String(), ref) || strings.Contains(got.text, "a sentence") {
				t.Errorf("internal: %s", got.text)
			}
			continue
		}
		if !strings.Contains(got.text, "a sentence for the caller") || got.field() != "f" || got.raw.Meta.AdditionalFields["retry_after_ms"] != 1500.0 {
			t.Errorf("%v: %s %v", kind, got.text, got.raw.Meta)
		}
		if kind == sandbox.KindSessionLost { // the manager believes it
			r.fake.Fail(sandboxtest.OpReadDir, nil)
			r.fake.Vanish(id)
			id = c.ok("session_create", nil).session()["session_id"].(string)
		}
	}
	r.fake.Fail(sandboxtest.OpReadDir, errors.New("canary of nobody's making"))
	if got := c.want("internal", "list_files", args{"session_id": id}); strings.Contains(got.text, "canary") {
		t.Errorf("%s", got.text)
	}
	r.fake.Fail(sandboxtest.OpReadDir, &sandbox.Error{Op: "op", Kind: sandbox.KindNoSpace})
	if got := c.want("no_space", "list_files", args{"session_id": id}); !strings.Contains(got.text, "disk is full") {
		t.Errorf("an error without a sentence: %s", got.text)
	}
}

// The codes in the tool contract, and no others.
func TestErrorCodesAreAsPublished(t *testing.T) {
	published := strings.Fields(`invalid_argument spec_rejected limit_exceeded busy capacity session_not_found session_lost exec_not_found
		stdin_closed kill_failed file_not_found is_a_directory not_a_directory permission_denied path_escapes_workspace string_not_found tool_unavailable tool_failed
		string_not_unique too_large no_space image_not_found image_pulling image_pull_failed image_unusable workspace_in_use
		workspace_not_found egress_firewall_not_in_force engine_unavailable unknown_outcome not_supported cancelled internal timed_out lost`)
	codes := mcp.AllCodes()
	slices.Sort(published)
	slices.Sort(codes)
	codes = slices.Compact(codes)
	if !slices.Equal(published, codes) {
		t.Errorf("codes are\n%v, published are\n%v", codes, published)
	}
}

type panicking struct{ error }

func (panicking) Is(error) bool { panic("canary in a panic") }

// A panic anywhere below a tool is an internal error with a reference. The log
// says where it was, and neither has its text: it may hold what the call was about.
func TestPanicBecomesAnInternalError(t *testing.T) {
	for _, how := range []string{"inprocess", "http", "sse"} {
		r := newRig(t)
		c := r.dial(how, legacy)
		r.fake.Fail(sandboxtest.OpReadDir, panicking{os.ErrClosed})
		got := c.want("internal", "list_files", nil)
		ref, _ := got.raw.Meta.AdditionalFields["ref"].(string)
		log := r.log.String()
		if strings.Contains(got.text+log, "canary") || ref == "" || !strings.Contains(log, "request_id="+ref) || !strings.Contains(log, "panicking.Is") {
			t.Errorf("%s: %s\n%s", how, got.text, log)
		}
		r.fake.Fail(sandboxtest.OpReadDir, nil)
		c.ok("list_files", nil)
	}
}

// A server whose settings are wrong starts, lists its tools, and says in every
// result what is wrong.
func TestWrongSettingsAreSaidInEveryResult(t *testing.T) {
	r := newRig(t, func(o *mcp.Options) {
		o.Manager = nil
		o.SetupError = errors.New("SANDBOX_DOCKER_HOST is required: set it to the engine's address")
	})
	c := r.dial("inprocess", legacy)
	n := 0
	for name := range r.server.MCP().ListTools() {
		n++
		got := c.want("engine_unavailable", name, nil)
		if !strings.Contains(got.text, "SANDBOX_DOCKER_HOST is required") || got.raw.Meta.AdditionalFields["retriable"] != false {
			t.Errorf("%s: %s", name, got.text)
		}
	}
	if n != 16 {
		t.Errorf("%d tools", n)
	}
}

func TestDeadEngineIsSaidPerCall(t *testing.T) {
	r := newRig(t)
	c := r.dial("inprocess", legacy)
	down := sandbox.Errorf("dial", sandbox.KindUnavailable, "the engine at tcp://engine:2376 cannot be reached: connection refused")
	for _, op := range []string{sandboxtest.OpCreate, sandboxtest.OpWorkspaces, sandboxtest.OpList} {
		r.fake.Fail(op, down)
	}
	for tool, a := range map[string]args{"exec": {"command": "true"}, "session_create": nil, "run": {"command": "true"}, "list_files": nil, "workspace_list": nil, "session_list": nil} {
		if got := c.want("engine_unavailable", tool, a); got.raw.Meta.AdditionalFields["retriable"] != true || !strings.Contains(got.text, "connection refused") {
			t.Errorf("%s: %s", tool, got.text)
		}
	}
	for _, op := range []string{sandboxtest.OpCreate, sandboxtest.OpWorkspaces, sandboxtest.OpList} {
		r.fake.Fail(op, nil)
	}
	c.ok("exec", args{"command": "true"})
}

// What is logged of a call: which tool, in which session, for how long, how it
// ended. Never what was sent or printed, and no handle that could be used.
func TestCallsAreLoggedWithoutContent(t *testing.T) {
	r := newRig(t)
	c := r.dial("inprocess", legacy)
	got := c.ok("exec", args{"command": "echo canary-output", "stdin": "canary-stdin"})
	c.ok("upload", args{"path": "canary-path", "content": "canary-content"})
	c.want("file_not_found", "download", args{"path": "nope"})
	log := r.log.String()
	for _, part := range []string{"tool=exec", "tool=upload", "tool=download", "code=ok", "code=file_not_found", "took=", "session=" + got.str("session_id")[:12]} {
		if !strings.Contains(log, part) {
			t.Errorf("log lacks %q", part)
		}
	}
	for line := range strings.Lines(log) {
		if strings.Contains(line, "tool call") && (strings.Contains(line, "canary") || strings.Contains(line, got.str("session_id")) || strings.Contains(line, got.str("exec_id"))) {
			t.Errorf("log says too much: %s", line)
		}
	}
	if strings.Contains(log, "canary-output") || strings.Contains(log, "canary-content") || strings.Contains(log, "canary-stdin") {
		t.Error("log carries content")
	}
}
