package house_test

import (
	"slices"
	"strings"
	"testing"
)

// module is the prefix of our own import paths.
const module = "caisson/"

// mayImport says which of our packages each package may import. Imports run one
// way, so that a provider or a transport can be added without touching what is
// below it.
func mayImport() map[string][]string {
	return map[string][]string{
		".":                              {"cli"},
		"cli":                            {"mcp", "executor", "executor/worker", "principal", "sandbox", "sandbox/docker", "settings"},
		"mcp":                            {"executor", "principal", "sandbox", "internal/nearest"},
		"principal":                      {"sandbox", "internal/strictyaml"},
		"executor":                       {"executor/wire", "sandbox", "internal/nearest", "internal/strictyaml"},
		"executor/wire":                  {"sandbox"}, // and so the worker starts quickly
		"executor/worker":                {"executor/wire"},
		"executor/worker/caisson-worker": {"executor/worker"},
		"sandbox":                        {},
		"sandbox/sandboxtest":            {"sandbox"},
		"sandbox/docker":                 {"sandbox", "wrapper"},
		"wrapper":                        {},
		"settings":                       {"sandbox", "internal/nearest"},
		"internal/nearest":               {},
		"internal/strictyaml":            {"internal/nearest"},
		"internal/house":                 {},
		"internal/advisories":            {},
		"internal/licences":              {},
		"e2e":                            {}, // meets the built binary from outside
		"e2e/demo":                       {"e2e"},
		"e2e/bench":                      {"e2e", "wrapper"}, // measures the wrapper alone
	}
}

// inTests are packages that tests may import besides: the provider for those that
// need a real engine below them.
var inTests = []string{"sandbox/docker", "sandbox/sandboxtest", "sandbox/docker/internal/enginetest"}

// onlyIn says where a library may be imported: a change of it then touches one
// package.
func onlyIn() map[string][]string {
	return map[string][]string{
		"github.com/mark3labs/mcp-go":     {"mcp"},
		"github.com/docker/docker":        {"sandbox/docker"},
		"github.com/docker/go-":           {"sandbox/docker"},
		"github.com/caarlos0/env":         {"settings"},
		"github.com/lmittmann/tint":       {"settings"},
		"github.com/spf13/cobra":          {"cli"},
		"github.com/prometheus":           {"mcp"},
		"github.com/coreos/go-oidc":       {"principal"},
		"github.com/santhosh-tekuri":      {"executor"},
		"github.com/rogpeppe/go-internal": nil, // tests
		"github.com/google/go-cmp":        nil, // tests
		"go.uber.org/goleak":              nil, // tests
		"testing":                         {"sandbox/sandboxtest", "sandbox/docker/internal/enginetest"},
	}
}

// parent is the package that an internal one belongs to. It shares the parent's
// row of the table, and the parent may import it.
func parent(pkg string) string {
	before, _, inside := strings.Cut(pkg, "/internal/")
	if !inside {
		return pkg
	}
	return before
}

func TestImportsRunOneWay(t *testing.T) {
	allowed := mayImport()
	for _, s := range sources(t) {
		mine, known := allowed[parent(s.pkg)]
		if !known {
			t.Errorf("%s: package %s is not in the table of this test", s.path, s.pkg)
			continue
		}
		for _, imported := range s.imports() {
			pkg, ours := strings.CutPrefix(imported, module)
			if !ours || slices.Contains(mine, parent(pkg)) || parent(pkg) == parent(s.pkg) || s.test && slices.Contains(inTests, pkg) {
				continue
			}
			t.Errorf("%s imports %s, which %s may not", s.path, imported, s.pkg)
		}
	}
}

func TestLibrariesStayInOnePackage(t *testing.T) {
	rules := onlyIn()
	for _, s := range sources(t) {
		if s.test || s.fromOutside() {
			continue
		}
		for _, imported := range s.imports() {
			for prefix, pkgs := range rules {
				inside := slices.Contains(pkgs, s.pkg) || slices.Contains(pkgs, parent(s.pkg))
				if strings.HasPrefix(imported, prefix) && !inside {
					t.Errorf("%s imports %s, which belongs into %q alone", s.path, imported, pkgs)
				}
			}
		}
	}
}

// The server starts no process: nothing that ships can, but for the operator's
// explicit exception, the local executor.
func TestCON01_NothingThatShipsCanStartAProcess(t *testing.T) {
	starters := []string{"os/exec", "syscall.ForkExec", "syscall.StartProcess", "syscall.Exec", "os.StartProcess"}
	for _, s := range sources(t) {
		if s.test || s.fromOutside() || strings.HasPrefix(s.pkg, "executor/worker") || strings.HasSuffix(s.pkg, "enginetest") {
			continue // the worker is what runs inside a container
		}
		if s.path == "executor/local.go" {
			continue
		}
		for _, imported := range s.imports() {
			if slices.Contains(starters, imported) {
				t.Errorf("%s imports %s", s.path, imported)
			}
		}
		for _, call := range selectors(s) {
			if slices.Contains(starters, call.name) {
				t.Errorf("%s:%d uses %s", s.path, call.line, call.name)
			}
		}
	}
}
