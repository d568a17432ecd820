package docker

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"caisson/sandbox"
)

const sessionUID = 1000

// localShell runs the scripts with a shell of this machine, as an unprivileged
// user, the way Session.pipe runs them in a container.
type localShell struct {
	argv     []string                  // the shell, which takes the place of /bin/sh
	path     string                    // not empty: the only directory that commands come from
	cutOut   int                       // not 0: the stream ends after so many bytes of stdout
	wrapIn   func(io.Reader) io.Reader // what arrives of stdin
	started  func(*os.Process)
	runs     int
	outBytes int // of the last run
}

func (l *localShell) pipe(ctx context.Context, argv []string, stdin io.Reader, stdout, stderr io.Writer) (int, error) {
	l.runs++
	script := argv[2]
	if l.path != "" {
		_, rest, _ := strings.Cut(script, "LC_ALL=C")
		script = "PATH=" + l.path + "\nLC_ALL=C" + rest
	}
	args := append(append([]string{}, l.argv[1:]...), "-c", script)
	cmd := exec.CommandContext(ctx, l.argv[0], append(args, argv[3:]...)...)
	if filepath.Base(l.argv[0]) == "bash" {
		cmd.Args[0] = "sh" // as where /bin/sh is bash
	}
	cmd.Dir = "/"
	cmd.Env = []string{"PATH=/nowhere", "CDPATH=/etc", "TAR_OPTIONS=--no-such-option", "QUOTING_STYLE=c", "LC_ALL=de_DE.UTF-8"}
	if os.Getuid() == 0 {
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: sessionUID, Gid: sessionUID}}
	}
	return l.runCommand(cmd, stdin, stdout, stderr)
}

func (l *localShell) runCommand(cmd *exec.Cmd, stdin io.Reader, stdout, stderr io.Writer) (int, error) {
	in, err := cmd.StdinPipe()
	if err != nil {
		return 0, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return 0, err
	}
	cmd.Stderr = stderr
	if err := cmd.Start(); err != nil {
		return 0, err
	}
	if l.started != nil {
		l.started(cmd.Process)
	}
	fed := make(chan struct{})
	go func() {
		defer close(fed)
		if stdin != nil && l.wrapIn != nil {
			stdin = l.wrapIn(stdin)
		}
		if stdin != nil {
			_, _ = io.Copy(in, stdin)
		}
		_ = in.Close()
	}()
	var source io.Reader = out
	if l.cutOut > 0 {
		source = io.LimitReader(out, int64(l.cutOut))
	}
	n, copyErr := io.Copy(stdout, source)
	l.outBytes = int(n)
	_ = out.Close()
	_ = in.Close()
	<-fed
	err = cmd.Wait()
	var exit *exec.ExitError
	switch {
	case copyErr != nil:
		return 0, copyErr
	case errors.As(err, &exit) && exit.ExitCode() < 0:
		return 128 + int(exit.Sys().(syscall.WaitStatus).Signal()), nil
	case errors.As(err, &exit):
		return exit.ExitCode(), nil
	}
	return 0, err
}

var localShells = map[string][]string{
	"dash":    {"dash"},
	"bash":    {"bash", "--posix"},
	"busybox": {"busybox", "sh"}, // with the tools of busybox too
}

// bench is a workspace on this machine and the tools for it.
type bench struct {
	*testing.T
	fileTools
	shell *localShell
	dir   string // its parent: outside the workspace
}

// inEachShell runs a test with every shell that images come with.
func inEachShell(t *testing.T, test func(b *bench)) {
	for name, argv := range localShells {
		t.Run(name, func(t *testing.T) { test(newBench(t, argv)) })
	}
}

func newBench(t *testing.T, argv []string) *bench {
	t.Helper()
	if _, err := exec.LookPath(argv[0]); err != nil {
		t.Fatalf("%s is needed to test the scripts with it: %v", argv[0], err)
	}
	dir, err := os.MkdirTemp("", "caisson-files-") //nolint:usetesting // the scripts run as another user, who may not enter a test's own folder
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	b := &bench{T: t, shell: &localShell{argv: argv}, dir: dir}
	b.fileTools = fileTools{run: b.shell, root: filepath.Join(dir, "workspace")}
	b.must(os.Chmod(dir, 0o755))
	b.must(os.Mkdir(b.root, 0o755))
	b.own(b.root)
	b.put("../secret", "outside", 0o644)
	return b
}

func (b *bench) must(err error) {
	b.Helper()
	if err != nil {
		b.Fatal(err)
	}
}

func (b *bench) at(name string) string { return filepath.Join(b.root, name) }

func (b *bench) own(path string) {
	b.Helper()
	if os.Getuid() == 0 {
		b.must(os.Lchown(path, sessionUID, sessionUID))
	}
}

// put makes a file of the session's user, with its directories.
func (b *bench) put(name, content string, mode os.FileMode) {
	b.Helper()
	b.mkdir(filepath.Dir(name))
	b.must(os.WriteFile(b.at(name), []byte(content), 0o600))
	b.own(b.at(name)) // before the mode, of which it takes the set-id bits
	b.must(os.Chmod(b.at(name), mode))
}

func (b *bench) mkdir(name string) {
	b.Helper()
	if _, err := os.Stat(b.at(name)); err == nil {
		return
	}
	b.mkdir(filepath.Dir(name))
	b.must(os.Mkdir(b.at(name), 0o755))
	b.own(b.at(name))
}

func (b *bench) link(target, name string) {
	b.Helper()
	b.mkdir(filepath.Dir(name))
	b.must(os.Symlink(target, b.at(name)))
	b.own(b.at(name))
}

func (b *bench) want(name, content string) {
	b.Helper()
	got, err := os.ReadFile(b.at(name))
	if err != nil || string(got) != content {
		b.Errorf("%s holds %.60q, %v; want %.60q", name, got, err, content)
	}
}

func (b *bench) wantGone(name string) {
	b.Helper()
	if _, err := os.Lstat(b.at(name)); !errors.Is(err, os.ErrNotExist) {
		b.Errorf("%s is there: %v", name, err)
	}
}

// wantNothingLeft fails for temporary files of a transfer.
func (b *bench) wantNothingLeft() {
	b.Helper()
	err := filepath.Walk(b.dir, func(path string, _ os.FileInfo, err error) error {
		if strings.Contains(path, ".caisson-") {
			b.Errorf("left behind: %s", path)
		}
		return err
	})
	b.must(err)
	left, err := filepath.Glob("/tmp/.caisson-*")
	b.must(err)
	if len(left) > 0 {
		b.Errorf("left behind: %v", left)
	}
}

// wantSecret fails if what lies outside the workspace was touched.
func (b *bench) wantSecret() {
	b.Helper()
	b.want("../secret", "outside")
	entries, err := os.ReadDir(b.dir)
	b.must(err)
	if len(entries) != 2 {
		b.Errorf("outside the workspace: %v", entries)
	}
}

// without leaves the given commands out of the image. What is not named here is
// never needed.
func (b *bench) without(missing ...string) {
	b.Helper()
	farm, err := os.MkdirTemp("", "caisson-path-")
	b.must(err)
	b.Cleanup(func() { _ = os.RemoveAll(farm) })
	b.must(os.Chmod(farm, 0o755))
	for _, name := range strings.Fields("cat mkdir chmod mv rm rmdir readlink tar find ls stat head tail dd wc sha256sum ln truncate sh") {
		real, err := exec.LookPath(name)
		b.must(err)
		if !contains(missing, name) {
			b.must(os.Symlink(real, filepath.Join(farm, name)))
		}
	}
	b.shell.path = farm
}

func contains(names []string, name string) bool {
	return strings.Contains(" "+strings.Join(names, " ")+" ", " "+name+" ")
}

func wantKind(t *testing.T, err error, kind sandbox.Kind) {
	t.Helper()
	var own *sandbox.Error
	if err == nil || sandbox.KindOf(err) != kind || !errors.As(err, &own) {
		t.Errorf("error %v, of kind %v; want %v", err, sandbox.KindOf(err), kind)
	}
}

func fileOf(path, content string) sandbox.FileWrite {
	return sandbox.FileWrite{Path: path, Content: []byte(content)}
}

// noise is n bytes in which every value occurs.
func noise(n int) []byte {
	line := make([]byte, 0, 509)
	for i := range cap(line) {
		line = append(line, byte(i*i+i/7))
	}
	return bytes.Repeat(line, n/len(line)+1)[:n]
}
