package house_test

import (
	"go/ast"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const (
	fileLimit         = 400
	functionLimit     = 60
	testFunctionLimit = 120 // tables of cases are long without being hard
)

func TestFilesAndFunctionsStayShort(t *testing.T) {
	for _, s := range sources(t) {
		if s.lines > fileLimit {
			t.Errorf("%s has %d lines, %d at most", s.path, s.lines, fileLimit)
		}
		limit := functionLimit
		if s.test || s.pkg == "sandbox/sandboxtest" {
			limit = testFunctionLimit
		}
		for _, decl := range s.file.Decls {
			if fn, ok := decl.(*ast.FuncDecl); ok {
				if n := s.line(fn.End()) - s.line(fn.Pos()) + 1; n > limit {
					t.Errorf("%s: %s has %d lines, %d at most", s.path, fn.Name.Name, n, limit)
				}
			}
		}
	}
}

func TestPackagesAreNamedAfterWhatTheyDo(t *testing.T) {
	for _, s := range sources(t) {
		name := strings.TrimSuffix(s.file.Name.Name, "_test")
		if slices.Contains([]string{"util", "utils", "common", "helper", "helpers", "types", "misc", "base"}, name) {
			t.Errorf("%s: package %s says nothing", s.path, name)
		}
		for _, decl := range s.file.Decls {
			if fn, ok := decl.(*ast.FuncDecl); ok && fn.Recv == nil && fn.Name.Name == "init" {
				t.Errorf("%s has an init: what it does happens behind everybody's back", s.path)
			}
		}
	}
}

// selector is one use of a member of a package, such as os.Getenv.
type selector struct {
	name   string
	line   int
	inLoop bool
}

func selectors(s source) []selector {
	var (
		all  []selector
		open []ast.Node // the nodes around the one at hand
	)
	ast.Inspect(s.file, func(n ast.Node) bool {
		if n == nil {
			open = open[:len(open)-1]
			return true
		}
		open = append(open, n)
		if sel, ok := n.(*ast.SelectorExpr); ok {
			if pkg, ok := sel.X.(*ast.Ident); ok && pkg.Obj == nil {
				inLoop := slices.ContainsFunc(open, func(n ast.Node) bool { _, ok := n.(*ast.ForStmt); return ok })
				all = append(all, selector{pkg.Name + "." + sel.Sel.Name, s.line(sel.Pos()), inLoop})
			}
		}
		return true
	})
	return all
}

// What a package may not use, and where it may all the same.
func TestSettingsOutputAndTimeAreUsedWhereTheyBelong(t *testing.T) {
	for _, s := range sources(t) {
		for _, use := range selectors(s) {
			var why string
			if s.fromOutside() && use.name != "time.Sleep" {
				continue
			}
			switch use.name {
			case "os.Getenv", "os.LookupEnv", "os.ExpandEnv":
				if !s.test && s.pkg != "settings" {
					why = "the environment is read by settings alone"
				}
			case "os.Environ", "os.Stdin", "os.Stdout", "context.TODO":
				if !s.test && s.file.Name.Name != "main" {
					why = "only a main has it to hand over"
				}
			case "fmt.Print", "fmt.Printf", "fmt.Println":
				if !s.test {
					why = "standard output belongs to the protocol"
				}
			case "time.Sleep":
				if s.test && !use.inLoop { // the pause between two looks of a poll
					why = "a test polls with a deadline, or uses channels"
				}
			}
			if why != "" {
				t.Errorf("%s:%d uses %s: %s", s.path, use.line, use.name, why)
			}
		}
	}
}

// Marks of unfinished work, spelled so that this file does not hold them.
var unfinished = regexp.MustCompile(`\b(TO` + `DO|FIX` + `ME|XX` + `X)\b`)

func TestNothingIsLeftUnfinished(t *testing.T) {
	endings := []string{".go", ".sh", ".md", ".yml", ".yaml", ".mjs", ".txtar", "Dockerfile", "Makefile"}
	for _, name := range files(t, func(name string) bool {
		return slices.ContainsFunc(endings, func(end string) bool { return strings.HasSuffix(name, end) }) || strings.HasPrefix(name, "scripts/")
	}) {
		text, err := os.ReadFile(filepath.Join(root, name))
		if err != nil {
			t.Fatal(err)
		}
		for i, line := range strings.Split(string(text), "\n") {
			// context.TODO is caught by name, elsewhere.
			if unfinished.MatchString(strings.ReplaceAll(line, "context.TO"+"DO", "")) {
				t.Errorf("%s:%d is marked as unfinished", name, i+1)
			}
		}
	}
}
