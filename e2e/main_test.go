package e2e_test

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// stage is what all tests share: the engine, the built programs, and the
// servers that tests need not have for themselves.
type stage struct {
	engine  *engine
	env     []string // SANDBOX_DOCKER_* that point at the engine
	dir     string
	plain   string // the program as it ships
	raced   string // the same with the race detector
	run     string // begins the instance name of every server of this run
	servers atomic.Int64

	mu     sync.Mutex
	shared map[string]*sharedServer
}

var the *stage

func TestMain(m *testing.M) {
	flag.Parse()
	os.Exit(perform(m))
}

func perform(m *testing.M) int {
	file := os.Getenv("CAISSON_TEST_ENGINE")
	if file == "" {
		return m.Run() // every test says what it needs
	}
	s, err := newStage(file)
	if err != nil {
		fmt.Fprintln(os.Stderr, "e2e:", err)
		return 1
	}
	the = s
	// Most of what tests do here is to wait for commands, so more of them fit
	// side by side than there are cores.
	if f := flag.Lookup("test.parallel"); !flagGiven("test.parallel") {
		_ = f.Value.Set("6")
	}
	code := m.Run()
	if err := s.close(); err != nil {
		fmt.Fprintln(os.Stderr, "e2e: FAIL:", err)
		code = max(code, 1)
	}
	return code
}

func flagGiven(name string) bool {
	given := false
	flag.Visit(func(f *flag.Flag) { given = given || f.Name == name })
	return given
}

func newStage(file string) (*stage, error) {
	dir, err := os.MkdirTemp("", "caisson-e2e-")
	if err != nil {
		return nil, err
	}
	s := &stage{dir: dir, shared: map[string]*sharedServer{}}
	vars, err := readExports(file)
	if err != nil {
		return nil, err
	}
	for _, v := range vars {
		if strings.HasPrefix(v, "SANDBOX_DOCKER_") {
			s.env = append(s.env, v)
		}
	}
	var random [3]byte
	_, _ = rand.Read(random[:])
	s.run = "e2e-" + hex.EncodeToString(random[:]) + "-"
	if s.engine, err = connectEngine(vars, s.run); err != nil {
		return nil, err
	}
	s.plain, s.raced = filepath.Join(dir, "caisson"), filepath.Join(dir, "caisson-race")
	return s, errors.Join(build(s.plain), build(s.raced, "-race"))
}

// build builds the program once for all tests.
func build(out string, flags ...string) error {
	cmd := exec.Command("go", append(append([]string{"build", "-o", out}, flags...), "..")...)
	if text, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("go build %s: %w\n%s", strings.Join(flags, " "), err, text)
	}
	return nil
}

// readExports reads the lines export NAME='value' of a file.
func readExports(file string) ([]string, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("CAISSON_TEST_ENGINE: %w", err)
	}
	var vars []string
	for line := range strings.Lines(string(text)) {
		name, value, ok := strings.Cut(strings.TrimSpace(strings.TrimPrefix(line, "export ")), "=")
		if ok {
			vars = append(vars, name+"="+strings.Trim(value, "'"))
		}
	}
	if len(vars) == 0 {
		return nil, fmt.Errorf("CAISSON_TEST_ENGINE: %s exports nothing", file)
	}
	return vars, nil
}

// close ends the shared servers and then looks for what was left behind.
func (s *stage) close() error {
	var all []error
	for key, shared := range s.shared {
		if shared.server == nil {
			continue
		}
		if err := errors.Join(shared.server.end(), shared.server.clear()); err != nil {
			all = append(all, fmt.Errorf("the shared server %s: %w", key, err))
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second) // the tests' own context is over
	defer cancel()
	all = append(all, s.engine.leftovers(ctx), s.processes(), os.RemoveAll(s.dir))
	return errors.Join(append(all, s.engine.close())...)
}

// processes looks for a program of this run that still runs.
func (s *stage) processes() error {
	var left []string
	links, _ := filepath.Glob("/proc/[0-9]*/exe")
	for _, link := range links {
		if target, err := os.Readlink(link); err == nil && strings.HasPrefix(target, s.dir) {
			left = append(left, filepath.Dir(link))
		}
	}
	if len(left) > 0 {
		return fmt.Errorf("still running: %v", left)
	}
	return nil
}

// onStage skips a test that has no engine to run on.
func onStage(t testing.TB) *stage {
	t.Helper()
	if the == nil {
		if testing.Short() {
			t.Skip("needs an engine, and the run is a short one")
		}
		t.Fatal("needs an engine: run make test, or set CAISSON_TEST_ENGINE")
	}
	return the
}
