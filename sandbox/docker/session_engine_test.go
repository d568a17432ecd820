package docker

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/containerd/errdefs"
	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/filters"
	"github.com/docker/docker/api/types/mount"
	"github.com/docker/docker/api/types/network"
	"github.com/docker/docker/api/types/volume"

	"caisson/sandbox"
)

// inspect is the engine's own word about a session's container.
func inspect(t *testing.T, p *Provider, s *Session) container.InspectResponse {
	t.Helper()
	c, err := p.api.ContainerInspect(t.Context(), s.containerID)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// containers and volumes are what of this run's instance there is.
func containers(t *testing.T, p *Provider) []string {
	t.Helper()
	list, err := p.api.ContainerList(t.Context(), container.ListOptions{All: true, Filters: filters.NewArgs(filters.Arg("label", labelInstance+"="+p.cfg.Instance))})
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, c := range list {
		names = append(names, c.Names...)
	}
	return names
}

func volumes(t *testing.T, p *Provider) []string {
	t.Helper()
	list, err := p.api.VolumeList(t.Context(), volume.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, v := range list.Volumes {
		names = append(names, v.Name)
	}
	slices.Sort(names)
	return names
}

// tiers are all of them, each with a session on it.
func onEachTier(t *testing.T, test func(t *testing.T, p *Provider, s *Session)) {
	p := provider(t)
	for _, tier := range []sandbox.Network{sandbox.NetworkNone, sandbox.NetworkInternal, sandbox.NetworkEgress} {
		t.Run(string(tier), func(t *testing.T) {
			spec := specOf("")
			spec.Network = tier
			test(t, p, create(t, p, spec))
		})
	}
}

func TestSES01_SES02_SES03_OneIdleContainerUnderTheEnginesInit(t *testing.T) {
	p := provider(t)
	a, b := create(t, p, specOf("")), create(t, p, specOf(""))
	if a.containerID == b.containerID {
		t.Fatal("two sessions share a container")
	}
	c := inspect(t, p, a)
	if c.Name != "/caisson-"+a.info.ID || !c.State.Running || c.HostConfig.Init == nil || !*c.HostConfig.Init {
		t.Errorf("%s, running %v, init %v", c.Name, c.State.Running, c.HostConfig.Init)
	}
	if got := sh(t, a, "tr '\\0' ' ' </proc/1/cmdline"); !strings.Contains(got, "docker-init") || !strings.Contains(got, "sleep "+idleSeconds) {
		t.Errorf("process 1 is %q", got)
	}
	sh(t, a, "i=0; while [ $i -lt 20 ]; do (sleep 0.1 >/dev/null 2>&1 &); i=$((i+1)); done")
	eventually(t, "orphans are reaped", func() bool {
		return strings.TrimSpace(sh(t, a, `cat /proc/[0-9]*/stat 2>/dev/null | grep -c ') Z ' || true`)) == "0"
	})
}

// TestAttackT01_NoPrivilegeInAnyProcess reads the vectors of a command and of
// process 1 on each tier.
func TestAttackT01_SES04_SES05_NoPrivilegeInAnyProcess(t *testing.T) {
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
	s := create(t, provider(t), specOf(""))
	got := sh(t, s, "cp -L /bin/sh /tmp/busybox && chmod 6755 /tmp/busybox && /tmp/busybox id -u")
	if got != "1000\n" {
		t.Error(got)
	}
}

func TestSES07_SES08_SES09_OneMountAndNoIdentity(t *testing.T) {
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

func TestSES10_SessionsDoNotSeeEachOthersWorkspace(t *testing.T) {
	p := provider(t)
	a, b := create(t, p, specOf("")), create(t, p, specOf(""))
	sh(t, a, "echo a >/workspace/f; echo a >/tmp/f")
	if r := run(t, b, shell("cat /workspace/f /tmp/f")); r.code() == 0 || r.stdout != "" {
		t.Errorf("B reads %q of A", r.stdout)
	}
}

func TestSES11_SES19_BugVO02_WorkspaceAndTmpAreWritable(t *testing.T) {
	p := provider(t)
	for _, image := range []string{busybox, debian, "caisson-test-nonroot", "caisson-test-rootuser", "caisson-test-contract", "caisson-test-volume"} {
		t.Run(image, func(t *testing.T) {
			s := create(t, p, specOf(image))
			got := sh(t, s, "echo 1 >/workspace/f && echo 1 >/tmp/f && echo 1 >$HOME/g && cat /workspace/f && while read -r k v rest; do [ $k != Uid: ] || echo $v; done </proc/self/status")
			uid := strings.Fields(got)[1]
			if uid == "0" || uid != fmt.Sprint(s.user.uid) {
				t.Errorf("runs as %s, want %v", uid, s.user)
			}
			env := sh(t, s, "echo $HOME:$USER:$LOGNAME; while IFS=: read -r n x u rest; do [ $u != "+uid+" ] || echo entry $n; done </etc/passwd")
			if want := fmt.Sprintf("%s:%s:%s\nentry %s\n", s.user.home, s.user.name, s.user.name, s.user.name); env != want {
				t.Errorf("%q, want %q", env, want)
			}
		})
	}
}

func TestSES12_EngineRefusesCaps(t *testing.T) {
	p := provider(t)
	before := volumes(t, p)
	spec := specOf("")
	spec.CPU = ptr(4096.0)
	_, err := tryCreate(t, p, spec)
	wantError(t, err, sandbox.KindRejected, "cpu")
	spec = specOf("")
	spec.MemoryMB = ptr(int64(2))
	_, err = tryCreate(t, p, spec)
	wantError(t, err, sandbox.KindRejected, "memory_mb")
	if left := containers(t, p); len(left) != 0 || !slices.Equal(before, volumes(t, p)) {
		t.Errorf("left behind: %v", left)
	}
	s := create(t, p, specOf(""))
	h := inspect(t, p, s).HostConfig
	if h.NanoCPUs != 1e9 || h.Memory != 128<<20 || h.MemorySwap != h.Memory || *h.PidsLimit != 128 {
		t.Errorf("%+v", h.Resources)
	}
}

func TestSES13_D08_ListAndOpenTellWhatCreateMade(t *testing.T) {
	p := provider(t)
	spec := specOf("")
	spec.Labels, spec.Env, spec.Network = map[string]string{"team": "x", "caissonless": "1"}, map[string]sandbox.Secret{"TOKEN": sandbox.NewSecret("canary-7")}, sandbox.NetworkInternal
	s := create(t, p, spec)
	made := s.Info()
	if made.OwnerHash != spec.Owner.Hash() || made.Instance != testInstance || made.Image != busybox || !maps.Equal(made.Labels, spec.Labels) ||
		!slices.Equal(made.EnvNames, []string{"TOKEN"}) || made.State != sandbox.StateRunning || made.TTL != time.Hour || made.ImageID == "" || made.CPU != 1 || made.MemoryMB != 128 {
		t.Errorf("%+v", made)
	}
	list, err := p.List(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	at := slices.IndexFunc(list, func(i sandbox.Info) bool { return i.ID == made.ID })
	if at < 0 || fmt.Sprintf("%+v", list[at]) != fmt.Sprintf("%+v", made) {
		t.Errorf("listed at %d, as %+v\nwant %+v", at, list, made)
	}
	opened, err := p.Open(t.Context(), made.ID)
	if err != nil {
		t.Fatal(err)
	}
	if fmt.Sprintf("%+v", opened.Info()) != fmt.Sprintf("%+v", made) {
		t.Errorf("opened as %+v\nwant %+v", opened.Info(), made)
	}
	if got := sh(t, opened.(*Session), "echo $TOKEN; id -u"); got != "canary-7\n1000\n" {
		t.Errorf("in the opened one: %q", got)
	}
	for name, value := range inspect(t, p, s).Config.Labels {
		if strings.Contains(value, "canary-7") {
			t.Errorf("label %s carries the secret", name)
		}
	}
	_, err = p.Open(t.Context(), sandbox.NewSessionID())
	wantError(t, err, sandbox.KindSessionNotFound, "")
	_, err = p.Open(t.Context(), "../containers")
	wantError(t, err, sandbox.KindSessionNotFound, "")
}

func TestSES14_BaseEnvironmentAndOverrides(t *testing.T) {
	t.Setenv("CAISSON_LEAK_CANARY", "leaked")
	spec := specOf("")
	spec.Env = map[string]sandbox.Secret{"A": sandbox.NewSecret("base a"), "B": sandbox.NewSecret("b=1 '\"$x\n"), "HOME": sandbox.NewSecret("/tmp")}
	s := create(t, provider(t), spec)
	r := run(t, s, sandbox.ExecSpec{Argv: []string{"sh", "-c", `printf '%s|' "$A" "$B" "$C" "$HOME" "$PATH"; env`}, Env: map[string]sandbox.Secret{
		"A": sandbox.NewSecret("over"), "C": sandbox.NewSecret(""), "PATH": sandbox.NewSecret("/bin:/x"),
	}})
	if want := "over|b=1 '\"$x\n||/tmp|/bin:/x|"; !strings.HasPrefix(r.stdout, want) {
		t.Errorf("%q, want %q", r.stdout, want)
	}
	if strings.Contains(r.stdout, "CAISSON_LEAK_CANARY") || strings.Contains(r.stdout, "tai_") {
		t.Errorf("leaked: %s", r.stdout)
	}
}

func TestSES15_VMNeedsItsRuntime(t *testing.T) {
	cfg := engine(t)
	spec := specOf("")
	spec.Isolation = sandbox.IsolationVM
	_, err := tryCreate(t, newProvider(t, cfg), spec)
	wantError(t, err, sandbox.KindRejected, "isolation")
	cfg.VMRuntime = "kata-nowhere"
	_, err = tryCreate(t, newProvider(t, cfg), spec)
	wantError(t, err, sandbox.KindRejected, "runtime")
	cfg.Runtime = "runsc-nowhere"
	_, err = tryCreate(t, newProvider(t, cfg), specOf(""))
	wantError(t, err, sandbox.KindRejected, "runtime")
}

func TestSES18_BugIM03_ImagesThatBringTheirOwnEntrypoint(t *testing.T) {
	p := provider(t)
	before := volumes(t, p)
	for _, image := range []string{"caisson-test-entrypoint", "caisson-test-entrypoint-false", "caisson-test-healthcheck", "caisson-test-labels", "caisson-test-volume"} {
		t.Run(image, func(t *testing.T) {
			s := create(t, p, specOf(image))
			if got := sh(t, s, "echo alive"); got != "alive\n" {
				t.Error(got)
			}
			if c := inspect(t, p, s); c.State.Health != nil || c.Config.StopSignal != "SIGTERM" || c.Config.User != "65534:65534" {
				t.Errorf("health %v, stop signal %s, user %s", c.State.Health, c.Config.StopSignal, c.Config.User)
			}
			destroy(t, p, s.info.ID)
		})
	}
	if after := volumes(t, p); !slices.Equal(before, after) {
		t.Errorf("volumes before %v, after %v", before, after)
	}
}

// TestEXW01_BugIM03_ImagesThatLackSomethingAreRefused sees the missing command
// named within 10 s, and nothing left.
func TestEXW01_EXW20_BugIM03_ImagesThatLackSomethingAreRefused(t *testing.T) {
	p := provider(t)
	before := volumes(t, p)
	for image, word := range map[string]string{
		"caisson-test-noshell": "sleep", "caisson-test-no-sleep": "sleep", "caisson-test-no-setsid": "setsid", "caisson-test-no-mkfifo": "mkfifo",
		"caisson-test-no-mv": "mv", "caisson-test-no-rm": "rm", "caisson-test-no-cat": "cat", "caisson-test-no-readlink": "readlink", "caisson-test-no-ls": "ls",
	} {
		t.Run(image, func(t *testing.T) {
			began := time.Now()
			_, err := tryCreate(t, p, specOf(image))
			wantError(t, err, sandbox.KindImageUnusable, "image", word)
			if took := time.Since(began); took > 10*time.Second {
				t.Errorf("took %v", took)
			}
		})
	}
	if left := containers(t, p); len(left) != 0 || !slices.Equal(before, volumes(t, p)) {
		t.Errorf("left behind: %v", left)
	}
}

// TestAttackT08_LookAlikeIsNeitherListedNorOpened runs a container of an image
// that carries our labels, past the provider.
func TestAttackT08_LookAlikeIsNeitherListedNorOpened(t *testing.T) {
	p := provider(t)
	real := create(t, p, specOf(""))
	labels := inspect(t, p, real).Config.Labels
	ctx := t.Context()
	made, err := p.api.ContainerCreate(ctx, &container.Config{Image: busybox, Labels: labels}, nil, nil, nil, "look-alike-"+real.info.ID)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := cleanup(context.Background())
		defer cancel()
		if err := p.remove(ctx, made.ID); err != nil {
			t.Error(err)
		}
	})
	list, err := p.List(ctx)
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, i := range list {
		if i.ID == real.info.ID {
			n++
		}
	}
	if n != 1 {
		t.Errorf("the session is listed %d times", n)
	}
	opened, err := p.Open(ctx, real.info.ID)
	if err != nil || opened.(*Session).containerID != real.containerID {
		t.Errorf("opened %v, %v", opened, err)
	}
}

func TestAttackT08_ImagesLabelsDoNotSpeakForUs(t *testing.T) {
	p := provider(t)
	s := create(t, p, specOf("caisson-test-labels"))
	for name, value := range inspect(t, p, s).Config.Labels {
		if name == labelOwner && value != specOf("").Owner.Hash() || name == labelID && value != s.info.ID || name == labelInstance && value != testInstance {
			t.Errorf("%s is %s", name, value)
		}
	}
	if len(s.Info().Labels) != 0 {
		t.Errorf("the image's labels are taken for the caller's: %v", s.Info().Labels)
	}
}

func TestDUR01_DUR11_DestroyIsWholeAndIdempotent(t *testing.T) {
	p := provider(t)
	before := volumes(t, p)
	s := create(t, p, specOf("caisson-test-volume"))
	if len(volumes(t, p)) <= len(before) {
		t.Fatal("the control: no volume was made")
	}
	if !destroy(t, p, s.info.ID) {
		t.Error("destroy says there was nothing")
	}
	if destroy(t, p, s.info.ID) || destroy(t, p, sandbox.NewSessionID()) || destroy(t, p, "not-a-handle") {
		t.Error("destroy says there was something")
	}
	if after := volumes(t, p); !slices.Equal(before, after) {
		t.Errorf("volumes before %v, after %v", before, after)
	}
	_, err := start(t, s, shell("true"))
	wantError(t, err, sandbox.KindSessionLost, "")
	if s.Info().State != sandbox.StateLost {
		t.Errorf("state %v", s.Info().State)
	}
}

func TestAttackT63_DestroyedManyTimesAtOnce(t *testing.T) {
	p := provider(t)
	s := create(t, p, specOf(""))
	var all sync.WaitGroup
	for range 10 {
		all.Go(func() {
			if _, err := p.Destroy(t.Context(), s.info.ID); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if _, err := p.api.ContainerInspect(t.Context(), s.containerID); !errdefs.IsNotFound(err) {
		t.Errorf("it is still there: %v", err)
	}
}

func TestD28_StoppedSessionIsStartedAgain(t *testing.T) {
	p := provider(t)
	s := create(t, p, specOf(""))
	sh(t, s, "echo kept >/workspace/f; echo kept >/tmp/f")
	running := mustStart(t, s, shell("echo on; sleep 300"))
	eventually(t, "output", func() bool { return output(t, running, sandbox.Stdout) == "on\n" })
	if err := p.api.ContainerStop(t.Context(), s.containerID, container.StopOptions{Timeout: ptr(0)}); err != nil {
		t.Fatal(err)
	}
	r := finish(t, running)
	if r.Status != sandbox.StatusLost || r.LostReason != sandbox.LostContainerGone || r.ExitCode != nil || r.stdout != "on\n" {
		t.Errorf("%v, %v, code %d, %q", r.Status, r.LostReason, r.code(), r.stdout)
	}
	list, err := p.List(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, i := range list {
		if i.ID == s.info.ID && i.State != sandbox.StateStopped {
			t.Errorf("listed as %v", i.State)
		}
	}
	if got := sh(t, s, "cat /workspace/f /tmp/f; id -u"); got != "kept\nkept\n1000\n" {
		t.Errorf("after the restart: %q", got)
	}
	if !slices.ContainsFunc(s.Info().Notes, func(n sandbox.Note) bool { return n.Code == "restarted" }) {
		t.Errorf("notes %v", s.Info().Notes)
	}
}

func TestNET01_NET02_AttackT24_NoneHasLoopbackAlone(t *testing.T) {
	p := provider(t)
	s := create(t, p, specOf(""))
	if got := sh(t, s, "ls /sys/class/net"); strings.TrimSpace(got) != "lo" {
		t.Errorf("interfaces %q", got)
	}
	if got := sh(t, s, "cat /etc/resolv.conf"); !strings.Contains(got, "nameserver "+sinkResolver) || strings.Count(got, "nameserver") != 1 {
		t.Errorf("resolv.conf %q", got)
	}
	began := time.Now()
	if r := run(t, s, shell("nslookup example.invalid || wget -T 5 -O - http://192.0.2.1/")); r.code() == 0 || time.Since(began) > 3*time.Second {
		t.Errorf("code %d after %v", r.code(), time.Since(began))
	}
	spec := specOf("")
	spec.Network = "host"
	_, err := tryCreate(t, p, spec)
	wantError(t, err, sandbox.KindRejected, "network")
	for tier, want := range map[sandbox.Network]string{sandbox.NetworkNone: "none", sandbox.NetworkInternal: internalNetwork, sandbox.NetworkEgress: egressNetwork} {
		spec.Network = tier
		if got := inspect(t, p, create(t, p, spec)).HostConfig.NetworkMode; string(got) != want {
			t.Errorf("%s is the engine's %s", tier, got)
		}
	}
}

func TestNET03_D22_InternalNetworkIsMadeOnceAndShut(t *testing.T) {
	p := provider(t)
	spec := specOf("")
	spec.Network = sandbox.NetworkInternal
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			id := sandbox.NewSessionID()
			if _, err := p.Create(t.Context(), id, spec, nil); err != nil {
				t.Error(err)
			}
			destroy(t, p, id)
		})
	}
	all.Wait()
	n, err := p.api.NetworkInspect(t.Context(), internalNetwork, network.InspectOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if !n.Internal || n.Options[optionICC] != "false" || n.Options[optionBridge] != internalBridge || n.Labels[labelSandbox] != "1" {
		t.Errorf("%+v", n)
	}
	a, b := create(t, p, spec), create(t, p, spec)
	mustStart(t, a, shell("nc -l -p 7777 -e echo reached"))
	peer := inspect(t, p, a).NetworkSettings.Networks[internalNetwork].IPAddress
	if peer == "" {
		t.Fatal("no address")
	}
	if r := run(t, b, shell("nc -w 2 "+peer+" 7777 </dev/null")); strings.Contains(r.stdout, "reached") {
		t.Error("sessions reach one another")
	}
	if got := sh(t, a, "(nc -w 2 "+peer+" 7777 </dev/null) | cat"); got != "reached\n" {
		t.Errorf("the control: a session does not reach itself: %q", got)
	}
}

func TestNET06_ForeignEgressNetwork(t *testing.T) {
	cfg := engine(t)
	cfg.EgressNetwork = "caisson-test-nowhere"
	spec := specOf("")
	spec.Network = sandbox.NetworkEgress
	_, err := tryCreate(t, newProvider(t, cfg), spec)
	wantError(t, err, sandbox.KindRejected, "network", "caisson-test-nowhere")
	cfg.EgressNetwork = "bridge"
	p := newProvider(t, cfg)
	if got := inspect(t, p, create(t, p, spec)).HostConfig.NetworkMode; got != "bridge" {
		t.Errorf("%s", got)
	}
}

func TestPUL02_AbsentImageUnderNever(t *testing.T) {
	p := provider(t)
	_, err := tryCreate(t, p, specOf("caisson-test-absent:1"))
	wantError(t, err, sandbox.KindImageNotFound, "", "caisson-test-absent:1")
	_, err = tryCreate(t, p, specOf("UPPER:case"))
	wantError(t, err, sandbox.KindInvalid, "image")
}

func TestDUR02_DUR03_DUR06_DUR08_PersistentWorkspace(t *testing.T) {
	p := provider(t)
	owner := sandbox.Owner{Name: "dur-" + testInstance, Principal: true}
	spec := specOf("")
	spec.Owner, spec.Durability, spec.WorkspaceKey = owner, sandbox.Persistent, "main"
	t.Cleanup(func() {
		ctx, cancel := cleanup(context.Background())
		defer cancel()
		if err := p.DeleteWorkspace(ctx, owner, "main"); err != nil && sandbox.KindOf(err) != sandbox.KindWorkspaceNotFound {
			t.Error(err)
		}
	})
	a := create(t, p, spec)
	sh(t, a, "echo 1 >/workspace/f")
	c := inspect(t, p, a)
	name := "tai-sbx-" + owner.Hash() + ".main"
	if len(c.Mounts) != 1 || c.Mounts[0].Name != name {
		t.Errorf("mounts %+v", c.Mounts)
	}
	v, err := p.api.VolumeInspect(t.Context(), name)
	if err != nil || v.Labels[labelSandbox] != "1" || v.Labels[labelWorkspace] != "main" || v.Labels[labelDurability] != "persistent" || v.Labels[labelOwner] != owner.Hash() {
		t.Errorf("%v, %+v", err, v.Labels)
	}
	list, err := p.Workspaces(t.Context(), owner)
	if err != nil || len(list) != 1 || list[0].Key != "main" || !list[0].InUse || time.Since(list[0].CreatedAt) > time.Hour {
		t.Errorf("%v, %+v", err, list)
	}
	wantError(t, p.DeleteWorkspace(t.Context(), owner, "main"), sandbox.KindWorkspaceInUse, "")
	destroy(t, p, a.info.ID)

	spec.Image = debian // of another owner of its /workspace, were it fresh
	b := create(t, p, spec)
	if got := sh(t, b, "cat /workspace/f; echo 2 >>/workspace/g; cat /workspace/g"); got != "1\n2\n" {
		t.Errorf("%q", got)
	}
	destroy(t, p, b.info.ID)

	if others, err := p.Workspaces(t.Context(), sandbox.Owner{Name: "stranger", Principal: true}); err != nil || len(others) != 0 {
		t.Errorf("a stranger sees %+v, %v", others, err)
	}
	wantError(t, p.DeleteWorkspace(t.Context(), sandbox.Owner{Name: "stranger", Principal: true}, "main"), sandbox.KindWorkspaceNotFound, "")
	if list, err = p.Workspaces(t.Context(), owner); err != nil || len(list) != 1 || list[0].InUse {
		t.Errorf("%v, %+v", err, list)
	}
	if err := p.DeleteWorkspace(t.Context(), owner, "main"); err != nil {
		t.Error(err)
	}
	wantError(t, p.DeleteWorkspace(t.Context(), owner, "main"), sandbox.KindWorkspaceNotFound, "")
}

// TestD07_ForeignVolumeIsNoWorkspace makes a volume of a workspace's name that
// is none.
func TestD07_ForeignVolumeIsNoWorkspace(t *testing.T) {
	p := provider(t)
	owner := sandbox.Owner{Name: "single-" + testInstance}
	key := strings.ReplaceAll(testInstance, ".", "-")
	name := volumeName(owner, key)
	if _, err := p.api.VolumeCreate(t.Context(), volume.CreateOptions{Name: name}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := cleanup(context.Background())
		defer cancel()
		if err := p.api.VolumeRemove(ctx, name, false); err != nil {
			t.Error(err)
		}
	})
	spec := specOf("")
	spec.Owner, spec.Durability, spec.WorkspaceKey = owner, sandbox.Persistent, key
	_, err := tryCreate(t, p, spec)
	wantError(t, err, sandbox.KindRejected, "workspace_key", name)
	wantError(t, p.DeleteWorkspace(t.Context(), owner, key), sandbox.KindWorkspaceNotFound, "")
}
