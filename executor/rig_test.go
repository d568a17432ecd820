package executor_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"caisson/executor"
	"caisson/sandbox"
	"caisson/sandbox/sandboxtest"
)

// rig is a toolbox on a fake engine, whose images have a worker that the test
// plays.
type rig struct {
	*executor.Toolbox
	t       *testing.T
	fake    *sandboxtest.Fake
	manager *sandbox.Manager
	log     *logBook

	mu    sync.Mutex
	tools map[string]func(run) executor.Result // by the name in the envelope
	calls []run
}

// run is one call as the worker sees it.
type run struct {
	sandboxtest.Command
	executor.Envelope
	raw   string
	owner string // of the container
}

type logBook struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *logBook) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *logBook) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// wide is a server that allows all that a test may want.
func wide() executor.Server {
	s := server()
	s.AllowLocal, s.AllowWeaker = true, true
	return s
}

// newRig makes one for a manifest. The worker answers every call with the name of
// its container, until the test installs something else with play.
func newRig(t *testing.T, manifest string, change ...func(*executor.ToolboxOptions)) *rig {
	t.Helper()
	r := startRig(t)
	r.open(manifest, change...)
	return r
}

// startRig makes the engine and the manager alone.
func startRig(t *testing.T, change ...func(*sandbox.Limits)) *rig {
	t.Helper()
	r := &rig{t: t, fake: sandboxtest.NewFake(), log: &logBook{}, tools: map[string]func(run) executor.Result{}}
	spools, err := sandbox.NewSpools(sandbox.SpoolLimits{Memory: 256 << 10, Disk: 64 << 20, Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	r.fake.Install("caisson-worker", r.worker)
	limits := sandbox.Limits{
		Sessions: 64, PerOwner: 16, ExecsPerSession: 32, Records: 1000, Retention: time.Hour, LostRetention: time.Hour,
		ReapInterval: time.Minute, DefaultTimeout: 300 * time.Second, MaxTimeout: 24 * time.Hour,
	}
	for _, f := range change {
		f(&limits)
	}
	r.manager = sandbox.NewManager(sandbox.Options{
		Provider: r.fake, Instance: "test", Grace: 2 * time.Minute, Spools: spools, Limits: limits,
		Log:    slog.New(slog.NewTextHandler(r.log, &slog.HandlerOptions{Level: slog.LevelDebug})),
		Policy: sandbox.Policy{DefaultImage: "img", DefaultTTL: time.Hour, MaxNetwork: sandbox.NetworkEgress},
	})
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), time.Minute)
		defer cancel()
		if r.Toolbox != nil {
			if err := r.Close(ctx); err != nil {
				t.Error(err)
			}
			if n := len(r.fake.Sessions()); n != 0 {
				t.Errorf("%d containers are left by a closed toolbox", n)
			}
		}
		if err := r.manager.Close(ctx); err != nil {
			t.Error(err)
		}
	})
	return r
}

func (r *rig) open(manifest string, change ...func(*executor.ToolboxOptions)) {
	r.t.Helper()
	o := executor.ToolboxOptions{
		Manager: r.manager, Manifest: parse(r.t, manifest, wide()), Owner: sandbox.Owner{Name: "operator"},
		Log: slog.New(slog.NewTextHandler(r.log, &slog.HandlerOptions{Level: slog.LevelDebug})),
	}
	for _, f := range change {
		f(&o)
	}
	r.Toolbox = executor.NewToolbox(o)
}

// play has the worker answer the calls of a tool so.
func (r *rig) play(name string, f func(run) executor.Result) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.tools[name] = f
}

// worker plays the worker's part of the protocol.
func (r *rig) worker(c sandboxtest.Command) int {
	var text []byte
	if path := c.Args[1]; path == "-" {
		text, _ = io.ReadAll(c.Stdin)
	} else if content, ok := c.File(path); ok {
		text = []byte(content)
	}
	e, err := executor.DecodeEnvelope(text)
	if err != nil {
		return 2
	}
	spec, _ := r.fake.SpecOf(c.Session)
	call := run{c, e, string(text), spec.Owner.Name}
	r.mu.Lock()
	r.calls = append(r.calls, call)
	f := r.tools[strings.Trim(string(e.InitArgs["name"])+string(e.InitArgs["agent_ref"]), `"`)]
	r.mu.Unlock()
	fmt.Fprintln(c.Stdout, "chatter before")
	result := good(c.Session)
	if f != nil {
		result = f(call)
	}
	if result.Status == "" {
		return 1 // it gives none
	}
	block, err := executor.EncodeBlock(result, e.Nonce)
	if err != nil {
		r.t.Error(err)
	}
	_, _ = c.Stdout.Write(block)
	fmt.Fprintln(c.Stdout, "chatter after")
	return 0
}

// ran lists the calls that have come to a worker.
func (r *rig) ran() []run {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.calls)
}

// good is a success that gives a value.
func good(value any) executor.Result {
	text, _ := json.Marshal(value)
	return executor.Result{Success: true, Status: executor.StatusSuccess, Result: text}
}

func caller(name string) executor.Caller { return executor.Caller{Owner: sandbox.Owner{Name: name}} }

// call calls a tool as alice, and wants it to have been run.
func (r *rig) call(name, arguments string) executor.Result {
	r.t.Helper()
	return r.callAs(caller("alice"), name, arguments)
}

func (r *rig) callAs(c executor.Caller, name, arguments string) executor.Result {
	r.t.Helper()
	ctx, cancel := context.WithTimeout(r.t.Context(), time.Hour)
	defer cancel()
	result, err := r.Call(ctx, c, name, raw(arguments), nil)
	if err != nil {
		r.t.Fatalf("%s: %v", name, err)
	}
	return result
}

// value is what a call gives, which has to be a success.
func (r *rig) value(name string) string {
	r.t.Helper()
	result := r.call(name, "{}")
	if !result.Success {
		r.t.Fatalf("%s: %s", name, result.Error)
	}
	var text string
	if err := json.Unmarshal(result.Result, &text); err != nil {
		r.t.Fatal(err)
	}
	return text
}

// refusal calls a tool, which has to be refused before anything runs.
func (r *rig) refusal(c executor.Caller, name, arguments string) *sandbox.Error {
	r.t.Helper()
	before, sessions := len(r.ran()), len(r.fake.Sessions())
	_, err := r.Call(r.t.Context(), c, name, raw(arguments), nil)
	var e *sandbox.Error
	if !errors.As(err, &e) {
		r.t.Fatalf("%s %s: %v", name, arguments, err)
	}
	if len(r.ran()) != before || len(r.fake.Sessions()) != sessions {
		r.t.Errorf("%s: refused, and yet the engine was asked", name)
	}
	return e
}

func meta(r executor.Result, name string) string {
	var text string
	_ = json.Unmarshal(r.Metadata[name], &text)
	return text
}

// eventually waits until something is so.
func (r *rig) eventually(what string, ok func() bool) {
	r.t.Helper()
	for deadline := time.Now().Add(20 * time.Second); !ok(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			r.t.Fatal("not in time: " + what)
		}
	}
}
