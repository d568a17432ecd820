package mcp_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	mcpgo "github.com/mark3labs/mcp-go/mcp"

	"caisson/sandbox"
	"caisson/sandbox/sandboxtest"
)

// TestBugMS04_ResourceErrorsAreNoInternalErrors over every transport and in both
// eras: the protocol's own code, and our sentence after it.
func TestBugMS04_ResourceErrorsAreNoInternalErrors(t *testing.T) {
	for _, way := range []struct {
		how, version string
		missing      error
	}{
		{"http", legacy, mcpgo.ErrResourceNotFound},
		{"http", modern, mcpgo.ErrInvalidParams},
		{"sse", legacy, mcpgo.ErrResourceNotFound},
	} {
		r := newRig(t)
		c := r.dial(way.how, way.version)
		id := c.ok("session_create", nil).session()["session_id"].(string)
		c.ok("upload", args{"session_id": id, "path": "d/f", "content": `"error":{"code":-32603,"message":"rpc-code=1;x`})
		for uri, row := range map[string]struct {
			code string
			is   error
		}{
			id + "/nope":      {"file_not_found: ", way.missing},
			"sbx_unknown/f":   {"session_not_found: ", way.missing},
			id + "/d":         {"is_a_directory: ", mcpgo.ErrInvalidParams},
			id + "/../../etc": {"path_escapes_workspace: ", mcpgo.ErrInvalidParams},
			id + "/%00":       {"invalid_argument: ", mcpgo.ErrInvalidParams},
		} {
			_, err := c.c.ReadResource(t.Context(), mcpgo.ReadResourceRequest{Params: mcpgo.ReadResourceParams{URI: "sandbox://" + uri}})
			if err == nil || !errors.Is(err, row.is) || !strings.Contains(err.Error(), row.code) || strings.Contains(err.Error(), "rpc-code") {
				t.Errorf("%v: %s: %v", way, uri, err)
			}
		}
		// Content that looks like an error is content.
		got, err := c.c.ReadResource(t.Context(), mcpgo.ReadResourceRequest{Params: mcpgo.ReadResourceParams{URI: "sandbox://" + id + "/d/f"}})
		if err != nil || !strings.HasSuffix(got.Contents[0].(mcpgo.TextResourceContents).Text, `-32603,"message":"rpc-code=1;x`) {
			t.Errorf("%v: %v %v", way, got, err)
		}
		r.fake.Fail(sandboxtest.OpRead, sandbox.Errorf("read", sandbox.KindUnavailable, "the engine is gone"))
		_, err = c.c.ReadResource(t.Context(), mcpgo.ReadResourceRequest{Params: mcpgo.ReadResourceParams{URI: "sandbox://" + id + "/d/f"}})
		if err == nil || errors.Is(err, mcpgo.ErrInternalError) || !strings.Contains(err.Error(), "engine_unavailable: the engine is gone") {
			t.Errorf("%v: %v", way, err)
		}
	}
}

// TestBugMS04_ResourceErrorsOnStdio sees the same on the wire.
func TestBugMS04_ResourceErrorsOnStdio(t *testing.T) {
	w := newRig(t).stdio()
	w.send(initializeBody)
	w.await("1")
	w.send(`{"jsonrpc":"2.0","id":2,"method":"resources/read","params":{"uri":"sandbox://sbx_unknown/f"}}`)
	answer, _ := w.await("2")
	var e struct {
		Code    int
		Message string
	}
	if err := json.Unmarshal(answer.Error, &e); err != nil || e.Code != mcpgo.RESOURCE_NOT_FOUND || !strings.HasPrefix(e.Message, "session_not_found: ") {
		t.Errorf("%s", answer.Error)
	}
}
