package sandbox_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"caisson/sandbox"
)

func ptr[T any](v T) *T { return &v }

var policy = sandbox.Policy{
	DefaultImage: "caisson-session:latest", DefaultCPU: 1, DefaultMemoryMB: 1024, DefaultPids: 512,
	DefaultNetwork: sandbox.NetworkNone, MaxNetwork: sandbox.NetworkInternal, AllowPersistent: true,
	DefaultTTL: time.Hour, MaxTTL: 24 * time.Hour,
}

func TestAPI02_SES16_NET01_DUR06_SES12_SES15_CFG14_PolicyRefusesByField(t *testing.T) {
	tight := policy
	tight.MaxCPU, tight.MaxMemoryMB, tight.MaxPids, tight.AllowPersistent = 2, 2048, 600, false
	uncapped := tight
	uncapped.DefaultPids = 0
	tight.AllowedImages = []string{"caisson-*", "debian:*"}
	vm := policy
	vm.MinIsolation = sandbox.IsolationVM
	for _, c := range []struct {
		name   string
		policy sandbox.Policy
		spec   sandbox.Spec
		kind   sandbox.Kind
		field  string
	}{
		{"network unknown", policy, sandbox.Spec{Network: "host"}, sandbox.KindInvalid, "network"},
		{"network container", policy, sandbox.Spec{Network: "container:abc"}, sandbox.KindInvalid, "network"},
		{"network over ceiling", policy, sandbox.Spec{Network: sandbox.NetworkEgress}, sandbox.KindRejected, "network"},
		{"durability unknown", policy, sandbox.Spec{Durability: "forever"}, sandbox.KindInvalid, "durability"},
		{"persistent without key", policy, sandbox.Spec{Durability: sandbox.Persistent}, sandbox.KindRejected, "workspace_key"},
		{"ephemeral with key", policy, sandbox.Spec{Durability: sandbox.Ephemeral, WorkspaceKey: "a"}, sandbox.KindInvalid, "workspace_key"},
		{"key with slash", policy, sandbox.Spec{WorkspaceKey: "../a"}, sandbox.KindInvalid, "workspace_key"},
		{"key is an option", policy, sandbox.Spec{WorkspaceKey: "n,type=bind"}, sandbox.KindInvalid, "workspace_key"},
		{"key too long", policy, sandbox.Spec{WorkspaceKey: strings.Repeat("a", 65)}, sandbox.KindInvalid, "workspace_key"},
		{"persistent not allowed", tight, sandbox.Spec{WorkspaceKey: "a"}, sandbox.KindRejected, "durability"},
		{"isolation unknown", policy, sandbox.Spec{Isolation: "none"}, sandbox.KindInvalid, "isolation"},
		{"vm without runtime", policy, sandbox.Spec{Isolation: sandbox.IsolationVM}, sandbox.KindRejected, "isolation"},
		{"under the floor", vm, sandbox.Spec{Isolation: sandbox.IsolationContainer}, sandbox.KindRejected, "isolation"},
		{"floor without runtime", vm, sandbox.Spec{}, sandbox.KindRejected, "isolation"},
		{"cpu zero", policy, sandbox.Spec{CPU: ptr(0.0)}, sandbox.KindRejected, "cpu"},
		{"cpu negative", policy, sandbox.Spec{CPU: ptr(-1.0)}, sandbox.KindRejected, "cpu"},
		{"cpu too small to be enforced", policy, sandbox.Spec{CPU: ptr(1e-7)}, sandbox.KindRejected, "cpu"},
		{"cpu too large", policy, sandbox.Spec{CPU: ptr(1e308)}, sandbox.KindRejected, "cpu"},
		{"pids too few for a command", policy, sandbox.Spec{Pids: ptr(int64(2))}, sandbox.KindRejected, "pids"},
		{"cpu over ceiling", tight, sandbox.Spec{CPU: ptr(2.5)}, sandbox.KindRejected, "cpu"},
		{"memory zero", policy, sandbox.Spec{MemoryMB: ptr(int64(0))}, sandbox.KindRejected, "memory_mb"},
		{"memory over ceiling", tight, sandbox.Spec{MemoryMB: ptr(int64(4096))}, sandbox.KindRejected, "memory_mb"},
		{"pids zero", policy, sandbox.Spec{Pids: ptr(int64(0))}, sandbox.KindRejected, "pids"},
		{"pids over ceiling", tight, sandbox.Spec{Pids: ptr(int64(601))}, sandbox.KindRejected, "pids"},
		{"no cap on pids is over any ceiling", uncapped, sandbox.Spec{}, sandbox.KindRejected, "pids"},
		{"ttl negative", policy, sandbox.Spec{TTL: -1}, sandbox.KindInvalid, "ttl_seconds"},
		{"ttl over ceiling", policy, sandbox.Spec{TTL: 25 * time.Hour}, sandbox.KindRejected, "ttl_seconds"},
		{"image is an option", policy, sandbox.Spec{Image: "--privileged"}, sandbox.KindInvalid, "image"},
		{"image with a password", policy, sandbox.Spec{Image: "user:canary@registry.example/x"}, sandbox.KindInvalid, "image"},
		{"image with a scheme", policy, sandbox.Spec{Image: "https://registry.example/x"}, sandbox.KindInvalid, "image"},
		{"image not allowed", tight, sandbox.Spec{Image: "evil"}, sandbox.KindRejected, "image"},
		{"env name", policy, sandbox.Spec{Env: map[string]sandbox.Secret{"A=B": {}}}, sandbox.KindInvalid, "env"},
		{"env function", policy, sandbox.Spec{Env: map[string]sandbox.Secret{"BASH_FUNC_x%%": {}}}, sandbox.KindInvalid, "env"},
		{"env NUL", policy, sandbox.Spec{Env: map[string]sandbox.Secret{"A": sandbox.NewSecret("x\x00y")}}, sandbox.KindInvalid, "env"},
		{"reserved label", policy, sandbox.Spec{Labels: map[string]string{"caisson.owner": "x"}}, sandbox.KindRejected, "labels"},
		{"reserved label, other case", policy, sandbox.Spec{Labels: map[string]string{"Caisson.owner": "x"}}, sandbox.KindRejected, "labels"},
		{"many labels", policy, sandbox.Spec{Labels: numbered(65, "v")}, sandbox.KindInvalid, "labels"},
		{"long labels", policy, sandbox.Spec{Labels: numbered(5, strings.Repeat("v", 4000))}, sandbox.KindInvalid, "labels"},
		{"long names of an environment", policy, sandbox.Spec{Env: secrets(numbered(200, "v"), strings.Repeat("N", 100))}, sandbox.KindInvalid, "env"},
		{"label with =", policy, sandbox.Spec{Labels: map[string]string{"a=b": "x"}}, sandbox.KindInvalid, "labels"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := c.policy.Apply(c.spec)
			var e *sandbox.Error
			if !asError(err, &e) || e.Kind != c.kind || e.Field != c.field || strings.Contains(e.Error(), "canary") {
				t.Fatalf("got %#v", err)
			}
		})
	}
}

func TestCFG08_D15_NET05_PolicyFillsWhatIsNotNamed(t *testing.T) {
	full, err := policy.Apply(sandbox.Spec{})
	if err != nil {
		t.Fatal(err)
	}
	got := fmt.Sprint(full.Image, full.Network, full.Durability, full.Isolation, *full.CPU, *full.MemoryMB, *full.Pids, full.TTL)
	if want := fmt.Sprint("caisson-session:latest", "none", "ephemeral", "container", 1.0, 1024, 512, time.Hour); got != want {
		t.Fatalf("got %s, want %s", got, want)
	}
	named, err := policy.Apply(sandbox.Spec{CPU: ptr(0.5), MemoryMB: ptr(int64(64)), Pids: ptr(int64(20)), TTL: time.Minute, WorkspaceKey: "main"})
	if err != nil {
		t.Fatal(err)
	}
	if *named.CPU != 0.5 || *named.MemoryMB != 64 || *named.Pids != 20 || named.TTL != time.Minute || named.Durability != sandbox.Persistent {
		t.Fatalf("%+v", named)
	}
	if pinned, err := policy.Apply(sandbox.Spec{Image: "debian@sha256:" + strings.Repeat("0a", 32)}); err != nil || !strings.HasPrefix(pinned.Image, "debian@") {
		t.Errorf("a digest: %v %v", pinned.Image, err)
	}
	none, err := sandbox.Policy{DefaultImage: "x", DefaultTTL: 1}.Apply(sandbox.Spec{})
	if err != nil || none.CPU != nil || none.MemoryMB != nil || none.Pids != nil {
		t.Fatalf("a default of 0 is no cap: %+v, %v", none, err)
	}
}

func TestSES14_CFG07_API10_SecretPrintsAsRedacted(t *testing.T) {
	const canary = "s3cr3t-canary"
	s := sandbox.NewSecret(canary)
	spec := sandbox.Spec{Env: map[string]sandbox.Secret{"KEY": s}}
	for _, format := range []string{"%v", "%+v", "%#v", "%s", "%q"} {
		for _, v := range []any{s, &s, spec, sandbox.ExecSpec{Env: spec.Env}} {
			if text := fmt.Sprintf(format, v); strings.Contains(text, canary) {
				t.Errorf("%s of %T shows the value: %s", format, v, text)
			}
		}
	}
	if s.Reveal() != canary {
		t.Error("Reveal does not reveal")
	}
}

// TestEnvironmentsThatNoProcessCanHaveAreRefused holds the bounds of one
// variable and of all, to the byte: past them nothing could be started.
func TestEnvironmentsThatNoProcessCanHaveAreRefused(t *testing.T) {
	value := func(n int) sandbox.Secret { return sandbox.NewSecret(strings.Repeat("v", n)) }
	many := func(n int) map[string]sandbox.Secret {
		env := map[string]sandbox.Secret{}
		for i := range n {
			env[fmt.Sprintf("K%02d", i)] = value(64<<10 - 5) // 64 KiB each with name, = and NUL
		}
		return env
	}
	for name, row := range map[string]struct {
		env map[string]sandbox.Secret
		ok  bool
	}{
		"one, the most":        {map[string]sandbox.Secret{"KEY": value(128<<10 - 5)}, true},
		"one, a byte more":     {map[string]sandbox.Secret{"KEY": value(128<<10 - 4)}, false},
		"all, the most":        {many(16), true},
		"all, a variable more": {many(17), false},
	} {
		_, err := sandbox.Policy{}.Apply(sandbox.Spec{Image: "img", Env: row.env})
		var e *sandbox.Error
		if row.ok != (err == nil) || !row.ok && (!asError(err, &e) || e.Kind != sandbox.KindInvalid || e.Field != "env" || strings.Contains(e.Text, "vvv")) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// numbered are n names that all have a value.
func numbered(n int, value string) map[string]string {
	all := map[string]string{}
	for i := range n {
		all[fmt.Sprint("n", i)] = value
	}
	return all
}

func secrets(values map[string]string, prefix string) map[string]sandbox.Secret {
	all := map[string]sandbox.Secret{}
	for name, value := range values {
		all[prefix+name] = sandbox.NewSecret(value)
	}
	return all
}
