package executor_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"caisson/executor"
	"caisson/sandbox"
)

// with is the resolution of a rule with these options.
func with(t *testing.T, s executor.Server, options string) executor.Resolution {
	t.Helper()
	return resolve(t, parse(t, rule("{name: docker, options: {"+options+"}}"), s), "t")
}

func TestTX14_OptionsWithoutAnyAreTheServersDefaults(t *testing.T) {
	o := with(t, server(), "").Rule.Instance.Options
	if o.Image != "caisson-tools:latest" || o.Mode != executor.Warm || o.IdleTTL != 300*time.Second || o.Network != sandbox.NetworkEgress || o.Memory != 536870912 || o.NanoCPUs != 500_000_000 ||
		o.Pids != 256 || !slices.Equal(o.CapDrop, []string{"ALL"}) || !slices.Equal(o.SecurityOpt, []string{"no-new-privileges"}) || o.PullPolicy != "missing" {
		t.Errorf("%+v", o)
	}
}

// An option beats what the settings say, which beats the default: each is looked at with
// the others as they are.
func TestTX14_AnOptionBeatsASetting(t *testing.T) {
	s := server()
	s.Image, s.Mode, s.IdleTTL, s.Network, s.PullPolicy = "set:1", executor.Ephemeral, time.Minute, sandbox.NetworkNone, "never"
	const from = "SANDBOX_DOCKER_"
	set := []string{
		"image set:1 " + from + "TOOL_IMAGE", "mode ephemeral " + from + "EXECUTOR_MODE", "idle_ttl_seconds 60 " + from + "IDLE_TTL_SECONDS",
		"network_mode none " + from + "NETWORK_MODE", "pull_policy never " + from + "PULL_POLICY",
	}
	for i, option := range []string{"image given", "mode warm", "idle_ttl_seconds 7", "network_mode internal", "pull_policy always"} {
		want := slices.Clone(set)
		want[i] = option + " manifest"
		option = strings.Replace(option, " ", ": ", 1)
		var got []string
		for _, v := range with(t, s, option).Rule.Instance.Options.Values() {
			if slices.ContainsFunc(want, func(w string) bool { return strings.HasPrefix(w, v.Name+" ") }) {
				got = append(got, v.Name+" "+v.Value+" "+v.From)
			}
		}
		slices.Sort(want)
		slices.Sort(got)
		if !slices.Equal(got, want) {
			t.Errorf("%s:\ngot  %q\nwant %q", option, got, want)
		}
	}
}

func TestTX16_EveryOptionIsReadAndShown(t *testing.T) {
	s := server()
	s.VMRuntime = "kata"
	r := with(t, s, `image: "r.example/t:1", mode: ephemeral, idle_ttl_seconds: 2.5, network_mode: bridge, mem_limit: 256M, nano_cpus: 100000000, pids_limit: 64, cap_drop: [cap_net_raw, all],
		security_opt: ["no-new-privileges:true"], env: {K: "x${API_KEY}y"}, labels: {team: blue}, pull_policy: never, runtime: kata, user: "1000:1000"`)
	if r.Refusal() != "" {
		t.Fatal(r.Refusal())
	}
	got := map[string]string{}
	for _, v := range r.Rule.Instance.Options.Values() {
		got[v.Name] = v.Value
		if v.From != "manifest" {
			t.Errorf("%s comes from %s", v.Name, v.From)
		}
	}
	for name, want := range map[string]string{
		"image": "r.example/t:1", "mode": "ephemeral", "idle_ttl_seconds": "2.5", "network_mode": "egress", "mem_limit": "256m", "nano_cpus": "100000000", "pids_limit": "64", "cap_drop": "ALL",
		"security_opt": "no-new-privileges", "env": "K", "labels": "team=blue", "pull_policy": "never", "runtime": "kata", "user": "1000:1000",
	} {
		if got[name] != want {
			t.Errorf("%s: %q, want %q", name, got[name], want)
		}
		delete(got, name)
	}
	if len(got) > 0 {
		t.Errorf("not looked at: %v", got)
	}
	if v := r.Rule.Instance.Options.Env["K"].Reveal(); v != "x"+canary+"y" {
		t.Errorf("env %q", v)
	}
}

func TestTX16_AWrongOptionIsAFault(t *testing.T) {
	for option, want := range map[string]string{
		"mode: cold": "mode is one of warm and ephemeral", "mode: [warm]": "not a list", "idle_ttl_seconds: 0": "from 1 to 31536000", "idle_ttl_seconds: '5'": "a number of seconds",
		"network_mode: nat": "none, internal, egress and bridge", "mem_limit: 1t": "512m", "mem_limit: 1.5g": "512m", "mem_limit: 5m": "at least 6m", "mem_limit: 0": "at least 6m",
		"mem_limit: 99999999999g": "at least 6m", "mem_limit: 17179869185g": "at most 9223372036854775807 bytes", "nano_cpus: 0": "from 10000000", "nano_cpus: 0.5": "whole number", "pids_limit: -1": "from 16", "pids_limit: 8": "from 16",
		"cap_drop: [NET_RAV]": "did you mean NET_RAW?", "cap_drop: ALL": "cap_drop is a list", "security_opt: [nnp]": "there is no security option", "security_opt: ['no-new-privileges:maybe']": "true or false",
		"env: [A=b]": "a mapping", "env: {A: 1}": "put it into quotes", "env: {'A-B': x}": "environment name", "labels: {caisson.id: x}": "this server's own", "labels: {a: true}": "put it into quotes", `labels: {a: "\e[2J"}`: "control characters",
		"pull_policy: daily": "missing, never and always", "runtime: 'a b'": "the name of an OCI runtime", "image: 'a b'": "without spaces", "image: 'x:${TAG}'": "takes no ${VAR}", "labels: {a: '${API_KEY}'}": "takes no ${VAR}",
		"mem_limt: 1g": "did you mean mem_limit?", "privileged: true": "has no option \"privileged\"",
	} {
		if got := faultsOf(t, rule("{name: docker, options: {"+option+"}}")).Error(); !strings.Contains(got, want) {
			t.Errorf("%s: %s, want %s", option, got, want)
		}
	}
}

func TestTX15_TX16_NothingOfTheEnginesHostIsHandedInAndNoOtherEngineIsNamed(t *testing.T) {
	for option, want := range map[string]string{
		"volumes: ['/:/host']": "mounts nothing", "binds: [/etc]": "mounts nothing", "mounts: []": "mounts nothing", "devices: [/dev/kvm]": "mounts nothing",
		"docker_host: 'unix:///var/run/docker.sock'": "no other", "docker_host: ''": "no other", "network_mode: host": "refused", "network_mode: 'container:abc'": "refused",
		"user: root": "never runs as root", "user: 0": "never runs as root", "user: '00:1000'": "never runs as root", "user: '1000:0'": "never runs as root", "user: '1000:root'": "never runs as root", "user: '4294967296'": "never runs as root",
	} {
		s := server()
		s.AllowWeaker, s.AllowLocal = true, true // no permission reaches this far
		_, err := executor.Parse("m.yml", []byte(rule("{name: docker, options: {"+option+"}}")), s)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", option, err)
		}
	}
}

func TestLooseningNeedsTheOperatorsConsentAndIsListed(t *testing.T) {
	for option, want := range map[string]string{
		"mem_limit: 1g": "mem_limit 1g is above 512m", "mem_limit: 536870913": "mem_limit 536870913 is above 512m", "nano_cpus: 500000001": "above 500000000", "pids_limit: 257": "above 256",
		"cap_drop: []": "leaves capabilities", "cap_drop: [NET_RAW]": "leaves capabilities", "security_opt: []": "leaves no-new-privileges out", "security_opt: [no-new-privileges, 'seccomp=unconfined']": "seccomp=unconfined",
		"security_opt: ['no-new-privileges:false']": "leaves no-new-privileges out", "security_opt: [no-new-privileges, 'apparmor=x']": "apparmor", "runtime: runc": `runtime "runc"`,
	} {
		r := with(t, server(), option)
		if !strings.Contains(r.Refusal(), want) || !strings.Contains(r.Refusal(), "SANDBOX_MCP_ALLOW_WEAKER_TOOLS") {
			t.Errorf("%s: %q, want %q", option, r.Refusal(), want)
		}
		s := server()
		s.AllowWeaker = true
		r = with(t, s, option)
		if r.Refusal() != "" || !strings.Contains(strings.Join(r.Rule.Instance.Loosenings, "\n"), want) {
			t.Errorf("%s, allowed: refusal %q, loosenings %q", option, r.Refusal(), r.Rule.Instance.Loosenings)
		}
	}
	for _, option := range []string{"mem_limit: 512m", "mem_limit: 6m", "nano_cpus: 500000000", "pids_limit: 256", "cap_drop: [ALL, NET_RAW]", "security_opt: ['no-new-privileges=true']", "network_mode: none"} {
		if r := with(t, server(), option); r.Refusal() != "" || len(r.Rule.Instance.Loosenings) > 0 {
			t.Errorf("%s: %q", option, r.Refusal())
		}
	}
}

func TestCeilingsOfSessionsApplyToTools(t *testing.T) {
	s := server()
	s.MaxNetwork, s.MaxNanoCPUs, s.MaxMemory, s.MaxPids, s.AllowWeaker = sandbox.NetworkInternal, 600_000_000, 600<<20, 300, true
	for option, want := range map[string]string{
		"network_mode: bridge": "looser than internal", "network_mode: none, nano_cpus: 700000000": "the most that this server gives", "network_mode: none, mem_limit: 1g": "above 600m",
		"network_mode: none, pids_limit: 301": "pids_limit 301 is above 300, the most that this server gives", "network_mode: none, pids_limit: 300": "",
		"network_mode: none": "", "network_mode: internal, mem_limit: 600m": "",
	} {
		if got := with(t, s, option).Refusal(); want == "" && got != "" || !strings.Contains(got, want) {
			t.Errorf("%s: %q", option, got)
		}
	}
	// The default is not spared.
	if r := resolve(t, parse(t, tools("t"), s), "t"); !strings.Contains(r.Refusal(), "no rule matches, and the docker executor cannot be used") {
		t.Errorf("default: %q", r.Refusal())
	}
}

func TestD29_AManifestNeverReadsTheServersOwnSettings(t *testing.T) {
	for _, value := range []string{"${SANDBOX_DOCKER_TLS_KEY_PATH}", "a${SANDBOX_MCP_X}b", "${sandbox_docker_host}", "${SANDBOX_}"} {
		got := faultsOf(t, rule("{name: docker, options: {env: {K: '"+value+"'}}}")).Error()
		if !strings.Contains(got, "never reads the server's own settings") || strings.Contains(got, canary) {
			t.Errorf("%s: %s", value, got)
		}
	}
}

func TestVariablesAreReadInEnvAlone(t *testing.T) {
	for value, want := range map[string]string{
		"${API_KEY}": canary, "a${EMPTY}b": "ab", "$API_KEY": "$API_KEY", "$${API_KEY}": "${API_KEY}", "$$": "$$", "x$${": "x${", "${API_KEY}${API_KEY}": canary + canary, "}": "}",
	} {
		o := with(t, server(), "env: {K: '"+value+"'}").Rule.Instance.Options
		if got := o.Env["K"].Reveal(); got != want {
			t.Errorf("%s: %q, want %q", value, got, want)
		}
	}
	for _, value := range []string{"${", "${}", "${A-B}", "${A:-x}", "${API_KEY", "${${API_KEY}}"} {
		if got := faultsOf(t, rule("{name: docker, options: {env: {K: '"+value+"'}}}")).Error(); !strings.Contains(got, "$${ stands for the characters themselves") {
			t.Errorf("%s: %s", value, got)
		}
	}
	r := with(t, server(), "env: {K: '${NOT_SET}'}")
	if !strings.Contains(r.Refusal(), "its env needs NOT_SET") {
		t.Errorf("not set: %q", r.Refusal())
	}
}

func TestValuesOfARulesEnvironmentAreNeverShown(t *testing.T) {
	r := with(t, server(), "env: {OPENAI_API_KEY: '${API_KEY}', PLAIN: "+canary+"}")
	object, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	text := fmt.Sprintf("%v %+v %#v %s", *r.Rule.Instance, *r.Rule.Instance, *r.Rule.Instance, object)
	for _, v := range r.Rule.Instance.Options.Values() {
		text += v.Value
	}
	if strings.Contains(text, canary) || !strings.Contains(text, "OPENAI_API_KEY") {
		t.Error(text)
	}
	long := faultsOf(t, rule("{name: docker, options: {env: {K: \""+canary+"\\0\"}}}")).Error()
	if strings.Contains(long, canary) {
		t.Error(long)
	}
}

func TestTheLocalExecutorTakesItsEnvironmentAlone(t *testing.T) {
	s := server()
	s.AllowLocal = true
	r := resolve(t, parse(t, rule("{name: local, options: {env: {A: b}}}"), s), "t")
	if r.Rule.Instance.Options.Env["A"].Reveal() != "b" {
		t.Errorf("%+v", r.Rule.Instance)
	}
	if got := faultsOf(t, rule("{name: local, options: {mem_limit: 1g}}")).Error(); !strings.Contains(got, "the local executor has no option mem_limit; known are env") {
		t.Error(got)
	}
}

func TestTheDefaultIsAUseOnlyWhereAToolIsLeftToIt(t *testing.T) {
	s := server()
	s.MaxNetwork = sandbox.NetworkNone // the default exceeds it
	const off = "{name: docker, options: {network_mode: none}}"
	for _, c := range []struct {
		text    string
		refused int
	}{
		{tools("t"), 1},
		{"tools: []", 0},
		{rule(off), 0},
		{tools("t") + `execution_policy: {rules: {"*": ` + off + "}}", 0},
		{files + `execution_policy: {rules: {fs_read: ` + off + "}}", 1},
		{files + `execution_policy: {rules: {"fs_*": ` + off + "}}", 0},
		{files + `execution_policy: {rules: {Files: ` + off + "}}", 0},
		{files + `execution_policy: {rules: {Files: ` + off + "}}\nexecution_policies: {p: {rules: {}}}", 1},
		{"tools: [{name: t, description: x, command: [x], executor: " + off + "}]", 0},
	} {
		if got := parse(t, c.text, s).Refusals(); len(got) != c.refused {
			t.Errorf("%s\n%d refusals, want %d: %v", c.text, len(got), c.refused, got)
		}
	}
}

func TestUsesListEachExecutorOnce(t *testing.T) {
	m := parse(t, "executors: {one: k8s}\n"+tools("a", "b")+`execution_policy: {rules: {a: one, b: {name: docker, options: {env: {K: "${NOT_SET}"}}}}}`, server())
	var refused []string
	for _, u := range m.Uses() {
		if u.Instance.Refusal != "" {
			refused = append(refused, fmt.Sprintf("%s %d", u.What, u.Line))
		}
	}
	if want := []string{"executor one 1", `rule "b" 5`}; !slices.Equal(refused, want) {
		t.Errorf("%q", refused)
	}
}
