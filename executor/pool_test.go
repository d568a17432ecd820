package executor_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"caisson/executor"
	"caisson/sandbox"
)

func TestD26_PrincipalsShareNoContainerAndClientSessionsNoREPL(t *testing.T) {
	r := newRig(t, tools("t")+"  - {name: py, description: x, repl: python}\n")
	seen := map[string]string{}
	for _, c := range []executor.Caller{
		{Owner: sandbox.Owner{Name: "alice"}},
		{Owner: sandbox.Owner{Name: "alice", Principal: true}},
		{Owner: sandbox.Owner{Name: "bob", Principal: true}},
	} {
		result := r.callAs(c, "t", "{}")
		if other, ok := seen[meta(result, "container")]; ok {
			t.Errorf("%+v shares a container with %s", c.Owner, other)
		}
		seen[meta(result, "container")] = c.Owner.Name
	}
	instances := map[string]bool{}
	for _, client := range []string{"", "one", "two", "one"} {
		c := caller("alice")
		c.Client = client
		r.callAs(c, "py", `{"code":"1"}`)
		calls := r.ran()
		instance := string(calls[len(calls)-1].InitArgs["instance"])
		instances[instance] = true
		if client != "" && strings.Contains(instance, client) {
			t.Errorf("the client session's key travels: %s", instance)
		}
	}
	if len(instances) != 3 {
		t.Errorf("%d REPLs for three client sessions: %v", len(instances), instances)
	}
}

func TestD26_OtherCeilingsAreAnotherContainer(t *testing.T) {
	r := newRig(t, tools("t"))
	c := caller("alice")
	first := meta(r.callAs(c, "t", "{}"), "container")
	c.Ceilings = &sandbox.Ceilings{MaxMemoryMB: 1024}
	second := meta(r.callAs(c, "t", "{}"), "container")
	c.Ceilings = &sandbox.Ceilings{MaxMemoryMB: 1024}
	if third := meta(r.callAs(c, "t", "{}"), "container"); first == second || second != third {
		t.Errorf("%s %s %s", first, second, third)
	}
	r.eventually("the first is gone", func() bool { return len(r.fake.Sessions()) == 1 })
	c.Ceilings = &sandbox.Ceilings{MaxNetwork: sandbox.NetworkNone}
	if result := r.callAs(c, "t", "{}"); result.Success || !strings.Contains(result.Error, "the tool was not run") {
		t.Errorf("over a principal's ceiling: %+v", result)
	}
}

func TestTX12_TX13_TheOptionsOfARuleReachTheContainer(t *testing.T) {
	r := newRig(t, tools("plain", "t")+`execution_policy:
  rules:
    t: {name: docker, options: {image: other, network_mode: internal, mem_limit: 256m, nano_cpus: 100000000, pids_limit: 64, cap_drop: [NET_RAW], security_opt: ["label=disable"], labels: {a: b}, pull_policy: never, runtime: runsc, user: "1234"}}
`)
	for name, want := range map[string]string{
		"plain": `caisson-tools:latest egress 0.5 256 map[] 536870912 [ALL] [no-new-privileges]   missing`,
		"t":     `other internal 0.1 64 map[a:b] 268435456 [NET_RAW] [label=disable] runsc 1234 never`,
	} {
		spec, _ := r.fake.SpecOf(r.value(name))
		o := spec.Operator
		got := fmt.Sprint(spec.Image, " ", spec.Network, " ", *spec.CPU, " ", *spec.Pids, " ", spec.Labels, " ",
			o.MemoryBytes, " ", o.CapDrop, " ", o.SecurityOpt, " ", o.Runtime, " ", o.User, " ", o.PullPolicy)
		if got != want {
			t.Errorf("%s:\ngot  %s\nwant %s", name, got, want)
		}
		if !spec.Owner.Tools || spec.Durability != sandbox.Ephemeral {
			t.Errorf("%+v", spec.Owner)
		}
	}
}

func TestTX21_EveryResultSaysWhoMadeIt(t *testing.T) {
	r := newRig(t, tools("t", "u")+`execution_policy: {rules: {"t*": {name: docker}}}`)
	r.play("t", func(c run) executor.Result {
		result := good(1)
		result.Metadata = map[string]json.RawMessage{"executor": raw(`"forged"`), "rule": raw(`"forged"`), "own": raw("1")}
		return result
	})
	result := r.call("t", "{}")
	for name, want := range map[string]string{"executor": "docker", "mode": "warm", "rule": "t*"} {
		if got := meta(result, name); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
	if string(result.Metadata["own"]) != "1" || !strings.HasPrefix(meta(result, "container"), "sbx_") || !strings.HasPrefix(meta(result, "exec_id"), "exec_") || len(result.Metadata["duration_ms"]) == 0 {
		t.Errorf("%s", result.Metadata)
	}
	if strings.Contains(meta(result, "container"), r.fake.Sessions()[0]) {
		t.Error("the whole handle is told")
	}
	if got := meta(r.call("u", "{}"), "rule"); got != "none" {
		t.Errorf("%q", got)
	}
}

func TestTX24_ENV05_WebhookAndPermissionTravelAndNothingMore(t *testing.T) {
	r := newRig(t, rule("{name: docker, webhook_callback_url: 'https://hooks.example/x'}"))
	c := caller("alice")
	c.Permission = &executor.Permission{Session: executor.PermissionSession{UserID: "alice", Roles: []string{"z", "a"}}, RequestID: "7", Channel: "http"}
	if result := r.callAs(c, "t", "{}"); !result.Success {
		t.Errorf("%+v", result)
	}
	e := r.ran()[0]
	if e.Webhook != "https://hooks.example/x" || e.Permission.Session.UserID != "alice" || e.Permission.Session.Roles[0] != "a" || e.Trace != nil {
		t.Errorf("%+v", e.raw)
	}
}

func TestENV11_AToolkitsTimeoutAndWebhookAreItsToolsOwn(t *testing.T) {
	r := startRig(t)
	r.play("Kit", lists("a"))
	r.open("toolkits: [{name: Kit, tool_prefix: k, command: [serve], remote_timeout_seconds: 7, webhook_callback_url: 'https://hooks.example/k'}]")
	r.Listed(t.Context())
	r.call("k_a", "{}")
	for _, c := range r.ran() {
		if c.Timeout > 12e9 || c.Timeout < 6e9 || c.Method == "a" && c.Webhook != "https://hooks.example/k" {
			t.Errorf("%s", c.raw)
		}
	}
}

func TestD09_POL17_ARefusedToolRunsNowhere(t *testing.T) {
	r := newRig(t, tools("t", "u", "v")+`execution_policy: {rules: {t: docker-sandbox, u: {name: docker, options: {env: {K: "${NOT_SET}"}}}}}
execution_policies: {strict: {rules: {"*": qworker}}}`)
	strict, wrong := caller("alice"), caller("alice")
	strict.Policy, wrong.Policy = "strict", "stricter"
	for _, c := range []struct {
		caller     executor.Caller
		tool, want string
	}{
		{caller("alice"), "t", `rule "t" cannot be used: the executor docker-sandbox is reserved`},
		{caller("alice"), "u", "NOT_SET"},
		{strict, "v", `rule "*" cannot be used: the executor qworker is not available in this build`},
		{wrong, "v", "no policy \"stricter\""},
	} {
		if e := r.refusal(c.caller, c.tool, "{}"); e.Kind != sandbox.KindToolUnavailable || !strings.Contains(e.Text, c.want) {
			t.Errorf("%s: %v", c.tool, e)
		}
	}
	r.value("v")
}

func TestPOL14_D30_NamedExecutorsAreSharedAndAReloadKeepsWhatIsTheSame(t *testing.T) {
	const manifest = `executors: {one: {name: docker}}
execution_policy: {rules: {a: one, c: {name: docker, options: {pids_limit: 100}}}}
execution_policies: {other: {rules: {a: one, b: one}}}
`
	r := newRig(t, tools("a", "b", "c")+manifest)
	other := caller("alice")
	other.Policy = "other"
	one, c := r.value("a"), r.value("c")
	if meta(r.callAs(other, "b", "{}"), "container") != sandbox.ShortID(one) || c == one {
		t.Error("a named executor is not shared by policies")
	}
	// The policy that used it is gone, and c's rule is another one.
	r.Reload(parse(t, tools("b", "c", "a")+strings.ReplaceAll(strings.Split(manifest, "execution_policies")[0], "100", "101"), wide()))
	if got := r.value("a"); got != one {
		t.Error("an executor that is declared in the same way did not stay")
	}
	if got := r.value("c"); got == c {
		t.Error("an executor whose declaration has changed stayed")
	}
	r.eventually("the old container is gone", func() bool { return len(r.fake.Sessions()) == 2 })
}

func TestPOL14_AReloadWaitsForCallsInFlight(t *testing.T) {
	r := newRig(t, rule("{name: docker}"))
	go_ := make(chan struct{})
	r.play("t", func(c run) executor.Result { <-go_; return good(c.Session) })
	got := make(chan executor.Result, 1)
	go func() { got <- r.call("t", "{}") }()
	r.eventually("the call runs", func() bool { return len(r.ran()) == 1 })
	r.Reload(parse(t, tools("u"), wide()))
	if e := r.refusal(caller("alice"), "t", "{}"); e.Kind != sandbox.KindInvalid {
		t.Error(e)
	}
	close(go_)
	if result := <-got; !result.Success {
		t.Errorf("%+v", result)
	}
	r.eventually("its container is gone", func() bool { return len(r.fake.Sessions()) == 0 })
}

func TestENV10_ExecutorsCloseOnceAndThenRunNothing(t *testing.T) {
	r := newRig(t, tools("warm", "once")+`execution_policy: {rules: {warm: {name: docker}, once: {name: docker, options: {mode: ephemeral}}}}`)
	r.value("warm")
	r.value("once")
	for range 2 {
		if err := r.Close(t.Context()); err != nil {
			t.Error(err)
		}
		for _, name := range []string{"warm", "once"} {
			if e := r.refusal(caller("alice"), name, "{}"); e.Kind != sandbox.KindUnavailable && e.Kind != sandbox.KindToolUnavailable {
				t.Errorf("%s: %v", name, e)
			}
		}
	}
	if n := len(r.fake.Sessions()); n != 0 {
		t.Errorf("%d containers are left", n)
	}
}

func TestPOL15_AnExecutorThatFailsToCloseKeepsNoOtherOpen(t *testing.T) {
	r := newRig(t, tools("a", "b", "c")+`execution_policy: {rules: {a: {name: docker}, b: {name: docker}, c: {name: docker, options: {mode: ephemeral}}}}`)
	r.value("a")
	r.value("b")
	r.value("c")
	r.fake.Fail("destroy", errors.New("broken"))
	_ = r.Close(t.Context()) // what it could not remove is in the log
	if !strings.Contains(r.log.String(), "tool container not removed") {
		t.Error(r.log)
	}
	if n := strings.Count(r.log.String(), "tool container not removed"); n != 2 {
		t.Errorf("%d containers were tried", n)
	}
	r.fake.Fail("destroy", nil)
	for _, id := range r.fake.Sessions() {
		r.fake.Vanish(id) // the manager's own Close would remove them
	}
	if err := r.Close(t.Context()); err != nil {
		t.Error(err)
	}
}
