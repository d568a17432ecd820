package e2e_test

import (
	"archive/tar"
	"compress/gzip"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// release builds one platform's archives of a commit. It takes some seconds where the
// machine's build cache is warm.
func release(t *testing.T, commit, dir string, env ...string) map[string]string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "../scripts/release", "--out", dir, "--commit", commit, "linux/amd64")
	cmd.Env = append(append(os.Environ(), "CAISSON_RELEASE_GOCACHE=1"), env...)
	if text, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("scripts/release: %v\n%s", err, text)
	}
	sums := map[string]string{}
	files, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		text, err := os.ReadFile(filepath.Join(dir, f.Name()))
		if err != nil {
			t.Fatal(err)
		}
		sums[f.Name()] = fmt.Sprintf("%x", sha256.Sum256(text))
	}
	return sums
}

// unpacked is what an archive of a release has, by names below its one directory.
func unpacked(t *testing.T, name string) map[string]*tar.Header {
	t.Helper()
	file, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	plain, err := gzip.NewReader(file)
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]*tar.Header{}
	for r := tar.NewReader(plain); ; {
		h, err := r.Next()
		if err == io.EOF {
			return all
		}
		if err != nil {
			t.Fatal(err)
		}
		_, inner, _ := strings.Cut(h.Name, "/")
		all[strings.TrimSuffix(inner, "/")] = h
	}
}

func TestAttackT76_TwoBuildsAreEqual(t *testing.T) {
	if os.Getenv("CAISSON_VERIFY_RELEASE") == "" {
		t.Skip("builds the program twice, which takes minutes from those that measure time: make verify-release")
	}
	one, two := filepath.Join(t.TempDir(), "one"), filepath.Join(t.TempDir(), "a longer", "path to the second")
	commit := strings.TrimSpace(out(t, "git", "rev-parse", "HEAD")) // whatever is committed meanwhile
	first, second := release(t, commit, one), release(t, commit, two, "TZ=Asia/Tokyo", "LC_ALL=C.UTF-8", "GOFLAGS=-buildvcs=false -race", "CGO_ENABLED=1", "GOAMD64=v3")
	var archive string
	for name, sum := range first {
		if second[name] != sum {
			t.Errorf("%s: %s and %s", name, sum, second[name])
		}
		if strings.HasSuffix(name, ".tar.gz") {
			archive = name
		}
	}
	if len(first) != 4 || len(second) != len(first) || archive == "" {
		t.Fatalf("an archive, two bills of materials and the checksums are wanted: %v", first)
	}
	inside := unpacked(t, filepath.Join(one, archive))
	for _, want := range []string{"caisson", "caisson-worker", "caisson.cdx.json", "caisson-worker.cdx.json", "LICENSE", "NOTICE", "README.md", "completions/caisson.bash", "completions/caisson.fish", "completions/caisson.zsh"} {
		if h := inside[want]; h == nil || h.Uid != 0 || h.Uname != "" || h.ModTime != inside["caisson"].ModTime {
			t.Errorf("%s: %+v", want, h)
		}
	}
	out(t, "sh", "-ec", `cd "$0"; sha256sum --check --quiet SHA256SUMS`, one)
	program := t.TempDir()
	out(t, "tar", "--extract", "--gzip", "--strip-components=1", "--directory", program, "--file", filepath.Join(one, archive))
	inventory(t, one, filepath.Join(program, "caisson"))
}

// inventory sees that the bill of materials lists every module of the program, each
// with its licence.
func inventory(t *testing.T, dir, program string) {
	t.Helper()
	names, _ := filepath.Glob(filepath.Join(dir, "caisson_*.cdx.json"))
	if len(names) != 1 {
		t.Fatalf("bills of materials: %v", names)
	}
	text, err := os.ReadFile(names[0])
	if err != nil {
		t.Fatal(err)
	}
	var bill struct {
		BOMFormat  string
		Components []struct {
			Name, Version string
			Licenses      []struct{ License struct{ ID string } }
		}
	}
	if err := json.Unmarshal(text, &bill); err != nil || bill.BOMFormat != "CycloneDX" {
		t.Fatalf("%v: %.200s", err, text)
	}
	var listed []string
	for _, c := range bill.Components {
		listed = append(listed, c.Name)
		if len(c.Licenses) != 1 || c.Licenses[0].License.ID == "" {
			t.Errorf("%s %s has no licence", c.Name, c.Version)
		}
	}
	for line := range strings.Lines(out(t, "go", "version", "-m", program)) {
		if fields := strings.Fields(line); len(fields) > 2 && fields[0] == "dep" && !slices.Contains(listed, fields[1]) {
			t.Errorf("%s is in the program and not in its bill of materials", fields[1])
		}
	}
	if strings.Contains(string(text), os.TempDir()) {
		t.Error("the bill of materials tells of the machine that made it")
	}
}
