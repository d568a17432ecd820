package cli

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// binary is the program, built once for all tests.
var binary string

func TestMain(m *testing.M) { os.Exit(testMain(m)) }

func testMain(m *testing.M) int {
	flag.Parse()
	dir, err := os.MkdirTemp("", "caisson-cli-*")
	if err != nil {
		panic(err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	binary = filepath.Join(dir, "caisson")
	build := exec.Command("go", "build", "-o", binary, "caisson")
	build.Stderr = os.Stderr
	if err := build.Run(); err != nil {
		return 1
	}
	return m.Run()
}

// deadEngine is a setting that is right, of an engine that is not there.
const deadEngine = "SANDBOX_DOCKER_HOST=tcp://127.0.0.1:1"

// limit is how long any one step of a test may take.
const limit = 20 * time.Second

// program is one run of the binary.
type program struct {
	t      *testing.T
	cmd    *exec.Cmd
	stdin  io.WriteCloser
	stdout *bufio.Reader
	pipe   *os.File // below stdout
	stderr *buffer
	ended  chan struct{}
	status int
	id     int

	notices []string // methods of the notifications that have come
}

// buffer collects standard error while it is being written.
type buffer struct {
	mu   sync.Mutex
	text bytes.Buffer
	grew chan struct{}
}

func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	defer func() {
		select {
		case b.grew <- struct{}{}:
		default:
		}
	}()
	return b.text.Write(p)
}

func (b *buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}

// start runs the binary with nothing in its environment but what is given.
func start(t *testing.T, environ []string, args ...string) *program {
	t.Helper()
	p := &program{t: t, cmd: exec.Command(binary, args...), stderr: &buffer{grew: make(chan struct{}, 1)}, ended: make(chan struct{})}
	p.cmd.Env = append([]string{}, environ...)
	p.cmd.Stderr = p.stderr
	var err error
	if p.stdin, err = p.cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	p.cmd.Stdout, p.pipe, p.stdout = write, read, bufio.NewReaderSize(read, 1<<20)
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	_ = write.Close() // the program has its own
	go func() {
		defer close(p.ended)
		var exit *exec.ExitError
		if err := p.cmd.Wait(); err != nil && !errors.As(err, &exit) {
			t.Errorf("wait for the program: %v", err)
		}
		p.status = p.cmd.ProcessState.ExitCode()
	}()
	t.Cleanup(func() {
		_ = p.cmd.Process.Kill()
		<-p.ended
	})
	closing(t, read)
	return p
}

// end waits for the program and returns its exit status, -1 after a signal.
func (p *program) end() int {
	p.t.Helper()
	select {
	case <-p.ended:
		return p.status
	case <-time.After(limit):
		p.t.Fatalf("the program goes on; standard error:\n%s", p.stderr)
		return 0
	}
}

// run runs the binary to its end with an empty standard input.
func run(t *testing.T, environ []string, args ...string) (stdout string, p *program) {
	t.Helper()
	p = start(t, environ, args...)
	_ = p.stdin.Close()
	out, err := io.ReadAll(p.stdout)
	if err != nil {
		t.Fatal(err)
	}
	p.end()
	return string(out), p
}

func (p *program) signal(s syscall.Signal) {
	p.t.Helper()
	if err := p.cmd.Process.Signal(s); err != nil {
		p.t.Fatal(err)
	}
}

// says waits until standard error holds the text.
func (p *program) says(text string) string {
	p.t.Helper()
	over := time.After(limit)
	for {
		if all := p.stderr.String(); strings.Contains(all, text) {
			return all
		}
		select {
		case <-p.stderr.grew:
		case <-over:
			p.t.Fatalf("standard error does not say %q:\n%s", text, p.stderr)
		}
	}
}

// reply is a JSON-RPC message from the server.
type reply struct {
	JSONRPC string          `json:"jsonrpc"`
	ID      *int            `json:"id"`
	Method  string          `json:"method"`
	Result  json.RawMessage `json:"result"`
	Error   *struct {
		Code    int    `json:"code"`
		Message string `json:"message"`
	} `json:"error"`
}

// call sends a request and returns its result. Every line on the way must be
// one message of the protocol.
func (p *program) call(method string, params any) json.RawMessage {
	p.t.Helper()
	p.id++
	line, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": p.id, "method": method, "params": params})
	if err != nil {
		p.t.Fatal(err)
	}
	if _, err := fmt.Fprintf(p.stdin, "%s\n", line); err != nil {
		p.t.Fatalf("%s: %v; standard error:\n%s", method, err, p.stderr)
	}
	for {
		answer, err := p.stdout.ReadBytes('\n')
		if err != nil {
			p.t.Fatalf("%s: %v; standard error:\n%s", method, err, p.stderr)
		}
		var r reply
		if err := json.Unmarshal(answer, &r); err != nil || r.JSONRPC != "2.0" {
			p.t.Fatalf("standard output holds %q", answer)
		}
		if r.ID == nil || *r.ID != p.id {
			p.notices = append(p.notices, r.Method)
			continue
		}
		if r.Error != nil {
			p.t.Fatalf("%s: error %d: %s", method, r.Error.Code, r.Error.Message)
		}
		return r.Result
	}
}

// initialize greets as a client of the stable protocol does.
func (p *program) initialize() {
	p.t.Helper()
	p.call("initialize", map[string]any{
		"protocolVersion": "2025-11-25", "capabilities": map[string]any{}, "clientInfo": map[string]any{"name": "test", "version": "1"},
	})
	if _, err := io.WriteString(p.stdin, `{"jsonrpc":"2.0","method":"notifications/initialized"}`+"\n"); err != nil {
		p.t.Fatal(err)
	}
}

// tool calls a tool and returns the text of its result.
func (p *program) tool(name string, arguments map[string]any) (text string, failed bool) {
	p.t.Helper()
	var result struct {
		IsError bool `json:"isError"`
		Content []struct {
			Text string `json:"text"`
		} `json:"content"`
	}
	raw := p.call("tools/call", map[string]any{"name": name, "arguments": arguments})
	if err := json.Unmarshal(raw, &result); err != nil || len(result.Content) == 0 {
		p.t.Fatalf("%s answered %s: %v", name, raw, err)
	}
	return result.Content[0].Text, result.IsError
}

// closing closes c when the test ends.
func closing(t *testing.T, c io.Closer) {
	t.Cleanup(func() { _ = c.Close() }) // some tests have closed it by then
}

// eventually polls until ok, for no longer than the step's limit.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for ctx := soon(t); !ok(); {
		select {
		case <-tick.C:
		case <-ctx.Done():
			t.Fatalf("not within %s: %s", limit, what)
		}
	}
}

// soon is a context that ends with the step's limit.
func soon(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	t.Cleanup(cancel)
	return ctx
}
