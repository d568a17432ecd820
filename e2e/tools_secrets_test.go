package e2e_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/filters"
)

const (
	argumentCanary   = "argument-canary-77c1e0"
	credentialCanary = "credential-canary-b51f9a"
)

// secretTools are tools that hold their argument and their credential for a while.
func secretTools(mode string) string {
	hold := func(how string) string {
		return `cat > /dev/null; test "$TOOL_KEY" = ` + "`cat /tmp/key 2>/dev/null || echo $TOOL_KEY`" + ` || exit 9; sleep 2; ls /tmp | grep -c envelope; ` + how
	}
	return "tools:\n" + command("hold", hold("echo held $TOOL_KEY")) + command("fail", hold("echo no $TOOL_KEY >&2; exit 3")) +
		command("crash", hold("kill -9 $$")) + command("slow", "sleep 60", "remote_timeout_seconds: 5") + command("look", "ls -a /tmp") +
		`  - {name: python, description: Runs Python., repl: python}
toolkits:
` + toolkit("Decent", "decent", "caisson-test-server", "decent") + `agents:
  - {name: asked, agent_ref: dummy, description: Asks.}
execution_policy:
  rules:
    "*": {name: docker, options: {mode: ` + mode + `, env: {TOOL_KEY: "${E2E_TOOL_KEY}", DUMMY_KEY: "${E2E_TOOL_KEY}"}}, remote_timeout_seconds: 60}
`
}

// sampler looks at whatever shows what runs, over and over, while calls are under way.
type sampler struct {
	engine   *engine
	instance string
	mu       sync.Mutex
	found    map[string]bool
	looks    int
	execs    int
}

// look is one round: inspect of containers and execs, the engine's list of processes
// and this machine's, on which the containers of the tests' engine run.
func (s *sampler) look(ctx context.Context) {
	var seen []string
	note := func(where string, text string) {
		for _, canary := range []string{argumentCanary, credentialCanary} {
			if strings.Contains(text, canary) {
				seen = append(seen, canary+" in "+where)
			}
		}
	}
	all, _ := s.engine.api.ContainerList(ctx, container.ListOptions{All: true, Filters: filters.NewArgs(filters.Arg("label", "caisson.instance="+s.instance))})
	execs := 0
	for _, c := range all {
		info, raw, err := s.engine.api.ContainerInspectWithRaw(ctx, c.ID, false)
		if err != nil {
			continue
		}
		note("docker inspect", string(raw))
		for _, id := range info.ExecIDs {
			if e, err := s.engine.api.ContainerExecInspect(ctx, id); err == nil {
				text, _ := json.Marshal(e)
				note("inspect of an exec", string(text))
				execs++
			}
		}
		if top, err := s.engine.api.ContainerTop(ctx, c.ID, []string{"-eo", "pid,args"}); err == nil {
			note("docker top", fmt.Sprint(top.Processes))
		}
	}
	lines, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, path := range lines {
		if text, err := os.ReadFile(path); err == nil {
			note("the machine's list of processes", string(text))
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.looks++
	s.execs += execs
	for _, what := range seen {
		s.found[what] = true
	}
}

// during samples while f runs.
func (s *sampler) during(t *testing.T, f func()) {
	t.Helper()
	done := make(chan struct{})
	var wait sync.WaitGroup
	wait.Go(func() {
		for {
			select {
			case <-done:
				return
			case <-time.After(20 * time.Millisecond):
				s.look(t.Context())
			}
		}
	})
	f()
	close(done)
	wait.Wait()
}

// What a call is given, and what its rule's env gives to the tool, is seen nowhere:
// in no inspect, no list of processes and no log; nor does a credential come back.
func TestTX02_TX04_TX17_TX18_AGT04_AttackT59_ArgumentsAndCredentialsAreSeenNowhere(t *testing.T) {
	for _, mode := range []string{"warm", "ephemeral"} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			audit := filepath.Join(t.TempDir(), "audit.jsonl")
			v := start(t, launch{http: true, env: toolsEnv(manifest(t, secretTools(mode)), "SANDBOX_MCP_LOG_LEVEL=debug", "SANDBOX_MCP_AUDIT_FILE="+audit, "E2E_TOOL_KEY="+credentialCanary)})
			a := join(t, v, httpLegacy)
			listing(t, a, "decent_echo")
			s := &sampler{engine: the.engine, instance: v.instance, found: map[string]bool{}}
			var all strings.Builder
			s.during(t, func() {
				for _, c := range secretCalls {
					r := a.do(c.tool, c.arguments)
					d := into[declared](t, r)
					if (d.Status == "success") != c.works || d.Metadata.Mode != mode {
						t.Errorf("%s: %s", c.tool, clip(r.text()))
					}
					raw, _ := json.Marshal(r)
					all.Write(raw)
				}
			})
			if s.looks < 5 || s.execs == 0 {
				t.Errorf("%d looks at %d execs: the test shows nothing", s.looks, s.execs)
			}
			for what := range s.found {
				t.Error(what)
			}
			if strings.Contains(all.String(), credentialCanary) || !strings.Contains(all.String(), "held [redacted]") || !strings.Contains(all.String(), "key: [redacted]") {
				t.Errorf("a credential came back, or never got there: %s", clip(all.String()))
			}
			records, err := os.ReadFile(audit)
			if err != nil || !strings.Contains(string(records), `"tool":"hold"`) {
				t.Errorf("%v: %s", err, clip(string(records)))
			}
			for name, text := range map[string]string{"the log": v.stderr.String(), "the audit log": string(records)} {
				for _, canary := range []string{argumentCanary, credentialCanary} {
					if i := strings.Index(text, canary); i >= 0 {
						t.Errorf("%s in %s: %s", canary, name, text[max(0, i-300):min(len(text), i+100)])
					}
				}
			}
			if got := a.tool("look", nil).text(); strings.Contains(got, "envelope") {
				t.Errorf("an envelope is left: %s", got)
			}
			if !strings.Contains(v.stderr.String(), "tool call") || !strings.Contains(v.stderr.String(), `"mode":"`+mode+`"`) || !strings.Contains(v.stderr.String(), `"status":"error"`) {
				t.Errorf("the log's lines of calls lack mode or status:\n%s", tail(v.stderr.String()))
			}
		})
	}
}

var secretCalls = []struct {
	tool      string
	arguments args
	works     bool
}{
	{"hold", args{"text": argumentCanary}, true},
	{"fail", args{"text": argumentCanary}, false},
	{"crash", args{"text": argumentCanary}, false},
	{"slow", args{"text": argumentCanary}, false},
	{"python", args{"code": "x = '" + argumentCanary + "'; import time, os; time.sleep(1); len(x), os.environ['TOOL_KEY']"}, true},
	{"decent_env", args{"name": "TOOL_KEY", "text": argumentCanary}, true},
	{"asked", args{"question": argumentCanary}, true},
}
