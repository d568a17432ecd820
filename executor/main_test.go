package executor_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"caisson/executor"
	"caisson/sandbox"
)

// server is one with the defaults of the settings and nothing allowed.
func server() executor.Server {
	return executor.Server{
		Builtin: []string{"exec", "session_list", "run"},
		Environment: func(name string) (string, bool) {
			value, ok := map[string]string{"API_KEY": canary, "EMPTY": "", "SANDBOX_DOCKER_TLS_KEY_PATH": canary}[name]
			return value, ok
		},
		Image: "caisson-tools:latest", Mode: executor.Warm, IdleTTL: 300 * time.Second, Network: sandbox.NetworkEgress, PullPolicy: "missing",
		MaxNetwork: sandbox.NetworkEgress,
	}
}

// canary is a value that nothing may show.
const canary = "canary-5f1d"

// parse reads a manifest that has to be right.
func parse(t *testing.T, text string, s executor.Server) *executor.Manifest {
	t.Helper()
	m, err := executor.Parse("m.yml", []byte(text), s)
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	return m
}

// faultsOf reads a manifest that has to be wrong.
func faultsOf(t *testing.T, text string) executor.Faults {
	t.Helper()
	m, err := executor.Parse("m.yml", []byte(text), server())
	var faults executor.Faults
	if !errors.As(err, &faults) || len(faults) == 0 {
		t.Errorf("no fault (%v) in\n%s", err, text)
	}
	if m != nil {
		t.Errorf("a manifest with faults is handed out:\n%s", text)
	}
	return faults
}

// tools declares tools of these names.
func tools(names ...string) string {
	var b strings.Builder
	b.WriteString("tools:\n")
	for _, name := range names {
		b.WriteString("  - {name: " + name + ", description: x, command: [x], input_schema: {type: object}}\n")
	}
	return b.String()
}

// rule is a manifest with tool t and one rule for it.
func rule(spec string) string {
	return tools("t") + "execution_policy:\n  rules:\n    t: " + spec + "\n"
}

// resolve finds the rule of a tool under the default policy.
func resolve(t *testing.T, m *executor.Manifest, tool string) executor.Resolution {
	t.Helper()
	p, err := m.Policy("")
	if err != nil {
		t.Fatal(err)
	}
	s, ok := m.Subject(tool)
	if !ok {
		t.Fatalf("no tool %s", tool)
	}
	return p.Resolve(s)
}
