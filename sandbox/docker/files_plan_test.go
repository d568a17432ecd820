package docker

import (
	"testing"

	"caisson/sandbox"
)

func TestD19_FileThatIsAlsoAFolderIsRefusedByName(t *testing.T) {
	tools := fileTools{root: "/workspace"}
	for _, paths := range [][]string{{"c", "c/b"}, {"a/b/c/d", "a/b"}, {"/workspace/x", "x/y"}} {
		files := make([]sandbox.FileWrite, len(paths))
		for i, p := range paths {
			files[i].Path = p
		}
		_, err := tools.planWrite(files)
		wantKind(t, err, sandbox.KindInvalid)
	}
	if _, err := tools.planWrite([]sandbox.FileWrite{{Path: "a"}, {Path: "ab/c"}, {Path: "b/a"}}); err != nil {
		t.Error(err)
	}
}
