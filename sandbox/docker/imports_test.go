package docker

import (
	"go/parser"
	"go/token"
	"path/filepath"
	"strings"
	"testing"
)

// TestCON01_CON02_NoProcessIsStarted reads the package's imports: without os/exec
// and the like nothing of it can start a process, and all it does goes through
// the engine's API.
func TestCON01_CON02_NoProcessIsStarted(t *testing.T) {
	files, err := filepath.Glob("*.go")
	if err != nil || len(files) == 0 {
		t.Fatal(err, files)
	}
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ImportsOnly)
		if err != nil {
			t.Fatal(err)
		}
		for _, i := range parsed.Imports {
			switch strings.Trim(i.Path.Value, `"`) {
			case "os/exec", "golang.org/x/sys/unix", "plugin", "C":
				t.Errorf("%s imports %s", file, i.Path.Value)
			}
		}
	}
}
