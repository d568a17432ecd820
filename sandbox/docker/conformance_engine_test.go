package docker

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/pkg/stdcopy"

	"caisson/sandbox"
	"caisson/sandbox/docker/internal/enginetest"
	"caisson/sandbox/sandboxtest"
)

// conform runs the case of the conformance suite that the test is named after, on
// the real engine.
func conform(t *testing.T) {
	t.Helper()
	t.Parallel()
	p := provider(t)
	sandboxtest.RunCase(t, sandboxtest.Harness{
		Provider: p,
		Image:    busybox, Full: debian, Bare: "caisson-test-contract:latest",
		Others:  []string{"caisson-test-nonroot:latest", "caisson-test-entrypoint:latest", "caisson-test-entrypoint-false:latest", "caisson-test-rootuser:latest"},
		Outside: func(t *testing.T, session string) sandboxtest.Outside { return &outside{t, p, containerName(session)} },
		Link: func(t *testing.T) (sandbox.Provider, sandboxtest.Line) {
			return overSocket(t)
		},
	}, t.Name())
}

// TestAPI11_ConformanceListIsWhole holds the list of tests against the suite's cases.
func TestAPI11_ConformanceListIsWhole(t *testing.T) {
	text, err := os.ReadFile("conformance_list_test.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range sandboxtest.Cases() {
		if !bytes.Contains(text, []byte("func Test"+c.Name+"(")) {
			t.Errorf("case %s is not run on the engine", c.Name)
		}
	}
}

// overSocket gives a provider behind a line that ends at the engine's unix socket: of
// a network's the kernel takes in much more than is taken from it.
func overSocket(t *testing.T) (sandbox.Provider, line) {
	t.Helper()
	vars, err := engineVars()
	if err != nil {
		t.Fatal(err)
	}
	p, proxy := faultyOver(t, func() (net.Conn, error) { return net.Dial("unix", vars["CAISSON_ENGINE_SOCKET"]) })
	return p, line{proxy}
}

// line breaks the attached streams of a proxy.
type line struct{ proxy *enginetest.Proxy }

func (l line) Next(f sandboxtest.Fault) {
	l.proxy.Inject(enginetest.Fault{
		Method: "POST", Path: calls("^/exec/.*/start$"), Times: 1,
		Swallow: f.Lose, Hang: f.Hang, CutAt: f.CutAt, Bytes: f.Bytes, Rate: f.Rate, Pause: f.Pause,
	})
}

func (l line) Mend() { l.proxy.Clear() }

// outside is a session's container in the engine's own hands.
type outside struct {
	t    *testing.T
	p    *Provider
	name string
}

func (o *outside) must(err error) {
	o.t.Helper()
	if err != nil {
		o.t.Fatal(err)
	}
}

func (o *outside) Processes() []string {
	o.t.Helper()
	top, err := o.p.api.ContainerTop(o.t.Context(), o.name, []string{"-eo", "pid,args"})
	o.must(err)
	var lines []string
	for _, process := range top.Processes {
		lines = append(lines, process[len(process)-1])
	}
	return lines
}

func (o *outside) Root(script string) string {
	o.t.Helper()
	made, err := o.p.api.ContainerExecCreate(o.t.Context(), o.name, container.ExecOptions{
		User: "0:0", WorkingDir: "/", Cmd: []string{"/bin/sh", "-c", script}, AttachStdout: true, AttachStderr: true,
	})
	o.must(err)
	st, err := o.p.attach(o.t.Context(), made.ID)
	o.must(err)
	defer st.close()
	var out bytes.Buffer
	_, err = stdcopy.StdCopy(&out, &out, st.reader)
	o.must(err)
	if code, _, err := o.p.exitCode(o.t.Context(), made.ID); err != nil || code != 0 {
		o.t.Fatalf("root's %q: %d, %v: %s", script, code, err, &out)
	}
	return out.String()
}

func (o *outside) Pause()   { o.must(o.p.api.ContainerPause(o.t.Context(), o.name)) }
func (o *outside) Unpause() { o.must(o.p.api.ContainerUnpause(o.t.Context(), o.name)) }
func (o *outside) Kill()    { o.must(o.p.api.ContainerKill(o.t.Context(), o.name, "KILL")) }

func (o *outside) Remove() {
	o.must(o.p.api.ContainerRemove(o.t.Context(), o.name, container.RemoveOptions{Force: true, RemoveVolumes: true}))
}

// enter runs a command of the host's in namespaces of the container's.
func (o *outside) enter(namespaces, script string) {
	o.t.Helper()
	c, err := o.p.api.ContainerInspect(o.t.Context(), o.name)
	o.must(err)
	args := append([]string{"--target", fmt.Sprint(c.State.Pid)}, strings.Fields(namespaces)...)
	if out, err := exec.CommandContext(o.t.Context(), "nsenter", append(args, "--", "/bin/sh", "-c", script)...).CombinedOutput(); err != nil {
		o.t.Fatalf("enter the container: %v: %s", err, out)
	}
}

func (o *outside) SmallTmp(kib int) {
	o.t.Helper()
	o.enter("--mount", fmt.Sprintf("mount -t tmpfs -o size=%dk,mode=1777 none /tmp", kib))
}

// FewPids sets the pid_max of the container's own namespace, which it has since
// Linux 6.14; before, the number is the whole machine's.
func (o *outside) FewPids(n int) bool {
	o.t.Helper()
	release, err := os.ReadFile("/proc/sys/kernel/osrelease")
	o.must(err)
	var major, minor int
	if _, err := fmt.Sscanf(string(release), "%d.%d", &major, &minor); err != nil {
		o.t.Fatal(err)
	}
	if major < 6 || major == 6 && minor < 14 {
		return false
	}
	o.enter("--pid", fmt.Sprintf("echo %d >/proc/sys/kernel/pid_max", n))
	return true
}

func (o *outside) LogBytes() int64 {
	o.t.Helper()
	c, err := o.p.api.ContainerInspect(o.t.Context(), o.name)
	o.must(err)
	if c.LogPath == "" {
		return 0
	}
	file, err := os.Stat(c.LogPath)
	o.must(err)
	return file.Size()
}

func (o *outside) CPU() float64 {
	o.t.Helper()
	stats, err := o.p.api.ContainerStatsOneShot(context.WithoutCancel(o.t.Context()), o.name)
	o.must(err)
	defer func() { _ = stats.Body.Close() }()
	var read container.StatsResponse
	o.must(json.NewDecoder(stats.Body).Decode(&read))
	return float64(read.CPUStats.CPUUsage.TotalUsage) / 1e9
}
