package e2e_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// times is how often something is done: what the variable says, or else the usual.
func times(t testing.TB, variable string, usual int) int {
	t.Helper()
	text := os.Getenv(variable)
	if text == "" {
		return usual
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 {
		t.Fatalf("%s: %q", variable, text)
	}
	return n
}

// soak is commands of ten kinds, many at a time.
type soak struct {
	conn
	sessions [4]string
}

// truth is what a kind of command must end with, as it was.
type truth struct {
	name string
	tell func(*soak, context.Context, string, int) error
}

var truths = []truth{
	{"fast", one(`echo fast; exit 3`, 0, "exited", 3, "fast\n", "")},
	{"failing", one(`echo no >&2; exit 1`, 0, "exited", 1, "", "no\n")},
	{"forking", one(`for i in 1 2 3 4 5 6 7 8; do (sleep 0.1; sleep 0.1 &) & done; wait; echo forked; exit 4`, 0, "exited", 4, "forked\n", "")},
	{"escaping", one(`setsid sleep 2 >/dev/null 2>&1 & echo gone; exit 5`, 0, "exited", 5, "gone\n", "")},
	{"deaf", (*soak).deaf},
	{"large", (*soak).large},
	{"held", one(`(sleep 0.5; echo late) & echo early; exit 7`, 0, "exited", 7, "early\nlate\n", "")},
	{"slow", one(`echo slow; sleep 600 & sleep 600`, 3, "timed_out", -1, "slow\n", "")},
	{"killed", (*soak).killed},
	{"cancelled", (*soak).cancelled},
}

func (x execOut) is(status string, code int, stdout, stderr string) error {
	have := -1
	if x.ExitCode != nil {
		have = *x.ExitCode
	}
	if x.Status != status || have != code || x.Stdout != stdout || x.Stderr != stderr || !x.OutputComplete {
		return fmt.Errorf("want %s with %d, %q, %q, got %v", status, code, stdout, stderr, x)
	}
	return nil
}

// ask makes a call and reads its result.
func (s *soak) ask(ctx context.Context, tool string, arguments args) (execOut, error) {
	var x execOut
	r, err := s.call(ctx, tool, arguments)
	switch {
	case err != nil:
	case r.IsError && len(r.Structured) == 0:
		err = errors.New(clip(r.text())) // what the server says of it
	default:
		err = unmarshal(r, &x)
	}
	if err == nil && r.IsError && x.Status == "" {
		err = errors.New(clip(r.text()))
	}
	return x, err
}

func script(session, text string) args {
	return args{"session_id": session, "argv": []string{"sh", "-c", text}, "wait_seconds": 50}
}

// one is a command that tells all in one call.
func one(text string, timeout int, status string, code int, stdout, stderr string) func(*soak, context.Context, string, int) error {
	return func(s *soak, ctx context.Context, session string, _ int) error {
		arguments := script(session, text)
		if timeout > 0 {
			arguments["timeout_seconds"] = timeout
		}
		x, err := s.ask(ctx, "exec", arguments)
		if err != nil {
			return err
		}
		return x.is(status, code, stdout, stderr)
	}
}

// begin starts a command that prints on, and returns once it has.
func (s *soak) begin(ctx context.Context, session, text string) (execOut, error) {
	arguments := script(session, text)
	arguments["wait_for"], arguments["wait_seconds"] = "on", 40
	x, err := s.ask(ctx, "exec", arguments)
	if err == nil && (x.Status != "running" || x.Stdout != "on\n") {
		err = fmt.Errorf("not on its way: %v", x)
	}
	return x, err
}

// deaf ignores polite signals, and is then killed.
func (s *soak) deaf(ctx context.Context, session string, _ int) error {
	x, err := s.begin(ctx, session, `trap '' TERM INT HUP; echo on; sleep 600; sleep 600`)
	if err != nil {
		return err
	}
	for range 2 {
		if y, err := s.ask(ctx, "kill", args{"exec_id": x.ExecID, "signal": "INT"}); err != nil || y.Status != "running" {
			return fmt.Errorf("after a polite signal: %v, %w", y, err)
		}
	}
	return s.kill(ctx, x.ExecID)
}

func (s *soak) killed(ctx context.Context, session string, _ int) error {
	x, err := s.begin(ctx, session, `sleep 600 & echo on; sleep 600`)
	if err != nil {
		return err
	}
	return s.kill(ctx, x.ExecID)
}

func (s *soak) kill(ctx context.Context, exec string) error {
	x, err := s.ask(ctx, "kill", args{"exec_id": exec})
	for err == nil && x.Status == "running" {
		x, err = s.ask(ctx, "exec_output", args{"exec_id": exec, "wait_seconds": 10})
	}
	if err != nil {
		return err
	}
	return x.is("killed", 137, "", "")
}

// large prints a MiB, which is told in part and counted whole.
func (s *soak) large(ctx context.Context, session string, _ int) error {
	x, err := s.ask(ctx, "exec", script(session, `head -c 1048576 /dev/zero | tr '\0' x; exit 6`))
	if err != nil {
		return err
	}
	if !x.exited(6) || x.StdoutBytes != 1<<20 || !x.Truncated || !x.OutputComplete || x.Stderr != "" {
		return fmt.Errorf("%v", x)
	}
	return nil
}

// cancelled is a call that is given up: its command must end killed. It is known
// again by how much it has printed.
func (s *soak) cancelled(ctx context.Context, session string, n int) error {
	size := int64(10_000 + n)
	call, cancel := context.WithCancel(ctx)
	defer cancel()
	done := make(chan error, 1)
	go func() {
		x, err := s.ask(call, "exec", script(session, fmt.Sprintf("head -c %d /dev/zero; sleep 600 & sleep 600", size)))
		if err == nil {
			err = fmt.Errorf("answered though cancelled: %v", x)
		} else if call.Err() != nil {
			err = nil
		}
		done <- err
	}()
	if _, err := s.listed(ctx, session, size, func(execOut) bool { return true }); err != nil {
		return err
	}
	cancel()
	if err := <-done; err != nil {
		return err
	}
	x, err := s.listed(ctx, session, size, func(x execOut) bool { return x.Status != "running" })
	if err == nil && (x.Status != "killed" || !x.OutputComplete) {
		err = fmt.Errorf("a cancelled command: %v", x)
	}
	return err
}

// listed waits until exec_list shows the command that has printed so much in a state.
func (s *soak) listed(ctx context.Context, session string, size int64, ok func(execOut) bool) (execOut, error) {
	for deadline := time.Now().Add(40 * time.Second); time.Now().Before(deadline); time.Sleep(50 * time.Millisecond) {
		var list struct {
			Execs []execOut `json:"execs"`
		}
		r, err := s.call(ctx, "exec_list", args{"session_id": session})
		if err == nil {
			err = unmarshal(r, &list)
		}
		if err != nil {
			return execOut{}, err
		}
		for _, x := range list.Execs {
			if x.StdoutBytes == size && ok(x) {
				return x, nil
			}
		}
	}
	return execOut{}, fmt.Errorf("the command that printed %d bytes is not listed as it should be", size)
}

// open makes the sessions.
func (s *soak) open(a *actor) {
	for i := range s.sessions {
		s.sessions[i] = into[listed](a.t, a.ok("session_create", args{"pids": 512})).SessionID
	}
}

// TestEXW13_EXW16_STP08_BugEX06_SoakEveryCommandTellsTheTruth runs commands of ten
// kinds, over 4 sessions and as many at a time as fit, and then looks for what is left of
// them, in the sessions and in the server.
func TestEXW13_EXW16_STP08_BugEX06_SoakEveryCommandTellsTheTruth(t *testing.T) {
	total := times(t, "CAISSON_SOAK", 300)
	v := start(t, launch{plain: true, http: true, env: []string{"GOTRACEBACK=all"}})
	a := join(t, v, httpLegacy)
	s := &soak{conn: a.conn}
	s.open(a)
	for i, c := range truths { // every kind once, so that what is made once is there
		if err := c.tell(s, t.Context(), s.sessions[i%4], -1-i); err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
	}
	idle := a.processes(s.sessions[0], "sleep 2147") // process 1 sleeps
	if idle != 1 {
		t.Fatalf("%d idle processes", idle)
	}
	quiet := v.descriptors(t)
	together := onStage(t).engine.atOnce(t, s.sessions[0], 16)

	jobs := make(chan int, total)
	for i := range total {
		jobs <- i
	}
	close(jobs)
	var wg sync.WaitGroup
	for range together {
		wg.Go(func() {
			for i := range jobs {
				c := truths[i%len(truths)]
				if err := c.tell(s, t.Context(), s.sessions[rand.IntN(len(s.sessions))], i); err != nil {
					t.Errorf("command %d, %s: %v", i, c.name, err)
				}
			}
		})
	}
	wg.Wait()
	for _, id := range s.sessions {
		eventually(t, 20*time.Second, "no zombie is left", func() bool { return strings.TrimSpace(a.exec(id, zombies).Stdout) == "0" })
		eventually(t, 8*time.Second, "nothing of the commands runs", func() bool { return a.processes(id, "sleep") == idle })
		for name := range strings.Lines(a.sh(id, `ls -A /tmp`)) {
			if !strings.HasSuffix(name, ".mark\n") && !own.MatchString(name) {
				t.Errorf("left in /tmp: %q", name)
			}
		}
		if n := strings.Count(a.sh(id, `ls -A /tmp`), ".out\n"); n != 1 {
			t.Errorf("%d records of output in /tmp, one is the look's own", n)
		}
	}
	// Idle connections to the engine are kept for half a minute.
	eventually(t, 60*time.Second, "descriptors are given back", func() bool {
		http.DefaultClient.CloseIdleConnections()
		return v.descriptors(t) <= quiet+2
	})
	t.Logf("%d descriptors, %d before", v.descriptors(t), quiet)
	for _, id := range s.sessions {
		a.ok("session_destroy", args{"session_id": id})
	}
	if most, now := fresh(t), goroutines(t, v, a); now > most+2 {
		t.Errorf("%d goroutines, %d in a fresh server", now, most)
	}
}

var own = regexp.MustCompile(`^tai-exec\.[0-9a-f]{32}\.(out|pid|fifo|status)\n$`)

// descriptors counts what the server has open, but for kept output: files without a
// name that are bounded by a total of their own.
func (v *server) descriptors(t testing.TB) int {
	t.Helper()
	dir := fmt.Sprintf("/proc/%d/fd/", v.cmd.Process.Pid)
	all, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, fd := range all {
		if to, err := os.Readlink(dir + fd.Name()); err == nil && !strings.Contains(to, "caisson-spool-") {
			n++
		}
	}
	return n
}

// fresh is how many goroutines a server has that has done a little of everything.
func fresh(t *testing.T) int {
	t.Helper()
	v := start(t, launch{plain: true, http: true, env: []string{"GOTRACEBACK=all"}})
	a := join(t, v, httpLegacy)
	s := &soak{conn: a.conn}
	s.open(a)
	if err := truths[0].tell(s, t.Context(), s.sessions[0], 0); err != nil {
		t.Fatal(err)
	}
	for _, id := range s.sessions {
		a.ok("session_destroy", args{"session_id": id})
	}
	return goroutines(t, v, a)
}

// goroutines ends a server by the signal on which Go shows all of them, and counts.
func goroutines(t *testing.T, v *server, a *actor) int {
	t.Helper()
	_ = a.close()
	eventually(t, 10*time.Second, "its client's connections are gone", func() bool {
		http.DefaultClient.CloseIdleConnections()
		return v.connections(t) == 0
	})
	if err := v.cmd.Process.Signal(syscall.SIGQUIT); err != nil {
		t.Fatal(err)
	}
	v.code(t, 10*time.Second)
	n := 0
	for _, stack := range strings.Split(v.stderr.String(), "\n\n") {
		// Connections to the engine are kept for a while; descriptors tell of those.
		if strings.HasPrefix(stack, "goroutine ") && !strings.Contains(stack, "net/http.(*persistConn)") {
			n++
		}
	}
	if n == 0 {
		t.Fatalf("no goroutine is shown:\n%s", tail(v.stderr.String()))
	}
	return n
}

// connections counts the established ones of the server's listening port.
func (v *server) connections(t testing.TB) int {
	t.Helper()
	_, port, _ := strings.Cut(strings.TrimPrefix(v.url, "http://"), ":")
	n, err := strconv.Atoi(port)
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/net/tcp", v.cmd.Process.Pid))
	if err != nil {
		t.Fatal(err)
	}
	established := regexp.MustCompile(fmt.Sprintf(` 0100007F:%04X [0-9A-F]{8}:[0-9A-F]{4} 01 `, n))
	return len(established.FindAll(text, -1))
}
