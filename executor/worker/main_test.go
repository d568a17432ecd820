package worker_test

import (
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

// binary is the worker as it is built for an image.
var binary string

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "caisson-worker-test")
	if err == nil {
		binary = filepath.Join(dir, "caisson-worker")
		build := exec.Command("go", "build", "-trimpath", "-o", binary, "./caisson-worker")
		build.Env = append(os.Environ(), "CGO_ENABLED=0")
		var out []byte
		if out, err = build.CombinedOutput(); err != nil {
			err = fmt.Errorf("%w: %s", err, out)
		}
	}
	code := 1
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
	} else {
		code = m.Run()
	}
	_ = os.RemoveAll(dir)
	os.Exit(code)
}

// call is one run of the worker.
type call struct {
	path, method string
	parts        map[string]any
	arguments    any
	timeout      time.Duration
	args         []string // more of them
	env          []string // more of it
	dir          string
}

// outcome is what came of it.
type outcome struct {
	wire.Result
	code           int
	stdout, stderr string
	progress       []wire.Progress
	took           time.Duration
}

func (c call) envelope(t *testing.T) wire.Envelope {
	t.Helper()
	e := wire.Envelope{ToolPath: c.path, Method: c.method, InitArgs: map[string]json.RawMessage{}, Timeout: c.timeout, Nonce: wire.NewNonce()}
	for name, part := range c.parts {
		e.InitArgs[name] = asJSON(t, part)
	}
	if c.arguments != nil {
		e.Arguments = asJSON(t, c.arguments)
	}
	if e.Timeout == 0 {
		e.Timeout = 30 * time.Second
	}
	return e
}

func asJSON(t *testing.T, value any) json.RawMessage {
	t.Helper()
	text, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// command makes the process of a call.
func (c call) command(t *testing.T, e wire.Envelope) (cmd *exec.Cmd, stdout, stderr *bytes.Buffer) {
	t.Helper()
	text, err := e.Encode()
	if err != nil {
		t.Fatal(err)
	}
	cmd = exec.Command(binary, c.args...)
	cmd.Stdin, cmd.Dir = bytes.NewReader(text), c.dir
	cmd.Env = append(append(os.Environ(), "TMPDIR="+t.TempDir()), c.env...)
	stdout, stderr = &bytes.Buffer{}, &bytes.Buffer{}
	cmd.Stdout, cmd.Stderr = stdout, stderr
	return cmd, stdout, stderr
}

func (c call) run(t *testing.T) outcome {
	t.Helper()
	e := c.envelope(t)
	cmd, stdout, stderr := c.command(t, e)
	start := time.Now()
	_ = cmd.Run()
	return read(e, cmd, stdout, stderr, start)
}

func read(e wire.Envelope, cmd *exec.Cmd, stdout, stderr *bytes.Buffer, start time.Time) outcome {
	o := outcome{
		Result: wire.ReadResult(stdout.Bytes(), e.Nonce), code: cmd.ProcessState.ExitCode(),
		stdout: stdout.String(), stderr: stderr.String(), took: time.Since(start),
	}
	for line := range bytes.Lines(stdout.Bytes()) {
		if p, ok := wire.ReadProgress(line, e.Nonce); ok {
			o.progress = append(o.progress, p)
		}
	}
	return o
}

// shell runs a shell script as a tool.
func shell(script string, arguments any) call {
	return call{path: wire.CommandPath, parts: map[string]any{"name": "t", "command": []string{"sh", "-c", script}}, arguments: arguments}
}

func (o outcome) wants(t *testing.T, status wire.Status, text string) {
	t.Helper()
	if o.code != 0 || o.Status != status || !strings.Contains(o.Error+string(o.Result.Result), text) {
		t.Errorf("exit %d, %s, %q, result %.300s; want %s with %q\nstderr %s", o.code, o.Status, o.Error, o.Result.Result, status, text, o.stderr)
	}
}
