package e2e_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/docker/docker/client"

	"caisson/e2e/internal/rawengine"
)

// ownEngine is an engine that one test has for itself, to stop, to cut and to fill.
type ownEngine struct {
	t    testing.TB
	name string
	vars map[string]string
	env  []string // of a server on it
	api  *client.Client
}

// privateEngine starts an engine with the busybox image, small and quick; it is gone with the
// test, and the test fails if a server has left anything on it.
func privateEngine(t testing.TB, name string, options ...string) *ownEngine {
	t.Helper()
	s := onStage(t)
	e := &ownEngine{t: t, name: name, vars: map[string]string{}}
	t.Cleanup(func() { e.script("down") })
	e.script("up", append([]string{"CAISSON_ENGINE_DISK_GB=1"}, options...)...)
	vars, err := readExports(filepath.Join("..", ".engine", name, "env"))
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range vars {
		key, value, _ := strings.Cut(v, "=")
		e.vars[key] = value
		if strings.HasPrefix(key, "SANDBOX_DOCKER_") {
			e.env = append(e.env, v)
		}
	}
	e.env = append(e.env, "SANDBOX_DOCKER_DEFAULT_IMAGE=busybox:latest")
	if e.api, err = rawengine.Connect(vars); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = e.api.Close() })
	image, err := s.engine.api.ImageSave(t.Context(), []string{"busybox:latest"})
	if err != nil {
		t.Fatal(err)
	}
	defer image.Close()
	loaded, err := e.api.ImageLoad(t.Context(), image)
	if err != nil {
		t.Fatal(err)
	}
	_, err = io.Copy(io.Discard, loaded.Body) // a newer engine stops when nobody reads on
	if err = errors.Join(err, loaded.Body.Close()); err != nil {
		t.Fatal(err)
	}
	// Before the engine goes down, and after the servers have ended.
	t.Cleanup(func() {
		if out, err := exec.Command("../scripts/leftovers", name).CombinedOutput(); err != nil {
			t.Errorf("leftovers: %v\n%s", err, out)
		}
	})
	return e
}

// script runs a command of scripts/engine on it.
func (e *ownEngine) script(command string, env ...string) {
	e.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Minute) // a cleanup's too
	defer cancel()
	cmd := exec.CommandContext(ctx, "../scripts/engine", command, e.name)
	cmd.Env = append(os.Environ(), env...)
	if out, err := cmd.CombinedOutput(); err != nil {
		e.t.Fatalf("scripts/engine %s %s: %v\n%s", command, e.name, err, out)
	}
}

// signal sends dockerd a signal.
func (e *ownEngine) signal(sig syscall.Signal) {
	e.t.Helper()
	text, err := os.ReadFile(e.vars["CAISSON_ENGINE_PIDFILE"])
	if err != nil {
		e.t.Fatal(err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err == nil {
		err = syscall.Kill(pid, sig)
	}
	if err != nil {
		e.t.Fatal(err)
	}
}

// silent makes the link swallow everything, both ways, as a firewall that has
// forgotten a flow does: nobody is told. It returns the way back.
func (e *ownEngine) silent() (heal func()) {
	e.t.Helper()
	change := func(what string) {
		for _, chain := range []string{"INPUT", "OUTPUT"} {
			cmd := exec.Command("nsenter", "--net="+e.vars["CAISSON_ENGINE_NETNS"], "iptables", what, chain, "-j", "DROP")
			if out, err := cmd.CombinedOutput(); err != nil {
				e.t.Fatalf("iptables: %v\n%s", err, out)
			}
		}
	}
	change("-I")
	return func() { change("-D") }
}

// fill leaves 4 MiB of the engine's disk. It returns the way back.
func (e *ownEngine) fill() (room func()) {
	e.t.Helper()
	name := filepath.Join(e.vars["CAISSON_ENGINE_DIR"], "data", "ballast")
	var disk syscall.Statfs_t
	file, err := os.Create(name)
	if err == nil {
		err = syscall.Fstatfs(int(file.Fd()), &disk)
	}
	if err == nil {
		err = syscall.Fallocate(int(file.Fd()), 0, 0, int64(disk.Bavail)*disk.Bsize-4<<20)
	}
	if err = errors.Join(err, file.Close()); err != nil {
		e.t.Fatal(err)
	}
	return func() {
		e.t.Helper()
		if err := os.Remove(name); err != nil {
			e.t.Fatal(err)
		}
	}
}

// serve starts a server on the engine. Its client is joined over HTTP.
func (e *ownEngine) serve(t *testing.T, env ...string) (*server, *actor) {
	t.Helper()
	return serveOn(t, append(e.env, env...))
}

// serveOn starts an HTTP server with this environment and a client of it.
func serveOn(t *testing.T, env []string) (*server, *actor) {
	t.Helper()
	v := start(t, launch{http: true, env: env})
	return v, join(t, v, httpLegacy)
}

// full tells of the tests in long form, as make chaos runs them.
func full() bool { return os.Getenv("CAISSON_CHAOS") == "full" }

// long is how long something lasts: the one in make test, the other in make chaos.
func long(short, whole time.Duration) time.Duration {
	if full() {
		return whole
	}
	return short
}

// retriable says of each code that a fault may end in whether the same call may be
// made again as it is.
var retriable = map[string]bool{
	"engine_unavailable": true, "busy": true, "capacity": true, "limit_exceeded": true, "kill_failed": true,
	"unknown_outcome": false, "session_lost": false, "lost": false, "timed_out": false, "no_space": false, "session_not_found": false,
}

// bounded is the limit of a call that ends by a clock of the server's: on a busy machine
// it is late, but not by as much as work is.
func bounded(limit time.Duration) time.Duration {
	return min(patient(limit), limit+20*time.Second)
}

// typed makes a call that must fail within a limit with one of these codes, and say
// rightly whether to try again.
func (a *actor) typed(limit time.Duration, codes, tool string, arguments args) result {
	a.t.Helper()
	began := time.Now()
	r := a.do(tool, arguments)
	if d := time.Since(began); d > bounded(limit) {
		a.t.Errorf("%s took %v, %v at most", tool, d.Round(time.Millisecond), limit)
	}
	code := r.code()
	if code == "" || !strings.Contains(" "+codes+" ", " "+code+" ") {
		a.t.Errorf("%s %v: want %s, got error %v, %v: %s", tool, clip(fmt.Sprint(arguments)), codes, r.IsError, r.Meta, clip(r.text()))
		return r
	}
	if again, told := r.Meta["retriable"].(bool); !told || again != retriable[code] {
		a.t.Errorf("%s: %s with retriable %v", tool, code, r.Meta["retriable"])
	}
	return r
}

// well waits until a session's commands work again, without a restart of the server.
func (a *actor) well(limit time.Duration, session string) {
	a.t.Helper()
	eventually(a.t, limit, "the server is well again", func() bool {
		r := a.do("exec", args{"session_id": session, "argv": []string{"echo", "well"}})
		var x execOut
		return unmarshal(r, &x) == nil && x.exited(0) && x.Stdout == "well\n"
	})
}

// unready waits until a server says that it can serve no call, and ready that it can.
func unready(t testing.TB, v *server, limit time.Duration) {
	t.Helper()
	eventually(t, limit, "the server says that it is not ready", func() bool { return health(v) == 503 })
}

func ready(t testing.TB, v *server, limit time.Duration) {
	t.Helper()
	eventually(t, limit, "the server is ready", func() bool { return health(v) == 200 })
}

// health is the status of /readyz, 0 where there is no answer.
func health(v *server) int {
	ctx, cancel := context.WithTimeout(context.Background(), 8*time.Second) // polls end by their own deadline
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, v.url+"/readyz", nil)
	if err != nil {
		return 0
	}
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	response, err := client.Do(request)
	if err != nil {
		return 0
	}
	response.Body.Close()
	return response.StatusCode
}
