package docker

import (
	"slices"
	"strings"
	"testing"

	"github.com/docker/docker/api/types/mount"

	"caisson/sandbox"
)

// TestAttackT01_NoPrivilegeInAnyProcess reads the vectors of a command and of
// process 1 on each tier.
func TestAttackT01_SES04_SES05_NoPrivilegeInAnyProcess(t *testing.T) {
	t.Parallel()
	onEachTier(t, func(t *testing.T, p *Provider, s *Session) {
		for _, pid := range []string{"self", "1"} {
			status := map[string]string{}
			for line := range strings.Lines(sh(t, s, "cat /proc/"+pid+"/status")) {
				name, value, _ := strings.Cut(strings.TrimSpace(line), ":")
				status[name] = strings.TrimSpace(value)
			}
			for _, set := range []string{"CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"} {
				if strings.Trim(status[set], "0") != "" {
					t.Errorf("%s: %s is %s", pid, set, status[set])
				}
			}
			if status["NoNewPrivs"] != "1" || status["Seccomp"] != "2" {
				t.Errorf("%s: NoNewPrivs %s, Seccomp %s", pid, status["NoNewPrivs"], status["Seccomp"])
			}
			if strings.HasPrefix(status["Uid"], "0") {
				t.Errorf("%s: Uid %s", pid, status["Uid"])
			}
			for _, g := range strings.Fields(status["Groups"]) {
				if g == "0" {
					t.Errorf("%s: Groups %s", pid, status["Groups"])
				}
			}
		}
		if self, init := sh(t, s, "grep ^Uid: /proc/self/status"), sh(t, s, "grep ^Uid: /proc/1/status"); self == init {
			t.Errorf("process 1 runs as the command's user: %s", self)
		}
		if r := run(t, s, shell("kill -TERM 1; kill -KILL 1")); r.code() == 0 {
			t.Error("a command can signal process 1")
		}
		c := inspect(t, p, s)
		if c.HostConfig.Privileged || !slices.Equal(c.HostConfig.CapDrop, []string{"ALL"}) || !slices.Contains(c.HostConfig.SecurityOpt, "no-new-privileges") {
			t.Errorf("%+v", c.HostConfig)
		}
	})
}

func TestSES04_SetuidRaisesNothing(t *testing.T) {
	t.Parallel()
	s := create(t, provider(t), specOf(""))
	got := sh(t, s, "cp -L /bin/sh /tmp/busybox && chmod 6755 /tmp/busybox && /tmp/busybox id -u")
	if got != "1000\n" {
		t.Error(got)
	}
}

func TestSES07_SES08_SES09_OneMountAndNoIdentity(t *testing.T) {
	t.Parallel()
	p := provider(t)
	spec := specOf("")
	spec.Env = map[string]sandbox.Secret{"A": sandbox.NewSecret("b")}
	s := create(t, p, spec)
	c := inspect(t, p, s)
	if len(c.HostConfig.Binds) != 0 || len(c.Mounts) != 1 || c.Mounts[0].Type != mount.TypeVolume || c.Mounts[0].Destination != workspacePath {
		t.Errorf("binds %v, mounts %+v", c.HostConfig.Binds, c.Mounts)
	}
	if len(c.NetworkSettings.Ports) != 0 || len(c.HostConfig.PortBindings) != 0 {
		t.Error("a port is published")
	}
	got := sh(t, s, "pwd; ls -a /certs /var/run/docker.sock /run/docker.sock 2>/dev/null; env; cat /proc/mounts")
	vars, err := engineVars()
	if err != nil {
		t.Fatal(err)
	}
	for _, bad := range []string{"docker.sock", "cert.pem", "DOCKER_", strings.TrimPrefix(vars["SANDBOX_DOCKER_HOST"], "tcp://")} {
		if strings.Contains(got, bad) {
			t.Errorf("%q is seen inside", bad)
		}
	}
	if !strings.HasPrefix(got, workspacePath+"\n") {
		t.Errorf("a command starts in %q", strings.SplitN(got, "\n", 2)[0])
	}
}
