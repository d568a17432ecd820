package e2e_test

import (
	"path/filepath"
	"strings"
	"testing"
)

// suite is one way to run the protocol's conformance suite: a published version of it,
// and the scenarios that it is asked for.
type suite struct {
	name, dir string
	args      []string
	must      []string // scenarios that need no fixture, and have to have passed
}

func suites() []suite {
	generic := []string{"completion-complete", "tools-list", "server-sse-multiple-streams", "resources-list", "prompts-list", "dns-rebinding-protection"}
	legacy := append([]string{"server-initialize", "logging-set-level", "ping", "resources-subscribe", "resources-unsubscribe"}, generic...)
	next := "node_modules/conformance-next/"
	return []suite{
		{"0.1.16", "node_modules/@modelcontextprotocol/conformance/", nil, legacy},
		{"2025-11-25", next, []string{"--requirements", "2025-11-25"}, append([]string{"server-session-lifecycle"}, legacy...)},
		{"2026-07-28", next, []string{"--requirements", "2026-07-28"}, append([]string{"caching", "http-header-validation", "sep-2164-resource-not-found"}, generic...)},
	}
}

// TestConformanceSuiteFindsNothingNew holds the program as it ships to every scenario
// that needs no tool of the suite's own.
func TestConformanceSuiteFindsNothingNew(t *testing.T) {
	t.Parallel()
	v := start(t, launch{http: true, plain: true})
	for _, s := range suites() {
		s.run(t, v, "--expected-failures", "testdata/conformance-"+s.name+".yml")
	}
}

// TestConformanceSuitePassesWithItsFixtures runs all of the suite through our own
// transports, on a program that has the suite's tools built in. No failure is expected;
// the suite itself takes those of the tasks extension, which the protocol's library does
// not speak, for information.
func TestConformanceSuitePassesWithItsFixtures(t *testing.T) {
	t.Parallel()
	fitted := filepath.Join(onStage(t).dir, "caisson-conformance")
	if err := build(fitted, "-race", "-tags", "conformance"); err != nil {
		t.Fatal(err)
	}
	v := start(t, launch{http: true, other: fitted})
	for _, s := range suites() {
		if s.args == nil {
			s.args = []string{"--suite", "all"}
		}
		s.must = append(s.must, "tools-call-simple-text", "tools-call-with-progress", "json-schema-2020-12", "prompts-get-with-image", "resources-templates-read")
		s.run(t, v)
	}
}

func (s suite) run(t *testing.T, v *server, more ...string) {
	t.Helper()
	argv := append([]string{program(t, s.dir, "conformance"), "server", "--url", v.url + "/mcp", "-o", t.TempDir()}, append(s.args, more...)...)
	out, complaints, err := node(t, nil, argv...)
	if err != nil {
		t.Errorf("%s: %v\n%s\n%s", s.name, err, tail(out), tail(complaints))
	}
	for _, scenario := range s.must {
		if !strings.Contains(out, "✓ "+scenario+":") {
			t.Errorf("%s: %s has not passed", s.name, scenario)
		}
	}
}
