package house_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// root is the repository, from this package's directory.
const root = "../.."

// source is one Go file of the repository.
type source struct {
	path  string // from the root, with slashes
	pkg   string // directory from the root; "." for the root itself
	test  bool
	fset  *token.FileSet
	file  *ast.File
	lines int
}

func (s source) imports() []string {
	var paths []string
	for _, spec := range s.file.Imports {
		if p, err := strconv.Unquote(spec.Path.Value); err == nil {
			paths = append(paths, p)
		}
	}
	return paths
}

// fromOutside says whether the file belongs to programs that test the binary and
// ship with nothing.
func (s source) fromOutside() bool { return s.pkg == "e2e" || strings.HasPrefix(s.pkg, "e2e/") }

// line is where a node stands.
func (s source) line(p token.Pos) int { return s.fset.Position(p).Line }

// sources parses every Go file of the repository that the Go tool builds.
func sources(t *testing.T) []source {
	t.Helper()
	var all []source
	for _, name := range files(t, func(name string) bool {
		return strings.HasSuffix(name, ".go") && !strings.Contains("/"+name, "/testdata/")
	}) {
		fset := token.NewFileSet()
		file, err := parser.ParseFile(fset, filepath.Join(root, name), nil, parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, source{
			path: name, pkg: path.Dir(name), test: strings.HasSuffix(name, "_test.go"),
			fset: fset, file: file, lines: fset.Position(file.FileEnd).Line,
		})
	}
	if len(all) < 20 {
		t.Fatalf("only %d Go files found: the walk is wrong", len(all))
	}
	return all
}

// files lists the repository's own files: nothing hidden, built or fetched.
func files(t *testing.T, want func(name string) bool) []string {
	t.Helper()
	var names []string
	err := filepath.WalkDir(root, func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, err = filepath.Rel(root, name)
		if err != nil {
			return err
		}
		name = filepath.ToSlash(name)
		switch base := entry.Name(); {
		case entry.IsDir() && name != "." && (strings.HasPrefix(base, ".") || name == "bin" || name == "dist" || name == "coverage" || base == "node_modules"):
			return fs.SkipDir
		case !entry.IsDir() && want(name):
			names = append(names, name)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return names
}
