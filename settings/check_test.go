package settings_test

import (
	"strings"
	"testing"
	"time"

	"caisson/settings"
)

func TestEveryFaultIsReportedAtOnceInTheOrderOfTheTable(t *testing.T) {
	all := faults(t, "SANDBOX_MCP_TRANSPORT=carrier-pigeon", "SANDBOX_DOCKER_MAX_SESSIONS=none", "SANDBOX_DOCKER_DEFAULT_CPU=-1",
		"SANDBOX_DOCKER_TLS_VERIFY=maybe", "SANDBOX_DOCKER_PULL_POLICY=sometimes", "SANDBOX_DOCKER_REAP_INTERVAL_SECONDS=0")
	want := []struct{ name, takes, got string }{
		{"SANDBOX_DOCKER_HOST", "tcp://host", ""},
		{"SANDBOX_DOCKER_TLS_VERIFY", "true or false", `"maybe"`},
		{"SANDBOX_DOCKER_DEFAULT_CPU", "0, or a number from 0.01 to 4096", `"-1"`},
		{"SANDBOX_DOCKER_PULL_POLICY", "missing, never or always", `"sometimes"`},
		{"SANDBOX_DOCKER_REAP_INTERVAL_SECONDS", "a number of seconds from 0.1 to 86400", `"0"`},
		{"SANDBOX_DOCKER_MAX_SESSIONS", "a whole number from 1 to 100000", `"none"`},
		{"SANDBOX_MCP_TRANSPORT", "stdio or http", `"carrier-pigeon"`},
	}
	if len(all) != len(want) {
		t.Fatalf("%d faults, want %d:\n%v", len(all), len(want), all)
	}
	for i, w := range want {
		if all[i].Name != w.name || !strings.Contains(all[i].Text, w.takes) || !strings.Contains(all[i].Text, w.got) {
			t.Errorf("fault %d is %q, want %s with %q and %q", i, all[i], w.name, w.takes, w.got)
		}
	}
	if lines := strings.Split(all.Error(), "\n"); len(lines) != len(want) {
		t.Errorf("%d lines", len(lines))
	}
}

func TestWrongValues(t *testing.T) {
	for _, c := range []struct{ set, text string }{
		{"SANDBOX_DOCKER_DEFAULT_CPU=NaN", "a number"},
		{"SANDBOX_DOCKER_DEFAULT_CPU=+Inf", "a number"},
		{"SANDBOX_DOCKER_DEFAULT_CPU=0.001", "0.01"},
		{"SANDBOX_DOCKER_DEFAULT_MEMORY_MB=5", "from 6"},
		{"SANDBOX_DOCKER_DEFAULT_MEMORY_MB=5.5", "a whole number"},
		{"SANDBOX_DOCKER_DEFAULT_MEMORY_MB=9223372036854775807", "67108864"},
		{"SANDBOX_DOCKER_DEFAULT_MEMORY_MB=99999999999999999999", "67108864"},
		{"SANDBOX_DOCKER_DEFAULT_TTL_SECONDS=1000000000000", "31536000"},
		{"SANDBOX_DOCKER_DEFAULT_TTL_SECONDS=1e300", "31536000"},
		{"SANDBOX_DOCKER_DEFAULT_TTL_SECONDS=-1", "seconds"},
		{"SANDBOX_DOCKER_DEFAULT_TTL_SECONDS=1h", "seconds"},
		{"SANDBOX_DOCKER_DEFAULT_TTL_SECONDS=NaN", "seconds"},
		{"SANDBOX_DOCKER_MAX_SESSIONS= 5", "whole number"},
		{"SANDBOX_DOCKER_RUNTIME=--privileged", "OCI runtime"},
		{"SANDBOX_DOCKER_INSTANCE=a/b", "letters"},
		{"SANDBOX_DOCKER_INSTANCE=" + strings.Repeat("a", 64), "letters"},
		{"SANDBOX_DOCKER_DEFAULT_IMAGE=--privileged", "image"},
		{"SANDBOX_DOCKER_ALLOWED_IMAGES=a,,b", "patterns"},
		{"SANDBOX_DOCKER_ALLOWED_IMAGES=caisson-[", "patterns"},
		{"SANDBOX_DOCKER_SPOOL_DIR=spool", "absolute"},
		{"SANDBOX_DOCKER_FILE_TRANSFER=tar", "auto, exec or archive"},
		{"SANDBOX_MCP_OWNER=a\x07b", "printable"},
		{"SANDBOX_MCP_ALLOWED_ORIGINS=*", "origins"},
		{"SANDBOX_MCP_ALLOWED_ORIGINS=null", "origins"},
		{"SANDBOX_MCP_ALLOWED_ORIGINS=https://a.example/", "origins"},
		{"SANDBOX_MCP_LOG_LEVEL=loud", "debug, info, warn or error"},
		{"SANDBOX_MCP_ADDR=:8811", "host:port"},
		{"SANDBOX_MCP_METRICS_ADDR=:9090", "the one address"},
		{"SANDBOX_MCP_METRICS_ADDR=0.0.0.0:9090", "the one address"},
		{"SANDBOX_MCP_METRICS_ADDR=[::]:9090", "the one address"},
		{"SANDBOX_MCP_METRICS_ADDR=[::ffff:0.0.0.0]:9090", "the one address"},
		{"SANDBOX_MCP_METRICS_ADDR=[::%lo]:9090", "the one address"},
		{"SANDBOX_MCP_METRICS_ADDR=127.0.0.1:metrics", "the one address"},
		{"SANDBOX_MCP_AUDIT_FILE=audit.log", "absolute path"},
		{"SANDBOX_MCP_ADDR=127.0.0.1", "host:port"},
		{"SANDBOX_MCP_ADDR=127.0.0.1:99999", "host:port"},
		{"SANDBOX_MCP_ADDR=127.0.0.1:http", "host:port"},
	} {
		name, _, _ := strings.Cut(c.set, "=")
		only(t, faults(t, host, c.set), name, c.text)
	}
}

func TestDefaultsStayBelowTheirCeilings(t *testing.T) {
	for _, c := range []struct {
		name string
		set  []string
	}{
		{"SANDBOX_DOCKER_DEFAULT_TTL_SECONDS", []string{"SANDBOX_DOCKER_MAX_TTL_SECONDS=60"}},
		{"SANDBOX_DOCKER_EXEC_DEFAULT_TIMEOUT_SECONDS", []string{"SANDBOX_DOCKER_EXEC_MAX_TIMEOUT_SECONDS=60"}},
		{"SANDBOX_DOCKER_DEFAULT_NETWORK", []string{"SANDBOX_DOCKER_MAX_NETWORK=internal", "SANDBOX_DOCKER_DEFAULT_NETWORK=egress"}},
		{"SANDBOX_DOCKER_DEFAULT_CPU", []string{"SANDBOX_DOCKER_MAX_CPU=0.5"}},
		{"SANDBOX_DOCKER_DEFAULT_CPU", []string{"SANDBOX_DOCKER_MAX_CPU=2", "SANDBOX_DOCKER_DEFAULT_CPU=0"}},
		{"SANDBOX_DOCKER_DEFAULT_MEMORY_MB", []string{"SANDBOX_DOCKER_MAX_MEMORY_MB=512"}},
		{"SANDBOX_DOCKER_DEFAULT_PIDS", []string{"SANDBOX_DOCKER_MAX_PIDS=511"}},
		{"SANDBOX_DOCKER_DEFAULT_PIDS", []string{"SANDBOX_DOCKER_MAX_PIDS=4096", "SANDBOX_DOCKER_DEFAULT_PIDS=0"}},
		{"SANDBOX_DOCKER_MIN_ISOLATION", []string{"SANDBOX_DOCKER_MIN_ISOLATION=vm"}},
		{"SANDBOX_DOCKER_SPOOL_TOTAL_MB", []string{"SANDBOX_DOCKER_SPOOL_TOTAL_MB=63"}},
	} {
		only(t, faults(t, append(c.set, host)...), c.name, "")
	}
	load(t, "SANDBOX_DOCKER_MAX_NETWORK=none")
	load(t, "SANDBOX_DOCKER_MAX_TTL_SECONDS=60", "SANDBOX_DOCKER_DEFAULT_TTL_SECONDS=60")
	load(t, "SANDBOX_DOCKER_MIN_ISOLATION=vm", "SANDBOX_DOCKER_VM_RUNTIME=kata")
}

func TestAnAddressThatOthersReachNeedsPrincipalsAndAName(t *testing.T) {
	for _, addr := range []string{"0.0.0.0:8811", "[::]:8811", "10.1.2.3:8811", "sandbox.example:8811"} {
		all := faults(t, host, "SANDBOX_MCP_TRANSPORT=http", "SANDBOX_MCP_ADDR="+addr)
		if len(all) != 2 || all[0].Name != "SANDBOX_DOCKER_INSTANCE" || all[1].Name != "SANDBOX_MCP_ADDR" {
			t.Errorf("%s: %v", addr, all)
		}
	}
	for _, addr := range []string{"127.0.0.1:0", "localhost:8811", "[::1]:8811", "127.8.8.8:1", "[::ffff:127.0.0.1]:9"} {
		load(t, "SANDBOX_MCP_TRANSPORT=http", "SANDBOX_MCP_ADDR="+addr)
	}
	load(t, "SANDBOX_MCP_ADDR=0.0.0.0:8811") // stdio listens nowhere
}

func TestInstanceIsTheHostsOnHTTPAndUniqueOnStdio(t *testing.T) {
	if a, b := load(t).Docker.Instance, load(t).Docker.Instance; a == b || a == "" {
		t.Errorf("two stdio servers are %q and %q", a, b)
	}
	if a, b := load(t, "SANDBOX_MCP_TRANSPORT=http").Docker.Instance, load(t, "SANDBOX_MCP_TRANSPORT=http").Docker.Instance; a != b || a == "" {
		t.Errorf("two http servers of one host are %q and %q", a, b)
	}
	if got := load(t, "SANDBOX_DOCKER_INSTANCE=one").Docker.Instance; got != "one" {
		t.Errorf("instance = %q", got)
	}
}

// The settings of tools are in force.
func TestD17_TheSettingsOfToolsAreTaken(t *testing.T) {
	s := load(t, "SANDBOX_DOCKER_TOOL_IMAGE=tools:1", "SANDBOX_DOCKER_EXECUTOR_MODE=ephemeral", "SANDBOX_DOCKER_IDLE_TTL_SECONDS=7",
		"SANDBOX_DOCKER_NETWORK_MODE=none", "SANDBOX_MCP_MANIFEST=m.yml", "SANDBOX_MCP_ALLOW_LOCAL=true", "SANDBOX_MCP_ALLOW_WEAKER_TOOLS=true")
	if d := s.Docker; d.ToolImage != "tools:1" || d.ExecutorMode != "ephemeral" || d.IdleTTL != 7*time.Second || d.NetworkMode != "none" {
		t.Errorf("%+v", d)
	}
	if m := s.MCP; m.Manifest != "m.yml" || !m.AllowLocal || !m.AllowWeakerTools {
		t.Errorf("%+v", m)
	}
	only(t, faults(t, host, "SANDBOX_DOCKER_EXECUTOR_MODE=tepid"), "SANDBOX_DOCKER_EXECUTOR_MODE", "takes warm or ephemeral")
}

// Whatever the environment holds, Load answers, and with faults that are about
// variables of ours and no longer than a line.
func FuzzLoad(f *testing.F) {
	for _, seed := range []string{"", "1", "-1", "1e309", "tcp://x", "a,b", "\x00", "-----BEGIN", "127.0.0.1:0"} {
		f.Add(seed)
	}
	names := settings.Names()
	f.Fuzz(func(t *testing.T, value string) {
		environ := make([]string, len(names))
		for i, name := range names {
			environ[i] = name + "=" + value
		}
		s, err := settings.Load(environ)
		for line := range strings.Lines(errorText(err)) {
			if !strings.HasPrefix(line, "SANDBOX_") || len(line) > 400 {
				t.Errorf("fault %q", line)
			}
		}
		if len(s.Entries()) != len(names) {
			t.Error("entries are missing")
		}
	})
}

func errorText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}
