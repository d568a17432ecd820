package e2e_test

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// launch says how a server is started.
type launch struct {
	plain bool     // without the race detector, for tests that measure
	other string   // another program, in the place of both
	http  bool     // serve HTTP on a free port of loopback
	env   []string // beside and over the engine's variables
	args  []string // instead of serve
	mute  bool     // nobody reads its standard error
}

// server is one running program.
type server struct {
	instance string
	url      string // of an HTTP server, without a path
	cmd      *exec.Cmd
	stdin    io.WriteCloser
	stdout   io.Reader
	stderr   *transcript
	exited   chan struct{} // closed once status is there
	status   error
}

// transcript keeps what a server says on its standard error.
type transcript struct {
	mu   sync.Mutex
	text bytes.Buffer
	grew chan struct{}
}

func (tr *transcript) Write(p []byte) (int, error) {
	tr.mu.Lock()
	defer tr.mu.Unlock()
	close(tr.grew)
	tr.grew = make(chan struct{})
	return tr.text.Write(p)
}

func (tr *transcript) String() string {
	tr.mu.Lock()
	defer tr.mu.Unlock()
	return tr.text.String()
}

// find waits until the transcript matches, the server has exited or the time is
// over, and returns the match.
func (tr *transcript) find(form *regexp.Regexp, exited <-chan struct{}, limit time.Duration) []string {
	deadline := time.After(limit)
	for {
		tr.mu.Lock()
		m, grew := form.FindStringSubmatch(tr.text.String()), tr.grew
		tr.mu.Unlock()
		if m != nil {
			return m
		}
		select {
		case <-grew:
		case <-exited:
			return form.FindStringSubmatch(tr.String())
		case <-deadline:
			return nil
		}
	}
}

var listening = regexp.MustCompile(`listening on (http://[0-9.]+:[0-9]+)`)

// launch starts a server. Its environment is the engine's variables, what l
// adds, and nothing of the test's own.
func (s *stage) launch(l launch) (*server, error) {
	v := &server{instance: fmt.Sprintf("%s%d", s.run, s.servers.Add(1)), exited: make(chan struct{}), stderr: &transcript{grew: make(chan struct{})}}
	program := s.raced
	if l.plain {
		program = s.plain
	}
	if l.other != "" {
		program = l.other
	}
	args := []string{"serve"}
	if l.args != nil {
		args = l.args
	}
	v.cmd = exec.Command(program, args...)
	v.cmd.Dir = s.dir
	v.cmd.Env = slices.Concat([]string{"PATH=/nowhere", "HOME=" + s.dir, "TMPDIR=" + s.dir, "SANDBOX_DOCKER_INSTANCE=" + v.instance}, s.env)
	if l.http {
		v.cmd.Env = append(v.cmd.Env, "SANDBOX_MCP_TRANSPORT=http", "SANDBOX_MCP_ADDR=127.0.0.1:0")
	}
	v.cmd.Env = append(v.cmd.Env, l.env...)
	var err error
	if v.stdin, err = v.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, in, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	v.stdout, v.cmd.Stdout = out, in
	if l.mute {
		unread, end, err := os.Pipe()
		if err != nil {
			return nil, err
		}
		defer end.Close()
		v.cmd.Stderr = end
		go func() { <-v.exited; unread.Close() }() // stays open and unread as long as the server runs
	} else {
		v.cmd.Stderr = v.stderr
	}
	if err := v.cmd.Start(); err != nil {
		return nil, err
	}
	in.Close()
	go func() {
		v.status = v.cmd.Wait()
		close(v.exited)
	}()
	if l.http {
		m := v.stderr.find(listening, v.exited, 20*time.Second)
		if m == nil {
			_ = v.cmd.Process.Kill()
			return nil, fmt.Errorf("the server does not say where it listens:\n%s", v.stderr)
		}
		v.url = m[1]
	}
	return v, nil
}

// start starts a server for one test and ends it with the test.
func start(t testing.TB, l launch) *server {
	t.Helper()
	v, err := onStage(t).launch(l)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		err := v.end()
		if v.url != "" && l.args == nil {
			err = errors.Join(err, v.clear())
		}
		if err != nil {
			t.Error(err)
		}
	})
	return v
}

// end ends a server as its client or its supervisor would, and says what was
// wrong with it. It may be called again.
func (v *server) end() error {
	if v.url != "" {
		_ = v.cmd.Process.Signal(syscall.SIGTERM)
	}
	v.stdin.Close()
	select {
	case <-v.exited:
	case <-time.After(25 * time.Second):
		_ = v.cmd.Process.Signal(syscall.SIGQUIT) // shows what it hangs on
		select {
		case <-v.exited:
		case <-time.After(5 * time.Second):
			_ = v.cmd.Process.Kill()
			<-v.exited
		}
		return fmt.Errorf("the server did not end:\n%s", tail(v.stderr.String()))
	}
	if text := v.stderr.String(); strings.Contains(text, "DATA RACE") {
		return errors.New(text)
	}
	return nil
}

// clear removes what an instance keeps on the engine when its server has ended: the
// sessions of a shared endpoint stay for the next server.
func (v *server) clear() error {
	clear := exec.Command(v.cmd.Path, "sessions", "destroy", "--instance", v.instance)
	clear.Dir, clear.Env = v.cmd.Dir, v.cmd.Env
	if out, err := clear.CombinedOutput(); err != nil {
		return fmt.Errorf("clear %s: %w: %s", v.instance, err, out)
	}
	return nil
}

// code is the exit status once it has exited.
func (v *server) code(t testing.TB, within time.Duration) int {
	t.Helper()
	select {
	case <-v.exited:
		return v.cmd.ProcessState.ExitCode()
	case <-time.After(within):
		t.Fatalf("the server has not exited after %v:\n%s", within, tail(v.stderr.String()))
		return -1
	}
}

// rss is the server's resident memory in bytes.
func (v *server) rss(t testing.TB) int64 {
	t.Helper()
	file, err := os.Open(fmt.Sprintf("/proc/%d/status", v.cmd.Process.Pid))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	for lines := bufio.NewScanner(file); lines.Scan(); {
		var kib int64
		if n, _ := fmt.Sscanf(lines.Text(), "VmRSS: %d kB", &kib); n == 1 {
			return kib << 10
		}
	}
	t.Fatal("no VmRSS")
	return 0
}

func tail(text string) string {
	const most = 6000
	return text[max(0, len(text)-most):]
}
