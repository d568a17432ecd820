package executor_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/filters"
	"github.com/docker/docker/client"
	"github.com/docker/go-connections/tlsconfig"

	"caisson/executor"
	"caisson/sandbox"
	"caisson/sandbox/docker"
)

// real is a toolbox on a real engine, with the worker of the tool image.
type real struct {
	*rig
	engine   *client.Client
	instance string
}

// engineVars reads the shell exports that CAISSON_TEST_ENGINE names, or fails the
// test. A short run goes without.
func engineVars(t *testing.T) map[string]string {
	t.Helper()
	if testing.Short() {
		t.Skip("needs an engine, and the run is a short one")
	}
	file := os.Getenv("CAISSON_TEST_ENGINE")
	if file == "" {
		t.Fatal("needs an engine: run make test, or set CAISSON_TEST_ENGINE")
	}
	out, err := exec.CommandContext(t.Context(), "sh", "-c", `. "$1" && env`, "sh", file).Output()
	if err != nil {
		t.Fatal(err)
	}
	vars := map[string]string{}
	for line := range strings.Lines(string(out)) {
		name, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "=")
		vars[strings.TrimPrefix(name, "SANDBOX_DOCKER_")] = value
	}
	return vars
}

func newReal(t *testing.T, manifest string) *real {
	t.Helper()
	vars := engineVars(t)
	r := &real{instance: "executor-" + executor.NewNonce()[:12]}
	r.rig = startRig(t, func(*sandbox.Limits) {})
	log := slog.New(slog.NewTextHandler(r.log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	provider, err := docker.New(docker.Config{
		Host: vars["HOST"], TLSVerify: true, TLSCertPath: vars["TLS_CERT_PATH"], TLSKeyPath: vars["TLS_KEY_PATH"], TLSCAPath: vars["TLS_CA_PATH"],
		Instance: r.instance, PullPolicy: docker.PullNever, Version: "test", Log: log,
	})
	if err != nil {
		t.Fatal(err)
	}
	spools, err := sandbox.NewSpools(sandbox.SpoolLimits{Memory: 256 << 10, Disk: 64 << 20, Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	manager := sandbox.NewManager(sandbox.Options{
		Provider: provider, Instance: r.instance, Grace: time.Minute, Spools: spools, Log: log,
		Policy: sandbox.Policy{DefaultTTL: time.Hour, MaxNetwork: sandbox.NetworkEgress},
		Limits: sandbox.Limits{
			Sessions: 64, PerOwner: 16, ExecsPerSession: 32, Records: 1000, Retention: time.Hour, LostRetention: time.Hour,
			ReapInterval: time.Second, DefaultTimeout: 300 * time.Second, MaxTimeout: time.Hour,
		},
	})
	box := executor.NewToolbox(executor.ToolboxOptions{Manager: manager, Manifest: parse(t, manifest, wide()), Owner: sandbox.Owner{Name: "operator"}, Log: log})
	r.Toolbox = box
	r.engine = rawEngine(t, vars)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), time.Minute)
		defer cancel()
		if err := box.Close(ctx); err != nil {
			t.Error(err)
		}
		if left := r.containers(ctx); len(left) > 0 {
			t.Errorf("%d tool containers are left by a closed toolbox", len(left))
		}
		if err := manager.Close(ctx); err != nil {
			t.Error(err)
		}
		if err := provider.Close(); err != nil {
			t.Error(err)
		}
		if t.Failed() {
			t.Log(r.log)
		}
	})
	return r
}

// rawEngine looks at the engine past all that is ours.
func rawEngine(t *testing.T, vars map[string]string) *client.Client {
	t.Helper()
	tls, err := tlsconfig.Client(tlsconfig.Options{CAFile: vars["TLS_CA_PATH"], CertFile: vars["TLS_CERT_PATH"], KeyFile: vars["TLS_KEY_PATH"], ExclusiveRootPools: true})
	if err != nil {
		t.Fatal(err)
	}
	transport := &http.Transport{TLSClientConfig: tls}
	c, err := client.NewClientWithOpts(client.WithAPIVersionNegotiation(), client.WithHTTPClient(&http.Client{Transport: transport}), client.WithHost(vars["HOST"]))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = c.Close()
		transport.CloseIdleConnections()
	})
	return c
}

// containers are the tool containers of this test's toolbox on the engine.
func (r *real) containers(ctx context.Context) []container.Summary {
	all, err := r.engine.ContainerList(ctx, container.ListOptions{All: true, Filters: filters.NewArgs(filters.Arg("label", "caisson.instance="+r.instance), filters.Arg("label", "caisson.tools=1"))})
	if err != nil {
		r.t.Error(err)
	}
	return all
}

// sh is a tool that runs a shell script; its arguments are on standard input.
func sh(name, script string) string {
	return fmt.Sprintf("  - {name: %s, description: x, input_schema: {type: object}, command: [sh, -c, %s]}\n", name, quote(script))
}

func output(r executor.Result) string {
	var s string
	if json.Unmarshal(r.Result, &s) != nil {
		return string(r.Result)
	}
	return strings.TrimSpace(s)
}

func TestTX01_TX04_TX07_TX10_TX12_AWarmToolOnARealEngine(t *testing.T) {
	r := newReal(t, "tools:\n"+sh("where", `hostname; cat >/dev/null`)+sh("put", `cat > /tmp/seen; ps -o args`)+sh("get", "cat /tmp/seen"))
	first, second := r.call("where", "{}"), r.call("where", "{}")
	all := r.containers(t.Context())
	if len(all) != 1 || output(first) == "" || output(first) != output(second) || !strings.HasPrefix(all[0].ID, output(first)) {
		t.Fatalf("%d containers; %q %q %s", len(all), output(first), output(second), first.Error)
	}
	argument := "argument-" + canary
	put := r.call("put", `{"key":"`+argument+`"}`)
	if got := output(r.call("get", "{}")); got != `{"key":"`+argument+`"}` {
		t.Errorf("a second call sees %q", got)
	}
	info, err := r.engine.ContainerInspect(t.Context(), all[0].ID)
	if err != nil {
		t.Fatal(err)
	}
	h := info.HostConfig
	if h.Memory != 536870912 || h.NanoCPUs != 500_000_000 || *h.PidsLimit != 256 || h.CapDrop[0] != "ALL" || !strings.Contains(fmt.Sprint(h.SecurityOpt), "no-new-privileges") {
		t.Errorf("%+v", h.Resources)
	}
	text := string(mustJSON(info)) + output(put) + r.log.String()
	for _, id := range info.ExecIDs {
		if e, err := r.engine.ContainerExecInspect(t.Context(), id); err == nil {
			text += string(mustJSON(e))
		}
	}
	if strings.Contains(text, argument) {
		t.Error("the argument is seen in inspect, in the process list or in our log")
	}
}

func TestTX09_TX20_ATimeoutOnARealEngine(t *testing.T) {
	r := newReal(t, "tools:\n"+sh("where", "hostname")+sh("hang", "sleep 300")+`execution_policy: {rules: {hang: {name: one, remote_timeout_seconds: 4}, where: one}}
executors: {one: {name: docker, options: {network_mode: none}}}`)
	first := output(r.call("where", "{}"))
	began := time.Now()
	result := r.call("hang", "{}")
	if result.Success || !strings.Contains(result.Error, "did not finish within 4 s") || time.Since(began) > 15*time.Second {
		t.Errorf("%v: %+v", time.Since(began), result)
	}
	if second := output(r.call("where", "{}")); second == "" || second == first {
		t.Errorf("the next call ran in %q, the first in %q", second, first)
	}
}

func TestTX03_TX04_TX11_TX18_AnEphemeralToolOnARealEngine(t *testing.T) {
	r := newReal(t, "tools:\n"+sh("look", `cat; ls /tmp/*.json 2>/dev/null; ls /tmp/kept 2>/dev/null; touch /tmp/kept; hostname`)+sh("fail", "echo why >&2; exit 3")+
		`execution_policy: {rules: {"*": {name: docker, remote_timeout_seconds: 60, options: {mode: ephemeral, network_mode: none, env: {KEY: `+canary+`}}}}}`)
	a, b := output(r.call("look", `{"a":1}`)), output(r.call("look", `{"a":1}`))
	if !strings.HasPrefix(a, `{"a":1}`) || strings.Contains(a+b, "envelope") || strings.Contains(a+b, "/tmp/kept") || a == b {
		t.Errorf("%q\n%q", a, b)
	}
	if result := r.call("fail", "{}"); result.Success || !strings.Contains(result.Error, "why") {
		t.Errorf("%+v", result)
	}
	if all := r.containers(t.Context()); len(all) != 0 {
		t.Errorf("%d containers are left", len(all))
	}
}

func TestTX08_AnIdleContainerGoesOnARealEngine(t *testing.T) {
	r := newReal(t, "tools:\n"+sh("where", "hostname")+`execution_policy: {rules: {"*": {name: docker, options: {idle_ttl_seconds: 1, network_mode: none}}}}`)
	if r.call("where", "{}"); len(r.containers(t.Context())) > 1 {
		t.Error("more than one container")
	}
	r.eventually("the container is gone", func() bool { return len(r.containers(t.Context())) == 0 })
	r.call("where", "{}")
}

func TestAGT03_TX20_WhatTheImageLacksIsSaid(t *testing.T) {
	r := newReal(t, `agents: [{name: reviewer, agent_ref: nobody.knows, description: x}]
tools:
`+sh("t", "true")+`execution_policy: {rules: {t: {name: docker, options: {image: "busybox:latest", network_mode: none}}, reviewer: {name: docker, options: {network_mode: none}}}}`)
	if result := r.call("reviewer", `{"question":"?"}`); result.Success || !strings.Contains(result.Error, "nobody.knows") {
		t.Errorf("%+v", result)
	}
	if result := r.call("t", "{}"); result.Success || !strings.Contains(result.Error, "has no worker") {
		t.Errorf("%+v", result)
	}
}
