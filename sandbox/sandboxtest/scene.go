package sandboxtest

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"caisson/sandbox"
)

// scene is one run of one case.
type scene struct {
	*testing.T
	h      Harness
	spools *sandbox.Spools
}

// busy is what a loaded machine may add to a limit.
const busy = 3 * time.Second

func newScene(t *testing.T, h Harness) *scene {
	t.Helper()
	spools, err := sandbox.NewSpools(sandbox.SpoolLimits{Memory: 256 << 10, Disk: 128 << 20, Total: 1 << 30, Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	return &scene{T: t, h: h, spools: spools}
}

// box is a session with the scene that it is in.
type box struct {
	*scene
	session sandbox.Session
	out     Outside
}

// box makes a small session that ends with the test.
func (s *scene) box(change ...func(*sandbox.Spec)) *box { return s.boxOf(s.h.Provider, change...) }

func (s *scene) boxOf(p sandbox.Provider, change ...func(*sandbox.Spec)) *box {
	s.Helper()
	spec := sandbox.Spec{
		Owner: sandbox.Owner{Name: "conformance"}, Image: s.h.Image, Network: sandbox.NetworkNone, Durability: sandbox.Ephemeral,
		CPU: ptr(1.0), MemoryMB: ptr(int64(128)), Pids: ptr(int64(128)), TTL: time.Hour,
	}
	for _, c := range change {
		c(&spec)
	}
	id := sandbox.NewSessionID()
	s.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute) // the test's own is over
		defer cancel()
		if _, err := s.h.Provider.Destroy(ctx, id); err != nil {
			s.Errorf("destroy %s: %v", id, err)
		}
	})
	session, err := p.Create(s.Context(), id, spec, nil)
	if err != nil {
		s.Fatalf("create: %v", err)
	}
	b := &box{scene: s, session: session}
	if s.h.Outside != nil {
		b.out = s.h.Outside(s.T, id)
	}
	return b
}

// on puts a scene's session on another image.
func on(image string) func(*sandbox.Spec) { return func(s *sandbox.Spec) { s.Image = image } }

func ptr[T any](v T) *T { return &v }

// cmd is a command under way.
type cmd struct {
	*sandbox.Exec
	b     *box
	began time.Time
}

// result is how a command ended, and how long it ran.
type result struct {
	sandbox.ExecView
	stdout, stderr string
	took           time.Duration
}

func (r result) code() int {
	if r.ExitCode == nil {
		return -1
	}
	return *r.ExitCode
}

func (r result) noted(code string) bool {
	return slices.ContainsFunc(r.Notes, func(n sandbox.Note) bool { return n.Code == code })
}

// shell is a script as a command; change changes the command.
func shell(script string, change ...func(*sandbox.ExecSpec)) sandbox.ExecSpec {
	spec := sandbox.ExecSpec{Argv: []string{"sh", "-c", script}}
	for _, c := range change {
		c(&spec)
	}
	return spec
}

func within(d time.Duration) func(*sandbox.ExecSpec) {
	return func(s *sandbox.ExecSpec) { s.Timeout = d }
}

func reading(text string) func(*sandbox.ExecSpec) {
	return func(s *sandbox.ExecSpec) { s.Stdin = []byte(text) }
}

func open(s *sandbox.ExecSpec) { s.StdinOpen = true }

// try starts a command that is closed with its test.
func (b *box) try(ctx context.Context, spec sandbox.ExecSpec) (*cmd, error) {
	spec.ID = sandbox.NewExecID()
	spec.Timeout = cmp.Or(spec.Timeout, 2*time.Minute)
	spool := b.spools.New()
	began := time.Now()
	e, err := b.session.Start(ctx, spec, spool)
	if err != nil {
		return nil, errors.Join(err, spool.Close())
	}
	b.Cleanup(func() {
		if err := e.Close(); err != nil {
			b.Error(err)
		}
	})
	return &cmd{e, b, began}, nil
}

func (b *box) start(spec sandbox.ExecSpec) *cmd {
	b.Helper()
	e, err := b.try(b.Context(), spec)
	if err != nil {
		b.Fatalf("start %.200q: %v", spec.Argv, err)
	}
	return e
}

// up starts a script that prints "on" once it is where its case wants it.
func (b *box) up(script string, change ...func(*sandbox.ExecSpec)) *cmd {
	b.Helper()
	e := b.start(shell(script, change...))
	b.eventually("it prints on", func() bool { return strings.HasSuffix(e.read(sandbox.Stdout), "on\n") })
	return e
}

func (b *box) run(spec sandbox.ExecSpec) result {
	b.Helper()
	return b.start(spec).finish()
}

// sh runs a script that must end well, and returns what it printed.
func (b *box) sh(script string) string {
	b.Helper()
	r := b.run(shell(script))
	if r.Status != sandbox.StatusExited || r.code() != 0 || !r.OutputComplete {
		b.Fatalf("%q: %v\nstderr %q", script, r, r.stderr)
	}
	return r.stdout
}

// finish waits for the command's end.
func (c *cmd) finish() result {
	c.b.Helper()
	ctx, cancel := context.WithTimeout(c.b.Context(), 2*time.Minute)
	defer cancel()
	view, err := c.Wait(ctx)
	if err != nil {
		c.b.Fatalf("%.200q did not end: %v", view.Argv, err)
	}
	return result{view, c.read(sandbox.Stdout), c.read(sandbox.Stderr), view.EndedAt.Sub(c.began)}
}

// read is what of a stream can be read now.
func (c *cmd) read(stream sandbox.Stream) string {
	c.b.Helper()
	var all bytes.Buffer
	for offset := int64(0); ; {
		chunk, err := c.Spool().Read(stream, offset, 1<<20)
		if err != nil {
			c.b.Fatal(err)
		}
		if len(chunk.Data) == 0 {
			return all.String()
		}
		all.Write(chunk.Data)
		offset = chunk.Offset + int64(len(chunk.Data))
	}
}

// exited waits until the command's own process has exited while others hold its
// output.
func (c *cmd) exited() {
	c.b.Helper()
	c.b.eventually("its own exit is told", func() bool { return c.View().CommandExitCode != nil })
}

// kill kills the command, and fails the test where that fails or takes too long.
func (c *cmd) kill() (killed bool) {
	c.b.Helper()
	began := time.Now()
	killed, err := c.Kill(sandbox.SignalKill)
	if err != nil {
		c.b.Errorf("kill: %v", err)
	}
	if took := time.Since(began); took > sandbox.StopLimit+time.Second {
		c.b.Errorf("the kill took %v", took)
	}
	return killed
}

// ended checks how a command ended; a code of -1 is none.
func (s *scene) ended(r result, status sandbox.Status, code int) {
	s.Helper()
	if r.Status != status || r.code() != code {
		s.Errorf("%.200q ended %v (%v) with %d, want %v with %d; %q, notes %v, after %v", r.Argv, r.Status, r.LostReason, r.code(), status, code, r.stderr, r.Notes, r.took)
	}
}

// alive counts the session's processes whose command line begins with a text.
func (b *box) alive(text string) int {
	n := 0
	for _, line := range b.out.Processes() {
		if strings.HasPrefix(line, text) {
			n++
		}
	}
	return n
}

// gone waits until no process of that command line is left.
func (b *box) gone(text string) {
	b.Helper()
	b.eventually(text+" is gone", func() bool { return b.alive(text) == 0 })
}

// wantKind checks an error's kind and that its text has a word.
func (s *scene) wantKind(err error, kind sandbox.Kind, word string) {
	s.Helper()
	if err == nil || sandbox.KindOf(err) != kind || !strings.Contains(err.Error(), word) {
		s.Errorf("error %v, want kind %v and %q", err, kind, word)
	}
}

// eventually polls until ok.
func (s *scene) eventually(what string, ok func() bool) {
	s.Helper()
	deadline := time.NewTimer(20 * time.Second)
	defer deadline.Stop()
	for tick := time.NewTicker(50 * time.Millisecond); !ok(); {
		select {
		case <-tick.C:
		case <-deadline.C:
			tick.Stop()
			s.Fatalf("%s: not within 20 s", what)
		}
	}
}
