package e2e_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// rounds calls every tool once or more, with good and with wrong arguments, and
// ends with nothing left. A failed call is an answer too.
func (w *wire) rounds(ctx context.Context, t *testing.T) {
	t.Helper()
	a := &actor{t: t, conn: w}
	made := a.do("session_create", args{})
	var session listed
	_ = unmarshal(made, &session)
	id := session.SessionID
	x := execOut{}
	_ = unmarshal(a.do("exec", args{"session_id": id, "command": "printf 'a\\033[1mb\\r\\n'; echo e >&2; cat", "stdin_open": true, "wait_seconds": 0}), &x)
	for _, c := range []struct {
		tool string
		args any
	}{
		{"exec_input", args{"exec_id": x.ExecID, "data": "in\n", "close": true}},
		{"exec_output", args{"exec_id": x.ExecID, "wait_seconds": 5}},
		{"exec_list", args{}},
		{"kill", args{"exec_id": x.ExecID}},
		{"upload", args{"session_id": id, "path": "f", "content": "one\n"}},
		{"edit_file", args{"session_id": id, "path": "f", "old_string": "one", "new_string": "two"}},
		{"download", args{"session_id": id, "path": "f"}},
		{"list_files", args{"session_id": id}},
		{"session_list", args{}},
		{"session_extend", args{"session_id": id, "ttl_seconds": 4000}},
		{"workspace_list", args{}},
		{"workspace_delete", args{"workspace_key": "nobody-has-this"}},
		{"run", args{"command": "echo once", "outputs": []string{"none"}}},
		{"session_create", args{"image": "nobody-has-this:latest"}},
		{"exec", args{"session_id": id, "command": 5}},
		{"exec", args{"session_id": "sbx_" + strings.Repeat("a", 26), "command": "x"}},
		{"session_destroy", args{"session_id": id}},
	} {
		if _, err := w.call(ctx, c.tool, c.args); err != nil {
			t.Errorf("%s: %v", c.tool, err)
		}
	}
}

// pure fails a test whose server has written anything but JSON-RPC messages.
func pure(t *testing.T, w *wire) {
	t.Helper()
	wrong, lines := w.impure()
	if len(wrong) > 0 || lines == 0 {
		t.Errorf("%d lines, not JSON-RPC: %q", lines, wrong)
	}
}

func TestBugMT03_StandardOutputIsJSONRPCAndNothingElse(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		l    launch
	}{
		{"a good engine", launch{}},
		{"a dead engine", launch{env: []string{"SANDBOX_DOCKER_HOST=tcp://127.0.0.1:1"}}},
		{"wrong settings", launch{env: []string{"SANDBOX_DOCKER_HOST=ftp://x", "SANDBOX_DOCKER_DEFAULT_CPU=-1"}}},
		{"standard error that nobody reads", launch{mute: true}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			c.l.env = append(c.l.env, "SANDBOX_MCP_LOG_LEVEL=debug")
			v := start(t, c.l)
			_, w := attach(t, v, stdioLegacy)
			w.rounds(t.Context(), t)
			if c.l.mute {
				// Far more than a pipe holds goes to standard error.
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				for range 2000 {
					if _, err := w.call(ctx, "exec_list", args{"session_id": "sbx_none"}); err != nil {
						t.Fatal(err)
					}
				}
			} else if v.stderr.String() == "" {
				t.Error("nothing on standard error at the level debug: the test shows nothing")
			}
			if _, err := w.request(t.Context(), "no/such", nil); err == nil {
				t.Error("an unknown method was answered")
			}
			if err := w.line([]byte(`{"broken`)); err != nil {
				t.Error(err)
			}
			if err := v.end(); err != nil {
				t.Error(err)
			}
			<-w.done
			pure(t, w)
		})
	}
}

func TestBugLC02_ClosingStandardInputEndsAServerWithoutSessions(t *testing.T) {
	t.Parallel()
	for name, hello := range map[string]bool{"at once": false, "after a greeting": true} {
		v := start(t, launch{plain: true})
		if hello {
			attach(t, v, stdioModern)
		}
		began := time.Now()
		v.stdin.Close()
		if code := v.code(t, 10*time.Second); code != 0 {
			t.Errorf("%s: exit code %d\n%s", name, code, tail(v.stderr.String()))
		}
		took(t, began, 2*time.Second, "the end "+name)
	}
}

func TestBugLC02_ClosingStandardInputEndsSixteenSessionsAndLeavesNone(t *testing.T) {
	v := start(t, launch{plain: true})
	a, w := attach(t, v, stdioLegacy)
	for range 16 {
		a.ok("session_create", args{})
	}
	// One of them is in the midst of a command that a client waits for.
	first := a.list()[0].SessionID
	if _, _, err := w.begin("tools/call", callParams("exec", args{"session_id": first, "command": "echo up > up; sleep 600"})); err != nil {
		t.Fatal(err)
	}
	eventually(t, 10*time.Second, "the command runs", func() bool { return a.processes(first, "sleep 600") > 0 })
	if n := len(the.engine.of(t, v.instance)); n != 16 {
		t.Errorf("%d containers for 16 sessions", n)
	}
	began := time.Now()
	v.stdin.Close()
	if code := v.code(t, 20*time.Second); code != 0 {
		t.Errorf("exit code %d\n%s", code, tail(v.stderr.String()))
	}
	took(t, began, 4*time.Second, "the end with 16 sessions")
	if left := the.engine.of(t, v.instance); len(left) != 0 {
		t.Errorf("%d containers left", len(left))
	}
	<-w.done
	pure(t, w)
}

func TestCFG02_WrongSettingsAreSaidInEveryResult(t *testing.T) {
	t.Parallel()
	v := start(t, launch{env: []string{"SANDBOX_DOCKER_HOST=ftp://x", "SANDBOX_DOCKER_DEFAULT_CPU=many", "SANDBOX_DOCKER_MAX_SESSIONS=-3"}})
	a, w := attach(t, v, stdioModern)
	for _, tool := range []string{"exec", "session_list", "run"} {
		r := a.fails("engine_unavailable", tool, args{"command": "true"})
		for _, name := range []string{"SANDBOX_DOCKER_HOST", "SANDBOX_DOCKER_DEFAULT_CPU", "SANDBOX_DOCKER_MAX_SESSIONS"} {
			if !strings.Contains(r.text(), name) {
				t.Errorf("%s: %s is not named: %s", tool, name, r.text())
			}
		}
	}
	pure(t, w)
}

func TestCFG02_AnHTTPServerWithWrongSettingsNamesThemAllAndEndsWithTwo(t *testing.T) {
	t.Parallel()
	s := onStage(t)
	v, err := s.launch(launch{env: []string{
		"SANDBOX_MCP_TRANSPORT=http", "SANDBOX_MCP_ADDR=0.0.0.0:0", "SANDBOX_DOCKER_HOST=", "SANDBOX_DOCKER_TLS_KEY_PATH=/nowhere/key.pem", "SANDBOX_DOCKER_DEFAULT_CPU=many",
	}})
	if err != nil {
		t.Fatal(err)
	}
	if code := v.code(t, 10*time.Second); code != 2 {
		t.Errorf("exit code %d", code)
	}
	text := v.stderr.String()
	for _, name := range []string{"SANDBOX_MCP_ADDR", "SANDBOX_DOCKER_HOST", "SANDBOX_DOCKER_DEFAULT_CPU"} {
		if !strings.Contains(text, name) {
			t.Errorf("%s is not named:\n%s", name, text)
		}
	}
}

func TestBugMT03_ADeadEngineIsSaidInEveryResultAndComesBackByItself(t *testing.T) {
	t.Parallel()
	s := onStage(t)
	// The certificates are missing at first, as when a secret is mounted late.
	dir := t.TempDir()
	v := start(t, launch{env: []string{
		"SANDBOX_DOCKER_TLS_CERT_PATH=" + filepath.Join(dir, "cert.pem"), "SANDBOX_DOCKER_TLS_KEY_PATH=" + filepath.Join(dir, "key.pem"), "SANDBOX_DOCKER_TLS_CA_PATH=" + filepath.Join(dir, "ca.pem"),
	}})
	a, w := attach(t, v, stdioLegacy)
	began := time.Now()
	r := a.fails("engine_unavailable", "exec", args{"command": "true"})
	took(t, began, 10*time.Second, "the refusal")
	if strings.Contains(r.text(), "BEGIN") {
		t.Errorf("%s", r.text())
	}
	for from, to := range map[string]string{"SANDBOX_DOCKER_TLS_CERT_PATH": "cert.pem", "SANDBOX_DOCKER_TLS_KEY_PATH": "key.pem", "SANDBOX_DOCKER_TLS_CA_PATH": "ca.pem"} {
		text, err := os.ReadFile(s.engine.vars[from])
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, to), text, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	eventually(t, 15*time.Second, "the engine is there", func() bool { return !a.do("exec", args{"command": "true"}).IsError })
	pure(t, w)
}

func TestBugMT10_LongLinesPassBothWays(t *testing.T) {
	t.Parallel()
	v := start(t, launch{plain: true})
	a, w := attach(t, v, stdioModern)
	s := a.session(nil)
	for _, size := range []int{1 << 20, 8 << 20} {
		r := into[uploaded](t, a.ok("upload", args{"session_id": s, "path": "f", "content": strings.Repeat("x", size)}))
		if r.Files[0].Size != int64(size) {
			t.Errorf("%d bytes: %+v", size, r)
		}
	}
	p := into[piece](t, a.ok("download", args{"session_id": s, "path": "f", "limit": 1 << 20}))
	if p.Bytes != 1<<20 || len(p.Content) != 1<<20 {
		t.Errorf("%d bytes came back", p.Bytes)
	}
	if err := w.alive(t.Context()); err != nil {
		t.Error(err)
	}
	for _, odd := range []string{"", "\r", "[]", "null", `{"jsonrpc":"2.0","id":1e999,"method":"ping"}`, strings.Repeat("[", 100_000), strings.Repeat(" ", 1<<20)} {
		if err := w.line([]byte(odd)); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.alive(t.Context()); err != nil {
		t.Error(err)
	}
	pure(t, w)
}
