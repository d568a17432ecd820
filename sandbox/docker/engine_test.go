package docker

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"log/slog"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"caisson/sandbox"
)

// testInstance begins the instance of every session of this run.
var testInstance = "test-" + strings.TrimPrefix(sandbox.NewSessionID(), "sbx_")

// engineVars reads the shell exports that CAISSON_TEST_ENGINE names; nil where
// it names none.
var engineVars = sync.OnceValues(func() (map[string]string, error) {
	file := os.Getenv("CAISSON_TEST_ENGINE")
	if file == "" {
		return nil, nil
	}
	out, err := exec.Command("sh", "-c", `. "$1" && env`, "sh", file).Output()
	if err != nil {
		return nil, err
	}
	vars := map[string]string{}
	for line := range strings.Lines(string(out)) {
		name, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "=")
		vars[name] = value
	}
	return vars, nil
})

func engineConfig() (Config, error) {
	vars, err := engineVars()
	return Config{
		Host: vars["SANDBOX_DOCKER_HOST"], TLSVerify: true,
		TLSCertPath: vars["SANDBOX_DOCKER_TLS_CERT_PATH"], TLSKeyPath: vars["SANDBOX_DOCKER_TLS_KEY_PATH"], TLSCAPath: vars["SANDBOX_DOCKER_TLS_CA_PATH"],
		Instance: testInstance, PullPolicy: PullNever, Version: "test",
	}, err
}

// engine gives a test the real engine, and fails it where there is none. A short
// run goes without.
func engine(t *testing.T) Config {
	t.Helper()
	if testing.Short() {
		t.Skip("needs an engine, and the run is a short one")
	}
	cfg, err := engineConfig()
	if err != nil {
		t.Fatal(err)
	}
	if cfg.Host == "" {
		t.Fatal("needs an engine: run make test, or set CAISSON_TEST_ENGINE")
	}
	// Of its own, so that tests that run side by side count what is theirs.
	cfg.Instance += "." + strings.TrimPrefix(sandbox.NewSessionID(), "sbx_")[:8]
	cfg.Log = slog.New(slog.NewTextHandler(testLog{t}, &slog.HandlerOptions{Level: slog.LevelDebug}))
	return cfg
}

// testLog sends a log into the test's.
type testLog struct{ t *testing.T }

func (l testLog) Write(p []byte) (int, error) {
	l.t.Helper()
	l.t.Log(strings.TrimSuffix(string(p), "\n"))
	return len(p), nil
}

func newProvider(t *testing.T, cfg Config) *Provider {
	t.Helper()
	p, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	})
	return p
}

// provider is a provider on the real engine.
func provider(t *testing.T) *Provider {
	t.Helper()
	p := newProvider(t, engine(t))
	if err := p.connect(t.Context()); err != nil {
		t.Fatal(err)
	}
	return p
}

const (
	busybox = "busybox:latest"
	debian  = "caisson-session:latest"
)

// specOf is a small session of an image.
func specOf(image string) sandbox.Spec {
	return sandbox.Spec{
		Owner: sandbox.Owner{Name: "tester"}, Image: cmp.Or(image, busybox), Network: sandbox.NetworkNone, Durability: sandbox.Ephemeral,
		CPU: ptr(1.0), MemoryMB: ptr(int64(128)), Pids: ptr(int64(128)), TTL: time.Hour,
	}
}

// create makes a session that ends with its test.
func create(t *testing.T, p *Provider, spec sandbox.Spec) *Session {
	t.Helper()
	s, err := tryCreate(t, p, spec)
	if err != nil {
		t.Fatalf("create: %v", err)
	}
	return s
}

func tryCreate(t *testing.T, p *Provider, spec sandbox.Spec) (*Session, error) {
	t.Helper()
	id := sandbox.NewSessionID()
	t.Cleanup(func() { destroy(t, p, id) })
	s, err := p.Create(t.Context(), id, spec, nil)
	if err != nil {
		return nil, err
	}
	return s.(*Session), nil
}

// destroy ends a session in a cleanup, where the test's context is over.
func destroy(t *testing.T, p *Provider, id string) bool {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	existed, err := p.Destroy(ctx, id)
	if err != nil {
		t.Errorf("destroy %s: %v", id, err)
	}
	return existed
}

// result is how a command ended.
type result struct {
	sandbox.ExecView
	stdout, stderr string
}

func (r result) code() int {
	if r.ExitCode == nil {
		return -1
	}
	return *r.ExitCode
}

func (r result) noted(code string) bool {
	for _, n := range r.Notes {
		if n.Code == code {
			return true
		}
	}
	return false
}

var testSpools = sync.OnceValues(func() (*sandbox.Spools, error) {
	return sandbox.NewSpools(sandbox.SpoolLimits{Memory: 256 << 10, Disk: 64 << 20, Total: 512 << 20})
})

// start starts a command that is closed with its test.
func start(t *testing.T, s *Session, spec sandbox.ExecSpec) (*sandbox.Exec, error) {
	t.Helper()
	spools, err := testSpools()
	if err != nil {
		t.Fatal(err)
	}
	spec.ID = sandbox.NewExecID()
	spec.Timeout = cmp.Or(spec.Timeout, time.Minute)
	spool := spools.New()
	e, err := s.Start(t.Context(), spec, spool)
	if err != nil {
		return nil, errors.Join(err, spool.Close())
	}
	t.Cleanup(func() {
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	})
	return e, nil
}

func mustStart(t *testing.T, s *Session, spec sandbox.ExecSpec) *sandbox.Exec {
	t.Helper()
	e, err := start(t, s, spec)
	if err != nil {
		t.Fatalf("start %q: %v", spec.Argv, err)
	}
	return e
}

// finish waits for a command's end.
func finish(t *testing.T, e *sandbox.Exec) result {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 90*time.Second)
	defer cancel()
	view, err := e.Wait(ctx)
	if err != nil {
		t.Fatalf("%q did not end: %v", view.Argv, err)
	}
	return result{view, output(t, e, sandbox.Stdout), output(t, e, sandbox.Stderr)}
}

// output is what of a stream can still be read.
func output(t *testing.T, e *sandbox.Exec, stream sandbox.Stream) string {
	t.Helper()
	var all bytes.Buffer
	for offset := int64(0); ; {
		c, err := e.Spool().Read(stream, offset, 1<<20)
		if err != nil {
			t.Fatal(err)
		}
		if len(c.Data) == 0 {
			return all.String()
		}
		all.Write(c.Data)
		offset = c.Offset + int64(len(c.Data))
	}
}

func run(t *testing.T, s *Session, spec sandbox.ExecSpec) result {
	t.Helper()
	return finish(t, mustStart(t, s, spec))
}

// sh runs a script and returns its output, which it must end well for.
func sh(t *testing.T, s *Session, script string) string {
	t.Helper()
	r := run(t, s, shell(script))
	if r.Status != sandbox.StatusExited || r.code() != 0 || !r.OutputComplete {
		t.Fatalf("%q: %v, code %d, complete %v, notes %v\nstdout: %s\nstderr: %s", script, r.Status, r.code(), r.OutputComplete, r.Notes, r.stdout, r.stderr)
	}
	return r.stdout
}

func shell(script string) sandbox.ExecSpec {
	return sandbox.ExecSpec{Argv: []string{"sh", "-c", script}}
}

// wantError checks an error's kind, its field, and that its text has all words.
func wantError(t *testing.T, err error, kind sandbox.Kind, field string, words ...string) {
	t.Helper()
	var e *sandbox.Error
	if !errors.As(err, &e) {
		t.Fatalf("error %v (%T), want kind %v", err, err, kind)
	}
	if e.Kind != kind || e.Field != field {
		t.Errorf("kind %v, field %q, want %v, %q: %v", e.Kind, e.Field, kind, field, err)
	}
	for _, w := range words {
		if !strings.Contains(e.Text, w) {
			t.Errorf("text %q lacks %q", e.Text, w)
		}
	}
}

// eventually polls until ok, for what takes the engine a moment.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 15*time.Second)
	defer cancel()
	for !ok() {
		if err := pause(ctx, 20*time.Millisecond); err != nil {
			t.Fatalf("%s: not within 15 s", what)
		}
	}
}
