package executor_test

import (
	"strings"
	"testing"
	"time"

	"caisson/executor"
	"caisson/sandbox"
)

func TestTX22_ATimeoutThatTheServerDoesNotAllowIsAFault(t *testing.T) {
	s := server()
	s.MaxTimeout = time.Minute
	for _, text := range []string{
		"tools: [{name: t, description: x, command: [x], remote_timeout_seconds: 60.5}]\n",
		"toolkits: [{name: K, tool_prefix: k, command: [x], remote_timeout_seconds: 60.5}]\n",
		rule("{name: docker, remote_timeout_seconds: 60.5}"),
	} {
		_, err := executor.Parse("m.yml", []byte(text), s)
		if err == nil || !strings.Contains(err.Error(), "remote_timeout_seconds is 60.5, and SANDBOX_DOCKER_EXEC_MAX_TIMEOUT_SECONDS allows 60 at most") || !strings.Contains(err.Error(), "m.yml:") {
			t.Errorf("%s: %v", text, err)
		}
		parse(t, strings.ReplaceAll(text, "60.5", "60"), s)
	}
}

func TestTX22_AToolWithoutATimeoutRunsUnderAShortBoundOfTheServer(t *testing.T) {
	r := startRig(t, func(l *sandbox.Limits) { l.DefaultTimeout, l.MaxTimeout = 10*time.Second, time.Minute })
	s := wide()
	s.MaxTimeout = time.Minute
	r.play("Kit", lists("a"))
	r.open(kit, func(o *executor.ToolboxOptions) { o.Manifest = parse(t, kit+tools("t"), s) })
	r.Listed(t.Context())
	r.value("t")
	r.call("k_a", "{}")
	for _, c := range r.ran() {
		if c.Timeout > 65*time.Second {
			t.Errorf("%s", c.raw)
		}
	}
}
