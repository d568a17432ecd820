package cli

import (
	"runtime"
	"strings"
	"testing"
)

func TestExitStatusTellsACommandLineFromAFailure(t *testing.T) {
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"sreve"}, "unknown command"},
		{[]string{"serve", "--trnsport=http"}, "unknown flag"},
		{[]string{"serve", "extra"}, "unknown command"},
		{[]string{"version", "extra"}, "unknown command"},
	} {
		out, p := run(t, nil, c.args...)
		if p.status != exitSetting || out != "" || !strings.Contains(p.stderr.String(), c.want) {
			t.Errorf("%q: status %d, stdout %q, stderr %q", c.args, p.status, out, p.stderr)
		}
	}
}

func TestVersionNamesTheProtocols(t *testing.T) {
	out, p := run(t, nil, "version")
	for _, want := range []string{"caisson", runtime.Version(), "2025-11-25", "2026-07-28", "revision"} {
		if p.status != exitOK || !strings.Contains(out, want) {
			t.Errorf("status %d, no %q in %q", p.status, want, out)
		}
	}
}

func TestConfigShowsWhatIsInForce(t *testing.T) {
	out, p := run(t, []string{deadEngine, "SANDBOX_DOCKER_MAX_SESSIONS=3", "SANDBOX_DOCKER_MAX_SESIONS=4", "SANDBOX_MCP_OWNER=ghp_0123456789abcdef0123456789abcdef0123"}, "config")
	if p.status != exitOK {
		t.Errorf("status %d: %s", p.status, p.stderr)
	}
	fields := map[string][]string{}
	for line := range strings.Lines(out) {
		f := strings.Fields(line)
		fields[f[0]] = f[1:]
	}
	for name, want := range map[string]string{
		"SANDBOX_DOCKER_MAX_SESSIONS": "3 environment",
		"SANDBOX_DOCKER_DEFAULT_CPU":  "1 default",
		"SANDBOX_MCP_OWNER":           "[redacted] environment",
	} {
		if got := strings.Join(fields[name], " "); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
	if !strings.Contains(p.stderr.String(), "did you mean SANDBOX_DOCKER_MAX_SESSIONS") {
		t.Errorf("no warning: %s", p.stderr)
	}
}

func TestConfigNamesEveryFault(t *testing.T) {
	_, p := run(t, wrong, "config")
	if p.status != exitSetting || strings.Count(p.stderr.String(), "\n") != 4 {
		t.Errorf("status %d: %s", p.status, p.stderr)
	}
}

func TestCFG07_NoOutputRepeatsAKey(t *testing.T) {
	const secret = "c2VjcmV0LWtleS1ib2R5"
	environ := []string{deadEngine, "SANDBOX_DOCKER_TLS_KEY_PATH=-----BEGIN PRIVATE KEY-----" + secret, "SANDBOX_DOCKER_TLS_KEY_PEM=-----BEGIN PRIVATE KEY-----" + secret}
	for _, args := range [][]string{{"config"}, {"doctor"}, {"serve", "--transport=http"}, {"serve"}} {
		out, p := run(t, environ, args...)
		if text := out + p.stderr.String(); strings.Contains(text, secret) || !strings.Contains(text, "SANDBOX_DOCKER_TLS_KEY_PATH") {
			t.Errorf("%q: %s", args, text)
		}
	}
}

func TestShellCompletionIsThere(t *testing.T) {
	out, p := run(t, nil, "completion", "bash")
	if p.status != exitOK || !strings.Contains(out, "caisson") {
		t.Errorf("status %d", p.status)
	}
}

func TestColumnsLineUp(t *testing.T) {
	got := columns([][]string{{"a", "bbb", "c"}, {"ääää", "b", "long last"}})
	if want := "a     bbb  c\nääää  b    long last\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
