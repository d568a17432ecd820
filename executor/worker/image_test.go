package worker_test

import (
	"archive/zip"
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"caisson/executor/wire"
)

const testImage = "caisson-test-toolkits"

// docker runs the engine's client on the test engine.
func docker(t *testing.T, stdin []byte, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	file := os.Getenv("CAISSON_TEST_ENGINE")
	if file == "" {
		t.Fatal("needs an engine: run make test, or set CAISSON_TEST_ENGINE")
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	env := append(os.Environ(), "DOCKER_TLS_VERIFY=1", "DOCKER_BUILDKIT=0")
	for line := range strings.Lines(string(text)) {
		name, value, _ := strings.Cut(strings.TrimPrefix(strings.TrimSpace(line), "export "), "=")
		switch value = strings.Trim(value, "'"); name {
		case "SANDBOX_DOCKER_HOST":
			env = append(env, "DOCKER_HOST="+value)
		case "SANDBOX_DOCKER_TLS_CA_PATH":
			env = append(env, "DOCKER_CERT_PATH="+filepath.Dir(value))
		}
	}
	cmd := exec.Command("docker", args...)
	var out, errs bytes.Buffer
	cmd.Env, cmd.Stdin, cmd.Stdout, cmd.Stderr = env, bytes.NewReader(stdin), &out, &errs
	if err := cmd.Run(); err != nil && cmd.ProcessState == nil {
		t.Fatal(err)
	}
	return out.String(), errs.String(), cmd.ProcessState.ExitCode()
}

// must runs it and wants it to work.
func must(t *testing.T, args ...string) string {
	t.Helper()
	out, errs, code := docker(t, nil, args...)
	if code != 0 {
		t.Fatalf("docker %s: exit %d\n%s%s", strings.Join(args, " "), code, out, errs)
	}
	return strings.TrimSpace(out)
}

// hardened are the limits of a tool's container.
func hardened(t *testing.T) []string {
	return []string{
		"--network", "none", "--memory", "512m", "--memory-swap", "512m", "--pids-limit", "256",
		"--cap-drop", "ALL", "--security-opt", "no-new-privileges", "--label", "caisson.test=" + t.Name(),
	}
}

// warm starts a container that waits for calls, as a session does.
func warm(t *testing.T) (id string) {
	t.Helper()
	id = must(t, append(append([]string{"run", "--detach"}, hardened(t)...), testImage, "sleep", "infinity")...)
	t.Cleanup(func() { must(t, "rm", "--force", "--volumes", id) })
	return id
}

// in runs a call in a container, warm with an id, else in one of its own.
func (c call) in(t *testing.T, id string) outcome {
	t.Helper()
	e := c.envelope(t)
	text, err := e.Encode()
	if err != nil {
		t.Fatal(err)
	}
	args := append(append([]string{"run", "--interactive", "--rm"}, hardened(t)...), testImage)
	if id != "" {
		args = []string{"exec", "--interactive", id, "caisson-worker", "--envelope", "-", "--resident"}
	}
	start := time.Now()
	out, errs, code := docker(t, text, args...)
	return outcome{Result: wire.ReadResult([]byte(out), e.Nonce), code: code, stdout: out, stderr: errs, took: time.Since(start)}
}

func server(tool string, arguments any, argv ...string) call {
	return call{path: wire.ToolkitPath, method: tool, parts: map[string]any{"name": "Kit", "command": argv}, arguments: arguments, timeout: 90 * time.Second}
}

func TestIMG02_IMG05_TheImageRunsUnprivilegedBelowAnInitAndHoldsNoSecret(t *testing.T) {
	var config struct {
		User, WorkingDir     string
		Entrypoint, Cmd, Env []string
	}
	if err := json.Unmarshal([]byte(must(t, "image", "inspect", "--format", "{{json .Config}}", "caisson-tools:latest")), &config); err != nil {
		t.Fatal(err)
	}
	if config.User != "1000:1000" || config.WorkingDir != "/workspace" || fmt.Sprint(config.Entrypoint) != "[/usr/bin/tini --]" ||
		fmt.Sprint(config.Cmd) != "[caisson-worker --envelope -]" {
		t.Errorf("the image has %+v", config)
	}
	for _, pair := range config.Env {
		if name, _, _ := strings.Cut(pair, "="); !strings.Contains(" PATH LANG MPLBACKEND OPENBLAS_NUM_THREADS PIP_BREAK_SYSTEM_PACKAGES PIP_DISABLE_PIP_VERSION_CHECK PIP_NO_CACHE_DIR ", " "+name+" ") {
			t.Errorf("the image sets %s", name)
		}
	}
	if history := must(t, "history", "--no-trunc", "caisson-tools:latest"); strings.Contains(strings.ToLower(history), "token") || strings.Contains(strings.ToLower(history), "secret") {
		t.Errorf("the history tells of secrets: %s", history)
	}
	look := `id -u; tr '\0' ' ' < /proc/1/cmdline; echo; find / -xdev -type f -perm /6000 2>/dev/null; test -w /workspace && echo writable; ls /usr/share/caisson`
	got := must(t, append(append([]string{"run", "--rm"}, hardened(t)...), "caisson-tools:latest", "sh", "-c", look)...)
	if !strings.HasPrefix(got, "1000\n/usr/bin/tini -- sh -c ") || strings.Contains(got, "/usr/bin/su\n") || !strings.Contains(got, "\nwritable\n") || strings.Contains(got, "wheels") {
		t.Errorf("inside: %s", got)
	}
}

func TestIMG06_TX25_OneImageServesBothModes(t *testing.T) {
	id := warm(t)
	for mode, id := range map[string]string{"ephemeral": "", "warm": id} {
		o := shell("id -u; hostname; cat", map[string]string{"k": "v"}).in(t, id)
		o.wants(t, wire.StatusSuccess, `1000\n`)
		if mode == "warm" {
			o.wants(t, wire.StatusSuccess, id[:12])
		}
	}
	if left := must(t, "ps", "--all", "--quiet", "--no-trunc", "--filter", "label=caisson.test="+t.Name()); left != id {
		t.Errorf("containers left: %q", left)
	}
}

func TestTX25_TheOfficialServersRunInBothModes(t *testing.T) {
	id := warm(t)
	must(t, "exec", id, "sh", "-c", "echo inside > /workspace/note.txt")
	list := server("", nil, "mcp-server-filesystem", "/workspace")
	list.path = wire.ToolkitListPath
	for _, where := range []string{id, ""} {
		list.in(t, where).wants(t, wire.StatusSuccess, `"read_text_file"`)
		server("echo", map[string]any{"message": "hello"}, "mcp-server-everything").in(t, where).wants(t, wire.StatusSuccess, "hello")
	}
	server("read_text_file", map[string]any{"path": "/workspace/note.txt"}, "mcp-server-filesystem", "/workspace").in(t, id).wants(t, wire.StatusSuccess, "inside")
	server("read_text_file", map[string]any{"path": "/etc/passwd"}, "mcp-server-filesystem", "/workspace").in(t, id).wants(t, wire.StatusError, "denied")
	entity := map[string]any{"entities": []any{map[string]any{"name": "Ada", "entityType": "person", "observations": []string{"wrote notes"}}}}
	env := []string{"env", "MEMORY_FILE_PATH=/tmp/memory.json", "mcp-server-memory"}
	server("create_entities", entity, env...).in(t, id).wants(t, wire.StatusSuccess, "Ada")
	server("read_graph", map[string]any{}, env...).in(t, id).wants(t, wire.StatusSuccess, "wrote notes")
	server("create_entities", entity, env...).in(t, "").wants(t, wire.StatusSuccess, "Ada")
	if o := server("read_graph", map[string]any{}, env...).in(t, ""); strings.Contains(string(o.Result.Result), "Ada") || o.Status != wire.StatusSuccess {
		t.Errorf("a container of its own remembers: %s %s", o.Result.Result, o.Error)
	}
	o := server("get-tiny-image", map[string]any{}, "mcp-server-everything").in(t, id)
	if len(o.Images) != 1 || o.Images[0].MIMEType != "image/png" || len(o.Images[0].Data) < 100 {
		t.Errorf("%d images, %s %s", len(o.Images), o.Error, o.Result.Result)
	}
}

func TestTX20_ACommandThatTheKernelKillsForItsMemorySaysSo(t *testing.T) {
	const hungry = `python3 -c "x = b'x' * (600 << 20)"`
	for _, script := range []string{hungry, "exec " + hungry} { // the shell tells of it, or is it
		shell(script, nil).in(t, "").wants(t, wire.StatusError, "after the container ran out of memory and the kernel killed a process in it")
	}
	o := shell("kill -9 $$", nil).in(t, "")
	o.wants(t, wire.StatusError, "SIGKILL")
	if strings.Contains(o.Error, "memory") {
		t.Error(o.Error)
	}
}

func TestTX27_AREPLInAContainerDrawsAndDiesOfItsMemory(t *testing.T) {
	id := warm(t)
	o := python("a", "import matplotlib.pyplot as plt\nplt.plot([1, 4, 9])\nv = 1").in(t, id)
	if len(o.Images) != 1 || !bytes.HasPrefix(o.Images[0].Data, []byte("\x89PNG\r\n")) {
		t.Fatalf("%d images: %s %s", len(o.Images), o.Error, o.stderr)
	}
	o = python("a", "x = bytearray(2 << 30)").in(t, id)
	o.wants(t, wire.StatusDoneWithErrors, "ran out of memory")
	python("a", "v").in(t, id).wants(t, wire.StatusSuccess, `"value":"1"`)
	// Below the limit of its address space, above the container's memory.
	o = python("a", "x = b'x' * (600 << 20)").in(t, id)
	o.wants(t, wire.StatusError, "it ran out of memory and was killed")
	o.wants(t, wire.StatusError, "lost: plt, v")
	python("a", "6 * 7").in(t, id).wants(t, wire.StatusSuccess, "42")
}

func TestAGT02_AGT03_TheImageHasAgents(t *testing.T) {
	id := warm(t)
	agent := func(ref string) call {
		c := ask("/etc/caisson/agents", "", ref, map[string]string{"question": "Why?"})
		return c
	}
	for range 2 {
		agent("dummy").in(t, id).wants(t, wire.StatusSuccess, `asked: {\"question\":\"Why?\",\"include_previous_results\":false} key: none`)
	}
	if got := must(t, "exec", id, "cat", "/tmp/dummy-is-ready"); got != "ready" {
		t.Errorf("the agent was set up %q", got)
	}
	agent("nobody").in(t, id).wants(t, wire.StatusError, "it has dummy, reviewer")
	agent("reviewer").in(t, id).wants(t, wire.StatusError, "AGENT_COMMAND")
	c := agent("reviewer")
	e := c.envelope(t)
	text, err := e.Encode()
	if err != nil {
		t.Fatal(err)
	}
	out, errs, _ := docker(t, text, append(append([]string{"run", "--interactive", "--rm", "--env", "AGENT_COMMAND=tr a-z A-Z"}, hardened(t)...), testImage)...)
	if r := wire.ReadResult([]byte(out), e.Nonce); !strings.Contains(string(r.Result), "WHY?") || !strings.Contains(string(r.Result), "YOU REVIEW CHANGES.") {
		t.Errorf("%s %s %s", r.Error, r.Result, errs)
	}
}

func TestIMG01_IMG03_IMG04_BuildArgumentsAndWheelsChooseWhatIsInIt(t *testing.T) {
	dir := t.TempDir()
	if out, err := exec.Command("cp", "-a", "../../images", filepath.Join(dir, "images")).CombinedOutput(); err != nil {
		t.Fatal(err, string(out))
	}
	if out, err := exec.Command("cp", binary, filepath.Join(dir, "images/tools/bin/caisson-worker")).CombinedOutput(); err != nil {
		t.Fatal(err, string(out))
	}
	wheel(t, filepath.Join(dir, "images/tools/wheels"), "private_thing")
	tag := fmt.Sprintf("caisson-test-build:%d", os.Getpid())
	build := func(args ...string) (string, int) {
		out, errs, code := docker(t, nil, append(append([]string{
			"build", "--network", "none", "--file", filepath.Join(dir, "images/tools/Dockerfile"),
			"--tag", tag, "--build-arg", "BASE_IMAGE=caisson-tools-base:latest",
		}, args...), dir)...)
		return out + errs, code
	}
	t.Cleanup(func() { _, _, _ = docker(t, nil, "image", "rm", "--force", tag) })
	if out, code := build("--build-arg", "PYTHON_VERSION=2.7"); code == 0 || !strings.Contains(out, "Python is 3.") {
		t.Errorf("another Python is not refused: exit %d %s", code, out)
	}
	if out, code := build("--build-arg", "PYTHON_VERSION=3.11", "--build-arg", "EXTRA_PACKAGES=jq git"); code != 0 {
		t.Fatalf("exit %d %s", code, out)
	}
	if got := must(t, "run", "--rm", "--network", "none", tag, "python3", "-c", "import private_thing; print(private_thing.NAME)"); got != "private_thing" {
		t.Errorf("the wheel gives %q", got)
	}
	if out, code := build("--build-arg", "EXTRA_NPM_PACKAGES=no-such-thing"); code == 0 {
		t.Errorf("a package that cannot be had is forgotten: %s", out)
	}
}

// wheel writes a Python package of one module.
func wheel(t *testing.T, dir, name string) {
	t.Helper()
	f, err := os.Create(filepath.Join(dir, name+"-1.0-py3-none-any.whl"))
	if err != nil {
		t.Fatal(err)
	}
	z := zip.NewWriter(f)
	info := name + "-1.0.dist-info/"
	for file, text := range map[string]string{
		name + ".py":      "NAME = '" + name + "'\n",
		info + "METADATA": "Metadata-Version: 2.1\nName: " + name + "\nVersion: 1.0\n",
		info + "WHEEL":    "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
		info + "RECORD":   name + ".py,,\n" + info + "METADATA,,\n" + info + "WHEEL,,\n" + info + "RECORD,,\n",
	} {
		w, err := z.Create(file)
		if err == nil {
			_, err = w.Write([]byte(text))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
}
