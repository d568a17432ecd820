package house_test

import (
	"go/ast"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var (
	testName = regexp.MustCompile("`(Test[A-Za-z0-9_]+)`")
	// A line of the table of promises ends with the tests that show it.
	promiseLine = regexp.MustCompile(`(?m)^\| (P\d+) \|.*$`)
)

// What docs/security.md promises is shown by tests that are there under those names.
func TestAttackT76_EveryPromiseOfThePageHasItsTests(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(root, "docs/security.md"))
	if err != nil {
		t.Fatal(err)
	}
	there := map[string]bool{}
	for _, s := range sources(t) {
		for _, decl := range s.file.Decls {
			if fn, ok := decl.(*ast.FuncDecl); ok && s.test {
				there[fn.Name.Name] = true
			}
		}
	}
	promises := promiseLine.FindAllString(string(text), -1)
	if len(promises) < 10 {
		t.Fatalf("only %d promises are read: the form of the table has changed", len(promises))
	}
	for _, line := range promises {
		if named := testName.FindAllString(line, -1); len(named) == 0 {
			t.Errorf("no test is named: %s", line)
		}
	}
	for _, m := range testName.FindAllStringSubmatch(string(text), -1) {
		if !there[m[1]] {
			t.Errorf("docs/security.md names %s, which is no test", m[1])
		}
	}
	if strings.Count(string(text), "`Test") < len(promises) {
		t.Error("fewer tests are named than there are promises")
	}
}
