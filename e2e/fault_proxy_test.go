package e2e_test

import (
	"bufio"
	"fmt"
	"io"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// faultProxy is the proxy that stands between a server and its engine and breaks
// what its rules say.
type faultProxy struct {
	t   testing.TB
	env []string // of a server that reaches the engine through it

	mu    sync.Mutex
	in    io.WriteCloser
	lines *bufio.Reader
}

// engineCall is one call that the proxy has seen.
type engineCall struct {
	at           time.Time
	method, path string
	status       int    // the engine's answer; 0: none
	done         string // what the proxy did to it
}

var builtProxy = sync.OnceValues(func() (string, error) {
	out := filepath.Join(the.dir, "faultproxy")
	text, err := exec.Command("go", "build", "-o", out, "../sandbox/docker/internal/faultproxy").CombinedOutput()
	if err != nil {
		err = fmt.Errorf("go build faultproxy: %w\n%s", err, text)
	}
	return out, err
})

// through starts a proxy to an engine, which ends with the test.
func through(t testing.TB, vars map[string]string) *faultProxy {
	t.Helper()
	onStage(t)
	program, err := builtProxy()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	cmd := exec.Command(program, "-engine", vars["SANDBOX_DOCKER_HOST"], "-cert", filepath.Dir(vars["SANDBOX_DOCKER_TLS_CERT_PATH"]), "-out", dir)
	p := &faultProxy{t: t}
	if p.in, err = cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	said := &transcript{grew: make(chan struct{})}
	cmd.Stderr = said
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	p.lines = bufio.NewReader(out)
	t.Cleanup(func() {
		p.in.Close()
		if err := cmd.Wait(); err != nil {
			t.Errorf("faultproxy: %v\n%s", err, said)
		}
	})
	first, _ := p.lines.ReadString('\n')
	address, ok := strings.CutPrefix(strings.TrimSpace(first), "listening ")
	if !ok {
		t.Fatalf("faultproxy: %q\n%s", first, said)
	}
	p.env = []string{
		"SANDBOX_DOCKER_HOST=tcp://" + address, "SANDBOX_DOCKER_TLS_CA_PATH=" + filepath.Join(dir, "ca.pem"),
		"SANDBOX_DOCKER_TLS_CERT_PATH=" + filepath.Join(dir, "client-cert.pem"), "SANDBOX_DOCKER_TLS_KEY_PATH=" + filepath.Join(dir, "client-key.pem"),
	}
	return p
}

// tell gives the proxy a command and returns what it answers behind its ok.
func (p *faultProxy) tell(command string) string {
	p.t.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.ask(command)
}

func (p *faultProxy) ask(command string) string {
	p.t.Helper()
	if _, err := io.WriteString(p.in, command+"\n"); err != nil {
		p.t.Fatal(err)
	}
	answer, err := p.lines.ReadString('\n')
	word, ok := strings.CutPrefix(strings.TrimSpace(answer), "ok")
	if err != nil || !ok {
		p.t.Fatalf("faultproxy: %s: %q %v", command, answer, err)
	}
	return strings.TrimSpace(word)
}

// rule makes these the proxy's only rules.
func (p *faultProxy) rule(lines ...string) {
	p.t.Helper()
	p.tell("clear")
	for _, line := range lines {
		p.tell("rule " + line)
	}
}

// calls are the calls since forget.
func (p *faultProxy) calls() []engineCall {
	p.t.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	n, err := strconv.Atoi(p.ask("calls"))
	if err != nil {
		p.t.Fatal(err)
	}
	all := make([]engineCall, n)
	for i := range all {
		line, err := p.lines.ReadString('\n')
		f := strings.SplitN(strings.TrimSuffix(line, "\n"), " ", 5)
		if err != nil || len(f) != 5 {
			p.t.Fatalf("faultproxy: %q %v", line, err)
		}
		c := engineCall{method: f[1], path: f[2], done: f[4]}
		if c.at, err = time.Parse(time.RFC3339Nano, f[0]); err == nil {
			c.status, err = strconv.Atoi(f[3])
		}
		if err != nil {
			p.t.Fatalf("faultproxy: %q: %v", line, err)
		}
		all[i] = c
	}
	return all
}

// count is how many calls there were with this method and beginning of a path.
func (p *faultProxy) count(method, path string) int {
	p.t.Helper()
	n := 0
	for _, c := range p.calls() {
		if c.method == method && strings.HasPrefix(c.path, path) {
			n++
		}
	}
	return n
}
