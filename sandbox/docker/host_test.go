package docker

import (
	"strings"
	"testing"

	"caisson/sandbox"
)

func TestCFG03_CFG05_D06_Hosts(t *testing.T) {
	for _, c := range []struct {
		value  string
		verify bool
		want   host
	}{
		{"unix:///run/x.sock", true, host{"unix", "/run/x.sock", transportPlain}},
		{"/run/x.sock", true, host{"unix", "/run/x.sock", transportPlain}},
		{"/run/x.sock", false, host{"unix", "/run/x.sock", transportPlain}},
		{"tcp://engine:1234", true, host{"tcp", "engine:1234", transportMutual}},
		{"tcp://engine", true, host{"tcp", "engine:2376", transportMutual}},
		{"http://engine", true, host{"tcp", "engine:2376", transportMutual}},
		{"https://engine", true, host{"tcp", "engine:2376", transportMutual}},
		{"https://engine/", true, host{"tcp", "engine:2376", transportMutual}},
		{"tcp://engine", false, host{"tcp", "engine:2375", transportPlain}},
		{"http://engine", false, host{"tcp", "engine:2375", transportPlain}},
		{"https://engine", false, host{"tcp", "engine:2376", transportServer}},
		{"https://engine:99", false, host{"tcp", "engine:99", transportServer}},
		{"tcp://[::1]", true, host{"tcp", "[::1]:2376", transportMutual}},
		{"tcp://[fe80::1%25eth0]:77", true, host{"tcp", "[fe80::1%eth0]:77", transportMutual}},
		{"tcp://10.0.0.1:65535", true, host{"tcp", "10.0.0.1:65535", transportMutual}},
	} {
		got, err := parseHost(c.value, c.verify)
		if err != nil || got != c.want {
			t.Errorf("%s (verify %v): %+v, %v; want %+v", c.value, c.verify, got, err, c.want)
		}
	}
}

func TestCFG04_HostsThatAreRefused(t *testing.T) {
	for _, value := range []string{
		"", " ", "host:2375", "engine", "./x.sock", "run/x.sock", "ssh://u@h", "npipe:////./pipe/docker_engine", "fd://3",
		"tcp://", "tcp://:2376", "http://", "https://:443", "unix://", "unix://run/x.sock", "unix:///", "/", "//",
		"tcp://h:0", "tcp://h:65536", "tcp://h:-1", "tcp://h:http", "tcp://u:secret@h:1", "tcp://h/path", "tcp://h?x=secret", "tcp://h#f",
		"TCP://h", "tcp:/h", "tcp:h", "tcp://h h", "/" + strings.Repeat("x", 200), "/a\x00b",
	} {
		_, err := parseHost(value, true)
		wantError(t, err, sandbox.KindInvalid, hostSetting, hostSetting)
		if err != nil && strings.Contains(err.Error(), "secret") {
			t.Errorf("%q: the error repeats a secret: %v", value, err)
		}
	}
}

func TestCFG02_HostIsRequiredAndNothingElseIsTried(t *testing.T) {
	t.Setenv("DOCKER_HOST", "unix:///var/run/docker.sock")
	_, err := New(Config{TLSVerify: true})
	if err == nil || !strings.Contains(err.Error(), hostSetting) {
		t.Fatalf("error %v, want one that names %s", err, hostSetting)
	}
}

// TestCFG09_SettingsThatAreRefused sees every wrong setting named in one error.
func TestCFG09_SettingsThatAreRefused(t *testing.T) {
	_, err := New(Config{
		Host: "ssh://x", PullPolicy: "sometimes", FileTransfer: "pigeon", EgressNetwork: "host", SeccompProfile: "/nowhere/profile.json",
		DiskMB: -5, Probe: ProbeConfig{Enabled: true},
	})
	if err == nil {
		t.Fatal("accepted")
	}
	for _, name := range []string{
		hostSetting, "SANDBOX_DOCKER_PULL_POLICY", "SANDBOX_DOCKER_FILE_TRANSFER", "SANDBOX_DOCKER_EGRESS_NETWORK", seccompSetting,
		"SANDBOX_DOCKER_DISK_MB", "SANDBOX_DOCKER_READINESS_PROBE_IMAGE", "SANDBOX_DOCKER_READINESS_PROBE_TIMEOUT_SECONDS",
	} {
		if !strings.Contains(err.Error(), name) {
			t.Errorf("%s is not named in: %v", name, err)
		}
	}
}

func TestD22_EgressNetworkIsANetworkOfContainers(t *testing.T) {
	for name, ok := range map[string]bool{
		"": true, "bridge": true, "tai-sbx-egress": true, "my.net_1": true,
		"host": false, "none": false, "default": false, "container:abc": false, "tai-sbx-internal": false, "-x": false, "a b": false, "x/y": false,
	} {
		p, err := New(Config{Host: "/x", EgressNetwork: name})
		if (err == nil) != ok {
			t.Errorf("%q: %v, want accepted %v", name, err, ok)
		}
		if err == nil {
			_ = p.Close()
		}
	}
}
