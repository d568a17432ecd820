package cli

import (
	"encoding/json"
	"fmt"
	"net"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// quick is how long a server without sessions may take to end.
const quick = 2 * time.Second

// wrong are three faults of different kinds.
var wrong = []string{"SANDBOX_DOCKER_PULL_POLICY=sometimes", "SANDBOX_DOCKER_DEFAULT_CPU=many", "SANDBOX_DOCKER_HOST=ssh://engine"}

func TestWrongSettingsEndAnHTTPServerWithAllFaultsAtOnce(t *testing.T) {
	out, p := run(t, wrong, "serve", "--transport", "http")
	if p.status != exitSetting || out != "" {
		t.Errorf("status %d, standard output %q", p.status, out)
	}
	text := p.stderr.String()
	for _, want := range []string{"3 settings are wrong", "SANDBOX_DOCKER_HOST", "SANDBOX_DOCKER_DEFAULT_CPU takes", "SANDBOX_DOCKER_PULL_POLICY takes"} {
		if !strings.Contains(text, want) {
			t.Errorf("standard error lacks %q:\n%s", want, text)
		}
	}
}

func TestWrongSettingsAreEveryAnswerOfAStdioServer(t *testing.T) {
	p := start(t, wrong, "serve")
	p.initialize()
	for _, tool := range []string{"session_list", "exec", "session_create"} {
		text, failed := p.tool(tool, nil)
		if !failed {
			t.Errorf("%s succeeded: %s", tool, text)
		}
		for _, want := range []string{"SANDBOX_DOCKER_HOST", "SANDBOX_DOCKER_DEFAULT_CPU", "SANDBOX_DOCKER_PULL_POLICY", "start it again"} {
			if !strings.Contains(text, want) {
				t.Errorf("%s does not say %q: %s", tool, want, text)
			}
		}
	}
	_ = p.stdin.Close()
	if status := p.end(); status != exitOK {
		t.Errorf("status %d", status)
	}
}

func TestAnUnknownTransportIsNotTakenForStdio(t *testing.T) {
	_, p := run(t, []string{deadEngine, "SANDBOX_MCP_TRANSPORT=htpp"}, "serve")
	if p.status != exitSetting || !strings.Contains(p.stderr.String(), "SANDBOX_MCP_TRANSPORT takes stdio or http") {
		t.Errorf("status %d: %s", p.status, p.stderr)
	}
}

// The engine's socket is there and DOCKER_HOST names it: nobody knocks.
func TestCFG02_NoHostMeansNoEngine(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "docker.sock")
	listener, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	closing(t, listener)
	knocked := make(chan struct{})
	go func() {
		if conn, err := listener.Accept(); err == nil {
			close(knocked)
			_ = conn.Close()
		}
	}()
	environ := []string{"DOCKER_HOST=unix://" + socket, "HOME=" + t.TempDir()}
	p := start(t, environ, "serve")
	p.initialize()
	if text, failed := p.tool("session_list", nil); !failed || !strings.Contains(text, "SANDBOX_DOCKER_HOST is required") {
		t.Errorf("session_list: %s", text)
	}
	_ = p.stdin.Close()
	p.end()
	if _, p := run(t, environ, "serve", "--transport=http"); p.status != exitSetting || !strings.Contains(p.stderr.String(), "SANDBOX_DOCKER_HOST") {
		t.Errorf("http: status %d: %s", p.status, p.stderr)
	}
	select {
	case <-knocked:
		t.Error("the engine was asked")
	default:
	}
}

func TestCFG04_OtherFormsOfHostAreRefused(t *testing.T) {
	for _, host := range []string{"ssh://engine", "npipe:////./pipe/docker_engine", "fd://", "engine:2375", "docker.sock", "tcp://", "tcp://:2376", "unix://", "unix://relative", "http://u:hunter2@engine"} {
		_, p := run(t, []string{"SANDBOX_DOCKER_HOST=" + host}, "serve", "--transport=http")
		text := p.stderr.String()
		if p.status != exitSetting || !strings.Contains(text, "SANDBOX_DOCKER_HOST") || strings.Contains(text, "hunter2") {
			t.Errorf("%s: status %d: %s", host, p.status, text)
		}
	}
}

func TestBugEN02_ADeadEngineIsNoReasonNotToStart(t *testing.T) {
	p := start(t, []string{deadEngine, "SANDBOX_DOCKER_TLS_VERIFY=false"}, "serve")
	p.initialize()
	if text, failed := p.tool("exec", map[string]any{"command": "true"}); !failed || !strings.HasPrefix(text, "engine_unavailable:") || !strings.Contains(text, "127.0.0.1:1") {
		t.Errorf("exec: %s", text)
	}
}

// Without a PATH there is nothing that the server could start.
func TestCON01_ServesWithAnEmptyPath(t *testing.T) {
	p := start(t, []string{deadEngine, "PATH="}, "serve")
	p.initialize()
	var list struct {
		Tools []struct{ Name string } `json:"tools"`
	}
	if err := json.Unmarshal(p.call("tools/list", map[string]any{}), &list); err != nil || len(list.Tools) == 0 {
		t.Errorf("tools/list: %v, %d tools", err, len(list.Tools))
	}
}

func TestBugLC02_EndsWithItsInput(t *testing.T) {
	for name, p := range map[string]*program{
		"engine":    start(t, []string{deadEngine}, "serve"),
		"no engine": start(t, nil, "serve"),
		"bare":      start(t, []string{deadEngine}),
	} {
		began := time.Now()
		_ = p.stdin.Close()
		if status := p.end(); status != exitOK {
			t.Errorf("%s: status %d: %s", name, status, p.stderr)
		}
		if took := time.Since(began); took > quick {
			t.Errorf("%s: ended after %v", name, took)
		}
	}
}

func TestBugLC02_EndsAfterASignal(t *testing.T) {
	for _, args := range [][]string{{"serve"}, {"serve", "--transport=http", "--addr=127.0.0.1:0"}} {
		for _, signal := range []syscall.Signal{syscall.SIGTERM, syscall.SIGINT} {
			p := start(t, []string{deadEngine}, args...)
			if len(args) == 1 {
				p.initialize()
			} else {
				p.says("listening on")
			}
			began := time.Now()
			p.signal(signal)
			if status := p.end(); status != exitOK || time.Since(began) > quick {
				t.Errorf("%v %v: status %d after %v: %s", args, signal, status, time.Since(began), p.stderr)
			}
		}
	}
}

func TestBugMT03_StandardOutputIsProtocolOnlyAndStandardErrorMayFill(t *testing.T) {
	p := start(t, []string{deadEngine, "SANDBOX_MCP_LOG_LEVEL=debug", "SANDBOX_DOCKER_TLS_VERIFY=false", "SANDBOX_DOCKER_NONSENSE=1"}, "serve")
	p.initialize()
	for range 20 {
		p.tool("session_create", nil) // call checks every line
	}
	p.says("SANDBOX_DOCKER_NONSENSE")
	p.call("ping", map[string]any{})
}

// A client that is killed breaks both pipes. The first line that the server
// writes then must not end it before it has tidied up.
func TestBugLC01_ABrokenPipeDoesNotEndTheServerHalfWay(t *testing.T) {
	p := start(t, []string{deadEngine, "SANDBOX_MCP_LOG_LEVEL=debug"}, "serve")
	p.initialize()
	if err := p.pipe.Close(); err != nil {
		t.Fatal(err)
	}
	for i := range 10 {
		// The server may have ended by then, which is as good.
		_, _ = fmt.Fprintf(p.stdin, `{"jsonrpc":"2.0","id":%d,"method":"ping"}`+"\n", 100+i)
	}
	_ = p.stdin.Close()
	if status := p.end(); status == -1 {
		t.Errorf("ended by a signal: %v", p.cmd.ProcessState)
	}
}
