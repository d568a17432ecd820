package mcp_test

import (
	"bufio"
	"context"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"caisson/sandbox"
)

// ways are how a principal may connect.
var ways = [...]struct{ how, version string }{{"http", legacy}, {"http", modern}, {"sse", legacy}}

func TestAttackT44_WorkspacesOfAnotherAreNotThere(t *testing.T) {
	for _, way := range ways {
		s := newShared(t, "")
		a, b := s.as(tokenA, way.how, way.version), s.as(tokenB, way.how, way.version)
		mine := a.ok("session_create", args{"workspace_key": "main"}).session()["session_id"].(string)
		a.ok("upload", args{"session_id": mine, "path": "secret", "content": "of a"})
		if got := b.ok("workspace_list", nil); len(got.list("workspaces")) != 0 {
			t.Errorf("%v: b sees %v", way, got.fields)
		}
		foreign, none := b.want("workspace_not_found", "workspace_delete", args{"workspace_key": "main"}), b.want("workspace_not_found", "workspace_delete", args{"workspace_key": "none"})
		if strings.ReplaceAll(foreign.text, "main", "none") != none.text {
			t.Errorf("%v: %q and %q", way, foreign.text, none.text)
		}
		// The same key is b's own workspace, and empty.
		theirs := b.ok("session_create", args{"workspace_key": "main"}).session()["session_id"].(string)
		if theirs == mine {
			t.Fatalf("%v: b was given a's session", way)
		}
		b.want("file_not_found", "download", args{"session_id": theirs, "path": "secret"})
		b.ok("session_destroy", args{"session_id": theirs})
		b.ok("workspace_delete", args{"workspace_key": "main"})
		if got := a.ok("download", args{"session_id": mine, "path": "secret"}); got.str("content") != "of a" {
			t.Errorf("%v: a's file is %q", way, got.str("content"))
		}
		a.ok("session_destroy", args{"session_id": mine})
	}
}

// What another has looks like what never was, over every transport and in both
// eras (T45), and the client of the stateless protocol has a default session of
// its principal's own.
func TestAttackT47_AttackT45_HandlesOfAnotherAreUnknown(t *testing.T) {
	for _, way := range ways {
		s := newShared(t, "")
		a, b := s.as(tokenA, way.how, way.version), s.as(tokenB, way.how, way.version)
		session := a.ok("session_create", nil).session()["session_id"].(string)
		exec := a.ok("exec", args{"session_id": session, "command": "sleep 1000", "wait_seconds": 0}).str("exec_id")
		guess := func(session, exec string) string {
			all := []string{
				b.want("session_not_found", "exec", args{"session_id": session, "command": "true"}).text,
				b.want("session_not_found", "upload", args{"session_id": session, "path": "f", "content": ""}).text,
				b.want("session_not_found", "download", args{"session_id": session, "path": "f"}).text,
				b.want("session_not_found", "edit_file", args{"session_id": session, "path": "f", "old_string": "a", "new_string": "b"}).text,
				b.want("session_not_found", "list_files", args{"session_id": session}).text,
				b.want("session_not_found", "session_extend", args{"session_id": session}).text,
				b.want("session_not_found", "exec_list", args{"session_id": session}).text,
				b.want("exec_not_found", "exec_output", args{"exec_id": exec}).text,
				b.want("exec_not_found", "exec_input", args{"exec_id": exec, "data": "x"}).text,
				b.want("exec_not_found", "kill", args{"exec_id": exec}).text,
				mustJSON(t, b.ok("session_destroy", args{"session_id": session}).fields["destroyed"]),
			}
			_, err := b.c.ReadResource(t.Context(), readRequest("sandbox://"+session+"/f"))
			if err == nil {
				t.Fatalf("%v: b reads a's file", way)
			}
			return strings.NewReplacer(session, "S", exec, "E").Replace(strings.Join(append(all, err.Error()), "\n"))
		}
		if foreign, none := guess(session, exec), guess(sandbox.NewSessionID(), sandbox.NewExecID()); foreign != none {
			t.Errorf("%v: a foreign handle answers\n%s\none that never was\n%s", way, foreign, none)
		}
		if got := a.ok("exec_output", args{"exec_id": exec}); got.str("status") != "running" {
			t.Errorf("%v: a's command is %v", way, got.fields)
		}
		// Default sessions are never shared.
		a.ok("exec", args{"command": "echo a > mark"})
		if got := b.ok("exec", args{"command": "cat mark"}); strings.Contains(got.str("stdout"), "a") {
			t.Errorf("%v: b works in a's default session", way)
		}
		a.ok("session_destroy", args{"session_id": session})
	}
}

// A foreign handle takes as long as an unknown one: it goes the same way.
func TestAttackT47_AForeignHandleTakesAsLongAsNone(t *testing.T) {
	s := newShared(t, "", unlimited)
	a, b := s.as(tokenA, "http", legacy), s.as(tokenB, "http", legacy)
	session := a.ok("session_create", nil).session()["session_id"].(string)
	unknown := sandbox.NewSessionID()
	var took [2][]time.Duration
	for range 1000 {
		for which, id := range []string{session, unknown} {
			began := time.Now()
			b.want("session_not_found", "session_extend", args{"session_id": id})
			took[which] = append(took[which], time.Since(began))
		}
	}
	var median [2]time.Duration
	for i := range took {
		slices.Sort(took[i])
		median[i] = took[i][len(took[i])/2]
	}
	if low, high := min(median[0], median[1]), max(median[0], median[1]); high > low*3/2 && high-low > 200*time.Microsecond {
		t.Errorf("foreign %v, unknown %v", median[0], median[1])
	}
}

func TestAttackT48_AnothersProtocolSession(t *testing.T) {
	s := newShared(t, "")
	session := s.initialized(tokenA)
	list := `{"jsonrpc":"2.0","id":"q","method":"tools/list"}`
	run := `{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"exec","arguments":{"command":"true"}}}`
	if response, body := post(t, s.site, "/mcp", run, "Mcp-Session-Id", session, "Authorization", "Bearer "+tokenA); response.StatusCode != http.StatusOK {
		t.Fatalf("%s %s", response.Status, body)
	}
	for _, id := range []string{session, strings.Repeat("0", 32)} {
		for _, method := range []string{http.MethodPost, http.MethodGet, http.MethodDelete} {
			response, body := send(t, s.site, method, "/mcp", list, "Mcp-Session-Id", id, "Authorization", "Bearer "+tokenB, "Last-Event-ID", "1")
			if _, text := rpcError(t, body); response.StatusCode != http.StatusNotFound || !strings.Contains(text, "no such client session") {
				t.Errorf("%s: %s %s", method, response.Status, body)
			}
		}
		// The stateless protocol has no sessions to end.
		for _, method := range []string{http.MethodGet, http.MethodDelete} {
			if response, body := send(t, s.site, method, "/mcp", "", "Mcp-Session-Id", id, "Authorization", "Bearer "+tokenB, "MCP-Protocol-Version", modern); response.StatusCode < 400 {
				t.Errorf("%s: %s %s", method, response.Status, body)
			}
		}
	}
	if response, body := post(t, s.site, "/mcp", run, "Mcp-Session-Id", session, "Authorization", "Bearer "+tokenA); response.StatusCode != http.StatusOK || strings.Contains(body, "session_created") {
		t.Errorf("a's session has suffered: %s %s", response.Status, body)
	}
	// An SSE session takes the messages of its own principal alone.
	stream, endpoint := s.sse(t, tokenA)
	defer func() { _ = stream.Body.Close() }()
	response, foreign := post(t, s.site, endpoint, list, "Authorization", "Bearer "+tokenB)
	_, none := post(t, s.site, "/message?sessionId="+strings.Repeat("0", 32), list, "Authorization", "Bearer "+tokenB)
	if response.StatusCode != http.StatusBadRequest || foreign != none {
		t.Errorf("%s: %s and %s", response.Status, foreign, none)
	}
	if response, body := post(t, s.site, endpoint, list, "Authorization", "Bearer "+tokenA); response.StatusCode != http.StatusAccepted {
		t.Errorf("a's own message: %s %s", response.Status, body)
	}
}

// sse opens a stream of a principal and returns it with where its messages go.
func (s *shared) sse(t *testing.T, token string) (*http.Response, string) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(cancel)
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, s.site.URL+"/sse", nil)
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Authorization", "Bearer "+token)
	response, err := s.site.Client().Do(request)
	if err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(response.Body)
	for lines.Scan() {
		if endpoint, ok := strings.CutPrefix(lines.Text(), "data: "); ok {
			return response, endpoint
		}
	}
	t.Fatalf("%s: no endpoint", response.Status)
	return nil, ""
}

// Wrong tokens are refused everywhere, before the engine is asked, and are in no
// log; health is open to anybody.
func TestAttackT46_NobodyGetsInWithoutAToken(t *testing.T) {
	s := newShared(t, "")
	session := s.initialized(tokenA)
	wrong := "a-wrong-token-0123456789"
	run := `{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"session_create","arguments":{}}}`
	for _, e := range []struct{ method, path string }{
		{http.MethodPost, "/mcp"}, {http.MethodGet, "/mcp"}, {http.MethodDelete, "/mcp"}, {http.MethodPut, "/mcp"}, {http.MethodGet, "/sse"}, {http.MethodPost, "/message?sessionId=" + session},
	} {
		for _, authorization := range []string{"", "Bearer " + wrong} {
			headers := []string{"Mcp-Session-Id", session}
			if authorization != "" {
				headers = append(headers, "Authorization", authorization)
			}
			response, body := send(t, s.site, e.method, e.path, run, headers...)
			challenge := response.Header.Get("WWW-Authenticate")
			locked := response.StatusCode == http.StatusTooManyRequests && authorization != ""
			if response.StatusCode != http.StatusUnauthorized && !locked || !locked && !strings.HasPrefix(challenge, "Bearer ") {
				t.Errorf("%s %s with %q: %s %q %s", e.method, e.path, authorization, response.Status, challenge, body)
			}
			if strings.Contains(body+challenge, wrong) {
				t.Errorf("the answer repeats the token: %s", body)
			}
		}
	}
	response, body := post(t, s.site, "/mcp?token="+tokenA, run, "Mcp-Session-Id", session)
	if response.StatusCode != http.StatusBadRequest || strings.Contains(body, tokenA) {
		t.Errorf("a token in the address: %s %s", response.Status, body)
	}
	if n := len(s.fake.Sessions()); n != 0 {
		t.Errorf("%d sessions were made", n)
	}
	for _, path := range []string{"/healthz", "/readyz"} {
		if response, body := send(t, s.site, http.MethodGet, path, ""); response.StatusCode != http.StatusOK {
			t.Errorf("%s: %s %s", path, response.Status, body)
		}
	}
	for _, secret := range []string{wrong, tokenA, tokenB} {
		if strings.Contains(s.log.String(), secret) {
			t.Errorf("the log holds %q", secret)
		}
	}
}

// A principal that is taken out is refused from its next request on, and its
// streams are cut. Its sandbox sessions stay until they are idle.
func TestAPrincipalThatIsTakenOutIsCut(t *testing.T) {
	s := newShared(t, "")
	session := s.initialized(tokenA)
	s.as(tokenA, "http", legacy).ok("session_create", nil)
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, s.site.URL+"/mcp", nil)
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Authorization", "Bearer "+tokenA)
	request.Header.Set("Mcp-Session-Id", session)
	stream, err := s.site.Client().Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = stream.Body.Close() }()
	old, _ := s.sse(t, tokenA)
	theirs, _ := s.sse(t, tokenB)
	defer func() { _ = theirs.Body.Close() }()
	s.set(t, entryOf("b", tokenB, ""))
	if err := s.keeper.Reload(); err != nil {
		t.Fatal(err)
	}
	for _, body := range []*http.Response{stream, old} {
		if n, err := discard(body); err != nil && ctx.Err() != nil {
			t.Errorf("the stream goes on: %d bytes, %v", n, err)
		}
	}
	if response, body := post(t, s.site, "/mcp", initializeBody, "Authorization", "Bearer "+tokenA); response.StatusCode != http.StatusUnauthorized {
		t.Errorf("%s %s", response.Status, body)
	}
	if response, _ := post(t, s.site, "/mcp", initializeBody, "Authorization", "Bearer "+tokenB); response.StatusCode != http.StatusOK {
		t.Errorf("b: %s", response.Status)
	}
	if n := len(s.fake.Sessions()); n != 1 {
		t.Errorf("%d sessions", n)
	}
	// One that comes back finds its sessions, and no protocol session.
	s.set(t, entryOf("a", tokenA, "")+entryOf("b", tokenB, ""))
	if err := s.keeper.Reload(); err != nil {
		t.Fatal(err)
	}
	if response, _ := send(t, s.site, http.MethodDelete, "/mcp", "", "Authorization", "Bearer "+tokenA, "Mcp-Session-Id", session); response.StatusCode != http.StatusNotFound {
		t.Errorf("the old protocol session: %s", response.Status)
	}
	if got := s.as(tokenA, "http", legacy).ok("session_list", nil); len(got.list("sessions")) != 1 {
		t.Errorf("%v", got.fields)
	}
}
