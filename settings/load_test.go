package settings_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"caisson/sandbox"
	"caisson/settings"
)

const host = "SANDBOX_DOCKER_HOST=tcp://engine.example:2376"

// load reads settings that must be right.
func load(t *testing.T, environ ...string) settings.Settings {
	t.Helper()
	s, err := settings.Load(append([]string{host}, environ...))
	if err != nil {
		t.Fatalf("Load(%q): %v", environ, err)
	}
	return s
}

// faults reads settings that must be wrong.
func faults(t *testing.T, environ ...string) settings.Faults {
	t.Helper()
	_, err := settings.Load(environ)
	var all settings.Faults
	if !errors.As(err, &all) || len(all) == 0 {
		t.Fatalf("Load(%q) = %v, want faults", environ, err)
	}
	return all
}

// only wants exactly one fault, about name, that says every one of the words.
func only(t *testing.T, all settings.Faults, name string, words ...string) {
	t.Helper()
	if len(all) != 1 || all[0].Name != name {
		t.Fatalf("faults:\n%v\nwant one about %s", all, name)
	}
	for _, word := range words {
		if !strings.Contains(all[0].Text, word) {
			t.Errorf("%q does not say %q", all[0].Text, word)
		}
	}
}

func TestCFG01_EveryVariableHasOneOfTwoPrefixes(t *testing.T) {
	for _, row := range settings.Table() {
		if !strings.HasPrefix(row.Name, "SANDBOX_DOCKER_") && !strings.HasPrefix(row.Name, "SANDBOX_MCP_") {
			t.Errorf("%s has neither prefix", row.Name)
		}
	}
}

func TestCFG01_ValuesReachTheirFields(t *testing.T) {
	s := load(t, "SANDBOX_DOCKER_MAX_CPU=2.5", "SANDBOX_DOCKER_MAX_NETWORK=internal", "SANDBOX_DOCKER_TLS_VERIFY=false",
		"SANDBOX_DOCKER_ALLOWED_IMAGES=a*, b:1 ,c", "SANDBOX_DOCKER_DEFAULT_TTL_SECONDS=1.5", "SANDBOX_MCP_MAX_BODY_MB=7",
		"SANDBOX_MCP_ALLOWED_ORIGINS=https://a.example,http://localhost:3000", "OTHER=1")
	if s.Docker.MaxCPU != 2.5 || s.Docker.MaxNetwork != sandbox.NetworkInternal || s.Docker.TLSVerify ||
		strings.Join(s.Docker.AllowedImages, "|") != "a*|b:1|c" || s.Docker.DefaultTTL != 1500*time.Millisecond ||
		s.MCP.MaxBodyMB != 7 || len(s.MCP.AllowedOrigins) != 2 {
		t.Errorf("settings read as %+v", s)
	}
	if len(s.Warnings) != 0 {
		t.Errorf("warnings: %q", s.Warnings)
	}
}

func TestCFG02_HostIsRequiredWhateverElseIsThere(t *testing.T) {
	only(t, faults(t, "DOCKER_HOST=unix:///var/run/docker.sock", "DOCKER_CERT_PATH=/certs"), "SANDBOX_DOCKER_HOST", "required")
	only(t, faults(t, "SANDBOX_DOCKER_HOST="), "SANDBOX_DOCKER_HOST", "required")
}

func TestCFG06_CertificatePathsHaveDefaults(t *testing.T) {
	d := load(t).Docker
	if d.TLSCertPath != "/certs/client/cert.pem" || d.TLSKeyPath != "/certs/client/key.pem" || d.TLSCAPath != "/certs/client/ca.pem" || !d.TLSVerify {
		t.Errorf("TLS defaults: %+v", d)
	}
	if got := load(t, "SANDBOX_DOCKER_TLS_KEY_PATH=/k").Docker.TLSKeyPath; got != "/k" {
		t.Errorf("key path = %q", got)
	}
}

func TestCFG07_MaterialIsRefusedAndNeverRepeated(t *testing.T) {
	const secret = "MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSj"
	pem := "-----BEGIN PRIVATE KEY-----\n" + secret + "\n-----END PRIVATE KEY-----\n"
	for _, name := range []string{"SANDBOX_DOCKER_TLS_KEY_PATH", "SANDBOX_DOCKER_TLS_KEY_PEM", "SANDBOX_DOCKER_DEFAULT_CPU", "SANDBOX_MCP_OWNER"} {
		for _, value := range []string{pem, strings.ReplaceAll(pem, "\n", `\n`)} {
			s, err := settings.Load([]string{host, name + "=" + value})
			var all settings.Faults
			if !errors.As(err, &all) {
				t.Fatalf("%s with a key in it: %v", name, err)
			}
			only(t, all, name, "paths of files")
			if text := err.Error() + strings.Join(s.Warnings, ""); strings.Contains(text, secret[:12]) {
				t.Errorf("%s: the text repeats the key: %s", name, text)
			}
			for _, e := range s.Entries() {
				if strings.Contains(e.Value, secret[:12]) {
					t.Errorf("%s: the table shows the key", name)
				}
			}
		}
	}
}

func TestCFG07_WhatLooksLikeASecretIsNotRepeated(t *testing.T) {
	for _, value := range []string{"tcp://user:hunter2hunter2@x", "ghp_0123456789abcdef0123456789abcdef0123", strings.Repeat("hunter2 ", 40), "hunter2\xff"} {
		text := faults(t, host, "SANDBOX_DOCKER_DEFAULT_PIDS="+value).Error()
		if strings.Contains(text, "hunter2") || strings.Contains(text, "ghp_") || !strings.Contains(text, "not shown") {
			t.Errorf("the text repeats the value: %s", text)
		}
	}
	for _, e := range load(t, "SANDBOX_MCP_OWNER=ghp_0123456789abcdef0123456789abcdef0123").Entries() {
		if strings.Contains(e.Value, "ghp_") {
			t.Errorf("%s shows %q", e.Name, e.Value)
		}
	}
	image := "caisson-session@sha256:" + strings.Repeat("0a", 32)
	if got := entry(t, load(t, "SANDBOX_DOCKER_DEFAULT_IMAGE="+image), "SANDBOX_DOCKER_DEFAULT_IMAGE"); got.Value != image {
		t.Errorf("an image's digest is shown as %q", got.Value)
	}
}

func TestCFG08_CapsHaveFallbacksAndZeroIsNone(t *testing.T) {
	d := load(t).Docker
	if d.DefaultCPU != 1 || d.DefaultMemoryMB != 1024 || d.DefaultPids != 512 || d.MaxCPU != 0 || d.MaxMemoryMB != 0 {
		t.Errorf("caps: %+v", d)
	}
	d = load(t, "SANDBOX_DOCKER_DEFAULT_CPU=0", "SANDBOX_DOCKER_DEFAULT_MEMORY_MB=0", "SANDBOX_DOCKER_DEFAULT_PIDS=0").Docker
	if d.DefaultCPU != 0 || d.DefaultMemoryMB != 0 || d.DefaultPids != 0 {
		t.Errorf("no caps: %+v", d)
	}
	// The ceiling of processes, which alone is there unasked, gives way to a default that was chosen.
	for want, set := range map[int64][]string{
		4096: {"SANDBOX_DOCKER_DEFAULT_PIDS=4096"}, 5000: {"SANDBOX_DOCKER_DEFAULT_PIDS=5000"}, 0: {"SANDBOX_DOCKER_DEFAULT_PIDS=0"},
		600: {"SANDBOX_DOCKER_MAX_PIDS=600"},
	} {
		if got := load(t, set...).Docker.MaxPids; got != want {
			t.Errorf("%v: a ceiling of %d, want %d", set, got, want)
		}
	}
	if d := load(t, "SANDBOX_DOCKER_MAX_PIDS=0").Docker; d.MaxPids != 0 || d.DefaultPids != 512 {
		t.Errorf("no ceiling: %+v", d)
	}
}

func TestCFG10_TheProbeIsOffUntilItIsAskedFor(t *testing.T) {
	d := load(t).Docker
	if d.ReadinessProbeEnabled || d.ReadinessProbeImage != "busybox:latest" || d.ReadinessProbeTimeout != 30*time.Second {
		t.Errorf("%+v", d)
	}
	d = load(t, "SANDBOX_DOCKER_READINESS_PROBE_ENABLED=true", "SANDBOX_DOCKER_READINESS_PROBE_IMAGE=probe:1", "SANDBOX_DOCKER_READINESS_PROBE_TIMEOUT_SECONDS=5").Docker
	if !d.ReadinessProbeEnabled || d.ReadinessProbeImage != "probe:1" || d.ReadinessProbeTimeout != 5*time.Second {
		t.Errorf("%+v", d)
	}
}

func TestCFG11_TimesHaveDefaults(t *testing.T) {
	d := load(t).Docker
	for name, pair := range map[string][2]time.Duration{
		"ttl":          {d.DefaultTTL, time.Hour},
		"max ttl":      {d.MaxTTL, 24 * time.Hour},
		"sweep":        {d.ReapInterval, 30 * time.Second},
		"exec timeout": {d.ExecDefaultTimeout, 5 * time.Minute},
		"exec max":     {d.ExecMaxTimeout, 24 * time.Hour},
		"probe":        {d.ReadinessProbeTimeout, 30 * time.Second},
		"grace":        {d.InstanceGrace, 2 * time.Minute},
	} {
		if pair[0] != pair[1] {
			t.Errorf("%s = %v, want %v", name, pair[0], pair[1])
		}
	}
}

func TestTheLastOfARepeatedVariableCounts(t *testing.T) {
	if got := load(t, "SANDBOX_MCP_MAX_BODY_MB=5", "SANDBOX_MCP_MAX_BODY_MB=6").MCP.MaxBodyMB; got != 6 {
		t.Errorf("body = %d, want 6", got)
	}
	if got := load(t, "SANDBOX_MCP_MAX_BODY_MB=5", "SANDBOX_MCP_MAX_BODY_MB=").MCP.MaxBodyMB; got != 32 {
		t.Errorf("body = %d, want the default", got)
	}
}

func TestUnknownVariablesAreWarnedAbout(t *testing.T) {
	s := load(t, "SANDBOX_DOCKER_MAX_NETWOKR=none", "SANDBOX_MCP_ZZZZZZ=hunter2")
	if len(s.Warnings) != 2 || !strings.Contains(s.Warnings[0], "did you mean SANDBOX_DOCKER_MAX_NETWORK?") ||
		!strings.Contains(s.Warnings[1], "SANDBOX_MCP_ZZZZZZ") || strings.Contains(s.Warnings[1], "did you mean") {
		t.Errorf("warnings: %q", s.Warnings)
	}
	if strings.Contains(strings.Join(s.Warnings, ""), "hunter2") {
		t.Error("a warning repeats a value")
	}
}

func entry(t *testing.T, s settings.Settings, name string) settings.Entry {
	t.Helper()
	for _, e := range s.Entries() {
		if e.Name == name {
			return e
		}
	}
	t.Fatalf("no entry %s", name)
	return settings.Entry{}
}
