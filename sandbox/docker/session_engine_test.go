package docker

import (
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
	list, err := p.api.VolumeList(t.Context(), volume.ListOptions{Filters: filters.NewArgs(filters.Arg("label", labelInstance+"="+p.cfg.Instance))})
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

// mounted are the volumes of a session's container, those of the image included,
// which bear no mark of ours.
func mounted(t *testing.T, p *Provider, s *Session) []string {
	t.Helper()
	var names []string
	for _, m := range inspect(t, p, s).Mounts {
		names = append(names, m.Name)
	}
	return names
}

// wantNoVolume sees that none of these volumes is left.
func wantNoVolume(t *testing.T, p *Provider, names []string) {
	t.Helper()
	for _, name := range names {
		if _, err := p.api.VolumeInspect(t.Context(), name); !errdefs.IsNotFound(err) {
			t.Errorf("volume %s is left: %v", name, err)
		}
	}
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
	t.Parallel()
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

func TestSES10_SessionsDoNotSeeEachOthersWorkspace(t *testing.T) {
	t.Parallel()
	p := provider(t)
	a, b := create(t, p, specOf("")), create(t, p, specOf(""))
	sh(t, a, "echo a >/workspace/f; echo a >/tmp/f")
	if r := run(t, b, shell("cat /workspace/f /tmp/f")); r.code() == 0 || r.stdout != "" {
		t.Errorf("B reads %q of A", r.stdout)
	}
}

func TestSES11_SES19_BugVO02_WorkspaceAndTmpAreWritable(t *testing.T) {
	t.Parallel()
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
	t.Parallel()
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

func TestSES13_D08_API01_API03_ListAndOpenTellWhatCreateMade(t *testing.T) {
	t.Parallel()
	p := provider(t)
	spec := specOf("")
	spec.Labels, spec.Env, spec.Network = map[string]string{"team": "x", "caissonless": "1"}, map[string]sandbox.Secret{"TOKEN": sandbox.NewSecret("canary-7")}, sandbox.NetworkInternal
	s := create(t, p, spec)
	made := s.Info()
	if made.OwnerHash != spec.Owner.Hash() || made.Instance != p.cfg.Instance || made.Image != busybox || !maps.Equal(made.Labels, spec.Labels) ||
		!slices.Equal(made.EnvNames, []string{"TOKEN"}) || made.State != sandbox.StateRunning || made.TTL != time.Hour || made.ImageID == "" || made.CPU != 1 || made.MemoryMB != 128 {
		t.Errorf("%+v", made)
	}
	list, err := p.List(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	at := slices.IndexFunc(list, func(i sandbox.Info) bool { return i.ID == made.ID })
	if at < 0 || list[at].CreatedAt.Sub(made.CreatedAt).Abs() > 5*time.Second {
		t.Fatalf("listed at %d, as %+v", at, list)
	}
	made.CreatedAt = list[at].CreatedAt // the engine's clock, which a create was not told
	if fmt.Sprintf("%+v", list[at]) != fmt.Sprintf("%+v", made) {
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
	t.Parallel()
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

func TestDUR01_DUR11_DestroyIsWholeAndIdempotent(t *testing.T) {
	t.Parallel()
	p := provider(t)
	s := create(t, p, specOf("caisson-test-volume"))
	made := mounted(t, p, s)
	if len(made) < 2 || len(volumes(t, p)) != 1 {
		t.Fatalf("the control: volumes %v, marked %v", made, volumes(t, p))
	}
	if !destroy(t, p, s.info.ID) {
		t.Error("destroy says there was nothing")
	}
	if destroy(t, p, s.info.ID) || destroy(t, p, sandbox.NewSessionID()) || destroy(t, p, "not-a-handle") {
		t.Error("destroy says there was something")
	}
	wantNoVolume(t, p, made)
	_, err := start(t, s, shell("true"))
	wantError(t, err, sandbox.KindSessionLost, "")
	if s.Info().State != sandbox.StateLost {
		t.Errorf("state %v", s.Info().State)
	}
}

func TestAttackT63_DestroyedManyTimesAtOnce(t *testing.T) {
	t.Parallel()
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
	t.Parallel()
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
