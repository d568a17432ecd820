package e2e_test

import (
	"archive/tar"
	"bytes"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

// dockerClient runs the engine's own client against the test's engine.
func dockerClient(t *testing.T, args ...string) (string, error) {
	t.Helper()
	vars := onStage(t).engine.vars
	cmd := exec.Command("docker", args...)
	cmd.Env = append(os.Environ(), "DOCKER_BUILDKIT=0", "DOCKER_HOST="+vars["SANDBOX_DOCKER_HOST"], "DOCKER_TLS_VERIFY=1",
		"DOCKER_CERT_PATH="+filepath.Dir(vars["SANDBOX_DOCKER_TLS_CERT_PATH"]))
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	text, err := cmd.Output()
	if err != nil {
		err = errors.Join(err, errors.New(stderr.String()))
	}
	return strings.TrimSpace(string(text)), err
}

func docker(t *testing.T, args ...string) string {
	t.Helper()
	text, err := dockerClient(t, args...)
	if err != nil {
		t.Fatalf("docker %s: %v", strings.Join(args, " "), err)
	}
	return text
}

// serversImage builds the image of deploy/Dockerfile: its last stage as it is, on a tree
// that deploy/tree makes here as it does in the first one, which needs a registry.
func serversImage(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	program, certificates := filepath.Join(dir, "caisson"), filepath.Join(dir, "certificates")
	if err := os.WriteFile(certificates, []byte("authorities\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("go", "build", "-trimpath", "-o", program, "..")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if text, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	out(t, "../deploy/tree", filepath.Join(dir, "context/tree"), program, certificates, certificates)
	first := regexp.MustCompile(`(?s)FROM golang:.*?\nFROM scratch\n`)
	text := deployed(t, "Dockerfile")
	if !first.MatchString(text) || !strings.Contains(text, "deploy/tree /tree /bin/caisson ") {
		t.Fatal("deploy/Dockerfile is not as this test takes it to be")
	}
	text = first.ReplaceAllString(text, "FROM scratch AS build\nCOPY tree/ /tree/\n\nFROM scratch\n")
	if err := os.WriteFile(filepath.Join(dir, "context/Dockerfile"), []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	tag := onStage(t).run + "server:test"
	docker(t, "build", "--quiet", "--tag", tag, filepath.Join(dir, "context"))
	t.Cleanup(func() { docker(t, "image", "rm", "--force", tag) })
	return tag
}

func TestAttackT76_TheServersImageHasNothingButTheServer(t *testing.T) {
	t.Parallel()
	tag := serversImage(t)
	for form, want := range map[string]string{
		"{{.Config.User}}":                        "65532:65532",
		"{{json .Config.Entrypoint}}":             `["/caisson"]`,
		`{{index .Config.Labels "caisson.sbom"}}`: "/usr/share/doc/caisson/caisson.cdx.json",
		`{{json .Config.Volumes}}`:                "null",
	} {
		if got := docker(t, "image", "inspect", "--format", form, tag); got != want {
			t.Errorf("%s: %s, want %s", form, got, want)
		}
	}
	hardened := []string{"--read-only", "--cap-drop", "ALL", "--security-opt", "no-new-privileges", "--network", "none", "--tmpfs", "/tmp:mode=1777"}
	if text := docker(t, slices.Concat([]string{"run", "--rm"}, hardened, []string{tag, "version"})...); !strings.Contains(text, "caisson ") {
		t.Errorf("version: %s", text)
	}
	for _, shell := range []string{"/bin/sh", "sh", "/busybox/sh"} {
		if text, err := dockerClient(t, "run", "--rm", "--network", "none", "--entrypoint", shell, tag); err == nil {
			t.Errorf("%s runs: %s", shell, text)
		}
	}
	id := docker(t, slices.Concat([]string{"run", "--detach"}, hardened,
		[]string{"--env", "SANDBOX_DOCKER_HOST=http://127.0.0.1:9", tag, "serve", "--transport", "http"})...)
	t.Cleanup(func() { docker(t, "rm", "--force", id) })
	var err error
	for deadline := time.Now().Add(30 * time.Second); time.Now().Before(deadline); time.Sleep(200 * time.Millisecond) {
		if _, err = dockerClient(t, "exec", id, "/caisson", "health"); err == nil {
			break
		}
	}
	if err != nil {
		t.Fatalf("never healthy: %v\n%s", err, docker(t, "logs", id))
	}
	if _, err := dockerClient(t, "exec", "--env", "SANDBOX_MCP_ADDR=127.0.0.1:9", id, "/caisson", "health"); err == nil {
		t.Error("the control: nobody listens, and that is healthy")
	}
	want := []string{"caisson", "etc/group", "etc/passwd", "etc/ssl/certs/ca-certificates.crt", "usr/share/doc/caisson/caisson.cdx.json"}
	if got := programsOf(t, docker(t, "export", id)); !slices.Equal(got, want) {
		t.Errorf("the image holds %v", got)
	}
}

// programsOf lists the files of an exported container but those that the engine puts there.
func programsOf(t *testing.T, archive string) []string {
	t.Helper()
	var names []string
	for r := tar.NewReader(strings.NewReader(archive)); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) { // the end's blanks are trimmed
			slices.Sort(names)
			return names
		}
		if err != nil {
			t.Fatal(err)
		}
		if h.Mode&0o6000 != 0 {
			t.Errorf("%s raises rights", h.Name)
		}
		engines := slices.Contains([]string{"etc/hostname", "etc/hosts", "etc/resolv.conf", ".dockerenv", "etc/mtab"}, h.Name) || strings.HasPrefix(h.Name, "dev/")
		if h.Typeflag == tar.TypeReg && h.Size > 0 && !engines {
			names = append(names, h.Name)
		}
	}
}
