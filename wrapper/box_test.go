package wrapper

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// roleEnv makes the test binary act as process 1 of a box instead of running tests.
const roleEnv = "WRAPPER_TEST_ROLE"

// boxUser is the session user of a box; process 1 is root there.
const boxUser = 1000

func TestMain(m *testing.M) {
	switch os.Getenv(roleEnv) {
	case "init":
		boxInit()
		return
	case "leave":
		leaveMainThread()
		return
	}
	keepDescriptors()
	os.Exit(m.Run())
}

// keepDescriptors keeps what this process was given by its parent, beyond the standard
// three, from the boxes: an engine gives a command nothing else, and a shell that finds
// a number taken behaves differently.
func keepDescriptors() {
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	for _, e := range entries {
		if fd, err := strconv.Atoi(e.Name()); err == nil && fd > 2 {
			syscall.CloseOnExec(fd)
		}
	}
}

// boxInit is what the engine's init is to a session: it reaps. It ends with its stdin.
func boxInit() {
	if err := boxMounts(os.Args[1], os.Args[2]); err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	fmt.Println("ready")
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		os.Exit(0)
	}()
	for {
		if _, err := syscall.Wait4(-1, nil, 0, nil); errors.Is(err, syscall.ECHILD) {
			time.Sleep(20 * time.Millisecond)
		}
	}
}

// boxMounts gives the box a /tmp of its own, and the wanted shell as /bin/sh or a
// folder of tools as /usr/bin, which /bin is a link to.
func boxMounts(shellPath, tools string) error {
	if tools != "" {
		if err := syscall.Mount(tools, "/usr/bin", "", syscall.MS_BIND, ""); err != nil {
			return fmt.Errorf("bind tools: %w", err)
		}
	} else if err := syscall.Mount(shellPath, "/bin/sh", "", syscall.MS_BIND, ""); err != nil {
		return fmt.Errorf("bind shell: %w", err)
	}
	return syscall.Mount("tmpfs", "/tmp", "tmpfs", 0, "mode=1777,size=16m")
}

// shells are what /bin/sh can be, each with the distribution's package that has it.
var shells = []struct{ name, file, pkg string }{
	{"dash", "dash", "dash"},
	{"ash", "busybox", "busybox-static"},
	{"bash", "bash", "bash"},
	{"mksh", "mksh", "mksh"},
}

// box stands for a session container: a pid and a mount namespace with /proc, an init
// and a /tmp of its own. Processes enter it from outside, as an engine's do.
type box struct {
	t     testing.TB
	shell string
	pid   int
	uid   int // of the session's user
	nproc int // that user's cap on processes; 0 for none
}

// inShells runs the test in a fresh box for each shell, all at once whatever the number
// of processors: they mostly wait.
func inShells(t *testing.T, test func(t *testing.T, b *box)) {
	t.Helper()
	var wg sync.WaitGroup
	for _, sh := range shells {
		wg.Go(func() {
			t.Run(sh.name, func(t *testing.T) { test(t, newBox(t, sh.name)) })
		})
	}
	wg.Wait()
}

func newBox(t testing.TB, shellName string) *box { return newBoxWith(t, shellName, "") }

// newBoxWith starts a box whose /usr/bin is the folder tools, its sh included.
func newBoxWith(t testing.TB, shellName, tools string) *box {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Fatal("needs root: the scripts run in a pid and mount namespace of their own")
	}
	path := ""
	for _, sh := range shells {
		if sh.name == shellName {
			var err error
			if path, err = exec.LookPath(sh.file); err != nil {
				t.Fatalf("%s is missing: apt-get install %s", sh.name, sh.pkg)
			}
		}
	}
	path, err := filepath.EvalSymlinks(path)
	if err != nil {
		t.Fatal(err)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("unshare", "--pid", "--fork", "--kill-child", "--mount", "--mount-proc",
		"--propagation", "private", self, path, tools)
	cmd.Env = append(os.Environ(), roleEnv+"=init")
	cmd.Stderr = os.Stderr
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = stdin.Close()
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	line := make([]byte, 256)
	n, err := stdout.Read(line)
	if err != nil || string(line[:n]) != "ready\n" {
		t.Fatalf("box did not start: %q %v", line[:n], err)
	}
	children, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/children", cmd.Process.Pid, cmd.Process.Pid))
	if err != nil {
		t.Fatal(err)
	}
	pid, err := strconv.Atoi(strings.Fields(string(children))[0])
	if err != nil {
		t.Fatal(err)
	}
	return &box{t: t, shell: shellName, pid: pid, uid: boxUser}
}

// command is an argv started in the box as its user, with no capability left.
func (b *box) command(argv ...string) *exec.Cmd {
	return b.commandAs(b.uid, argv...)
}

func (b *box) commandAs(uid int, argv ...string) *exec.Cmd {
	as := strconv.Itoa(uid)
	args := []string{"-t", strconv.Itoa(b.pid), "-p", "-m", "--"}
	if uid != 0 {
		args = append(args, "/usr/bin/setpriv", "--reuid", as, "--regid", as, "--clear-groups",
			"--bounding-set=-all", "--inh-caps=-all", "--no-new-privs", "--")
		if b.nproc > 0 {
			args = append(args, "/usr/bin/prlimit", fmt.Sprintf("--nproc=%d", b.nproc), "--")
		}
	}
	// A signal that the test's own parent ignores would be ignored by every command.
	cmd := exec.Command("/usr/bin/env", append([]string{"--default-signal", "/usr/bin/nsenter"}, append(args, argv...)...)...)
	cmd.Env = []string{"PATH=/usr/local/bin:/usr/bin:/bin", "HOME=/tmp"}
	cmd.Dir = "/"
	return cmd
}

// file is a path inside the box as seen from outside.
func (b *box) file(path string) string { return fmt.Sprintf("/proc/%d/root%s", b.pid, path) }

// tmp lists /tmp of the box.
func (b *box) tmp() []string {
	b.t.Helper()
	entries, err := os.ReadDir(b.file("/tmp"))
	if err != nil {
		b.t.Fatal(err)
	}
	names := make([]string, 0, len(entries))
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

// recordedPid is what the pid file of a command says.
func (b *box) recordedPid(id string) int {
	b.t.Helper()
	data, err := os.ReadFile(b.file("/tmp/tai-exec." + id + ".pid"))
	if err != nil {
		b.t.Fatal(err)
	}
	pid, err := strconv.Atoi(strings.TrimSuffix(string(data), "\n"))
	if err != nil {
		b.t.Fatal(err)
	}
	return pid
}

// inGroup lists the live processes of a group: pid, parent, group, uid, state, argv.
func (b *box) inGroup(group string) []string {
	var members []string
	for line := range strings.Lines(b.ps()) {
		if f := strings.Fields(line); len(f) > 5 && f[2] == group && !strings.HasPrefix(f[4], "Z") {
			members = append(members, strings.TrimSpace(line))
		}
	}
	return members
}

// pids lists the live processes of exactly this argv.
func (b *box) pids(argv string) []string {
	var pids []string
	for line := range strings.Lines(b.ps()) {
		f := strings.Fields(line)
		if len(f) > 5 && strings.Join(f[5:], " ") == argv && !strings.HasPrefix(f[4], "Z") {
			pids = append(pids, f[0])
		}
	}
	return pids
}

func (b *box) runs(argv string) bool { return len(b.pids(argv)) > 0 }

// kill kills, as root, each process of exactly this argv, and waits until it is gone.
func (b *box) kill(argv string) {
	b.t.Helper()
	pids := b.pids(argv)
	if len(pids) == 0 {
		b.t.Fatalf("no process %q to kill", argv)
	}
	for _, pid := range pids {
		b.signal(pid, "KILL")
	}
	await(b.t, argv+" is gone", func() bool { return !b.runs(argv) })
}

// signal sends a signal, as root, to a process of the box.
func (b *box) signal(pid, signal string) {
	b.t.Helper()
	if out, err := b.commandAs(0, "/usr/bin/env", "kill", "-"+signal, pid).CombinedOutput(); err != nil {
		b.t.Fatalf("kill -%s %s: %v %s", signal, pid, err, out)
	}
}

func (b *box) ps() string {
	out, _ := b.commandAs(0, "ps", "-ww", "-eo", "pid,ppid,pgid,uid,stat,args").CombinedOutput()
	// The wrapper's argv holds its scripts and the command: cut before any of it.
	var cut strings.Builder
	for line := range strings.Lines(string(out)) {
		line, _, ours := strings.Cut(strings.TrimSuffix(line, "\n"), "/bin/sh -c t")
		if ours {
			line += "(script)"
		}
		fmt.Fprintln(&cut, line)
	}
	return cut.String()
}

// stop runs the stop of a command and returns its report.
func (b *box) stop(id, signal string) (Report, time.Duration) {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.t.Context(), 10*time.Second)
	defer cancel()
	argv := StopArgv(id, signal)
	began := time.Now()
	cmd := b.command(argv...)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Start(); err != nil {
		b.t.Fatal(err)
	}
	kill := context.AfterFunc(ctx, func() { _ = cmd.Process.Kill() })
	defer kill()
	err := cmd.Wait()
	took := time.Since(began)
	r, ok := ParseReport(id, out.Bytes())
	if !ok {
		b.t.Fatalf("stop gave no report: %q %q %v\n%s", out.String(), errs.String(), err, b.ps())
	}
	if want := r.Failed != ""; want != (err != nil) {
		b.t.Errorf("stop ended with %v, its report is %+v", err, r)
	}
	return r, took
}

// await polls until f is true.
func await(t testing.TB, what string, f func() bool) {
	t.Helper()
	deadline := time.Now().Add(time.Minute) // against hanging
	for !f() {
		if time.Now().After(deadline) {
			t.Fatalf("still not: %s", what)
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// has says whether a command's file of that kind is there.
func (b *box) has(id, kind string) bool {
	_, err := os.Lstat(b.file("/tmp/tai-exec." + id + "." + kind))
	return err == nil
}
