package docker

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"syscall"
	"testing"

	"github.com/containerd/errdefs/pkg/errhttp"
	"github.com/docker/docker/api/types/network"

	"caisson/sandbox"
)

// engineAnswer is an engine's refusal as the client gives it.
func engineAnswer(status int, message string) error {
	return fmt.Errorf("Error response from daemon: %s: %w", message, errhttp.ToNative(status))
}

func bare(t *testing.T) *Provider {
	t.Helper()
	return newProvider(t, Config{Host: "/nowhere/engine.sock"})
}

func TestCON08_EngineAnswersBecomeKinds(t *testing.T) {
	p := bare(t)
	for _, c := range []struct {
		err  error
		want sandbox.Kind
	}{
		{engineAnswer(400, "bad parameter"), sandbox.KindRejected},
		{engineAnswer(400, "client version 1.51 is too old. Minimum supported API version is 1.60"), sandbox.KindUnavailable},
		{engineAnswer(401, "x"), sandbox.KindUnavailable},
		{engineAnswer(403, "x"), sandbox.KindRejected},
		{engineAnswer(404, "No such container: x"), sandbox.KindSessionLost},
		{engineAnswer(409, "x"), sandbox.KindBusy},
		{engineAnswer(500, "x"), sandbox.KindUnavailable},
		{engineAnswer(500, "write /var: no space left on device"), sandbox.KindNoSpace},
		{engineAnswer(501, "x"), sandbox.KindNotSupported},
		{engineAnswer(503, "x"), sandbox.KindUnavailable},
		{engineAnswer(418, "x"), sandbox.KindUnavailable},
		{engineAnswer(502, "x"), sandbox.KindUnavailable},
		{json.Unmarshal([]byte("<html>"), new(int)), sandbox.KindUnavailable},
		{json.Unmarshal([]byte("[]"), new(int)), sandbox.KindUnavailable},
		{context.Canceled, sandbox.KindCancelled},
		{context.DeadlineExceeded, sandbox.KindUnavailable},
		{io.ErrUnexpectedEOF, sandbox.KindUnavailable},
		{syscall.ECONNRESET, sandbox.KindUnavailable},
		{&net.OpError{Op: "read", Err: errors.New("x")}, sandbox.KindUnavailable},
		{&dialError{text: "x"}, sandbox.KindUnavailable},
		{errors.New("x"), sandbox.KindInternal},
	} {
		got := p.failed("op", fmt.Errorf("layer: %w", c.err))
		if got.Kind != c.want {
			t.Errorf("%v: kind %v, want %v", c.err, got.Kind, c.want)
		}
		if !errors.Is(got, c.err) {
			t.Errorf("%v: the cause is lost", c.err)
		}
	}
	own := sandbox.Errorf("a", sandbox.KindFirewall, "b")
	if got := p.failed("op", fmt.Errorf("layer: %w", own)); got != own {
		t.Errorf("our own error became %v", got)
	}
}

// TestCON08_TextsStayFreeOfTheEngine sees that what the engine says reaches the
// log and not the client, where it is about the engine.
func TestCON08_TextsStayFreeOfTheEngine(t *testing.T) {
	const secret = "/var/lib/docker/overlay2/canary"
	for status := 400; status < 512; status++ {
		got := bare(t).failed("op", engineAnswer(status, secret))
		if strings.Contains(got.Text, secret) {
			t.Errorf("%d: %s", status, got.Text)
		}
		if !strings.Contains(got.Error(), secret) {
			t.Errorf("%d: the log would not have it: %s", status, got)
		}
	}
}

func TestKIL10_KIL11_TheSame409IsToldApart(t *testing.T) {
	paused := engineAnswer(409, "Container abc is paused, unpause the container before exec")
	stopped := engineAnswer(409, "Container abc is not running")
	going := engineAnswer(409, "removal of container abc is already in progress")
	marked := engineAnswer(409, "Container abc is marked for removal and cannot be started")
	for _, c := range []struct {
		err                    error
		paused, stopped, going bool
	}{{paused, true, false, false}, {stopped, false, true, false}, {going, false, false, true}, {marked, false, false, true}, {engineAnswer(500, "is paused"), false, false, false}} {
		if isPaused(c.err) != c.paused || isStopped(c.err) != c.stopped || isGoing(c.err) != c.going {
			t.Errorf("%v", c.err)
		}
	}
}

func TestSES12_RefusalsOfACreateNameTheField(t *testing.T) {
	p := bare(t)
	for _, c := range []struct {
		status        int
		message       string
		kind          sandbox.Kind
		field, inText string
	}{
		{400, "Range of CPUs is from 0.01 to 2.00, as there are only 2 CPUs available", sandbox.KindRejected, "cpu", "2.00"},
		{400, "range of CPUs is from 0.01 to 2.00, as there are only 2 CPUs available", sandbox.KindRejected, "cpu", "2.00"},
		{400, "Minimum memory limit allowed is 6MB", sandbox.KindRejected, "memory_mb", "6MB"},
		{400, "NanoCPUs can not be set, as your kernel does not support CPU CFS scheduler", sandbox.KindRejected, "cpu", "enforce"},
		{400, "Unknown runtime specified kata", sandbox.KindRejected, "runtime", "OCI runtime"},
		{400, "unknown or invalid runtime name: kata", sandbox.KindRejected, "runtime", "OCI runtime"},
		{404, "No such image: x", sandbox.KindImageNotFound, "", "gone"},
		{400, `exec: "docker-init": executable file not found in $PATH`, sandbox.KindNotSupported, "", "docker-init"},
		{400, `failed to create task: OCI runtime create failed: exec: "sleep": executable file not found in $PATH`, sandbox.KindImageUnusable, "image", "sleep"},
		{500, "standard_init_linux.go: exec user process caused: exec format error", sandbox.KindImageUnusable, "image", "processor"},
		{500, "no available IPv4 addresses on this network's address pools: x", sandbox.KindCapacity, "network", "address"},
		{500, "mkdir /x: no space left on device", sandbox.KindNoSpace, "", "full"},
		{409, `Conflict. The container name "/caisson-x" is already in use by container "y"`, sandbox.KindBusy, "", ""},
	} {
		wantError(t, p.createFailed(engineAnswer(c.status, c.message)), c.kind, c.field, c.inText)
	}
}

func TestD34_DroppedCapsRefuseTheSession(t *testing.T) {
	for field, warning := range map[string]string{
		"memory_mb": "Your kernel does not support memory limit capabilities or the cgroup is not mounted. Limitation discarded.",
		"cpu":       "Your kernel does not support CPU cfs quota or the cgroup is not mounted. CPU quota discarded.",
		"pids":      "Your kernel does not support pids limit capabilities or the cgroup is not mounted. PIDs limit discarded.",
	} {
		_, err := readWarnings([]string{"Something else.", warning})
		wantError(t, err, sandbox.KindRejected, field, "would drop")
	}
	notes, err := readWarnings([]string{"Your kernel does not support swap limit capabilities or the cgroup is not mounted. Memory limited without swap.", "Odd\x1bthing."})
	if err != nil || len(notes) != 2 || notes[0].Code != "swap_not_limited" || notes[1].Text != "the engine warns: Odd thing." {
		t.Errorf("%v, %+v", err, notes)
	}
}

func TestEXW20_RefusalsOfAStart(t *testing.T) {
	const pre = "OCI runtime exec failed: exec failed: unable to start container process: "
	for text, want := range map[string]struct {
		kind  sandbox.Kind
		field string
	}{
		pre + `chdir to cwd ("/nope") set in config.json failed: no such file or directory: unknown`:                               {sandbox.KindInvalid, "cwd"},
		pre + `chdir to cwd ("/etc/passwd") set in config.json failed: not a directory: unknown`:                                   {sandbox.KindInvalid, "cwd"},
		pre + `chdir to cwd ("/root") set in config.json failed: permission denied: unknown`:                                       {sandbox.KindInvalid, "cwd"},
		pre + `exec: "/bin/sh": stat /bin/sh: no such file or directory: unknown`:                                                  {sandbox.KindImageUnusable, "image"},
		pre + `exec: "sh": executable file not found in $PATH: unknown`:                                                            {sandbox.KindImageUnusable, "image"},
		pre + `read init-p: connection reset by peer: unknown`:                                                                     {sandbox.KindCapacity, ""},
		"OCI runtime exec failed: exec failed: container_linux.go:380: fork/exec /proc/self/exe: resource temporarily unavailable": {sandbox.KindCapacity, ""},
		pre + `argument list too long`:      {sandbox.KindInvalid, "argv"},
		pre + `something that nobody knows`: {sandbox.KindUnavailable, ""},
	} {
		wantError(t, startRefused(text), want.kind, want.field)
	}
}

func TestNET06_AdoptedNetworksAreWhatTheyClaim(t *testing.T) {
	internal := func(change func(*network.Inspect)) network.Inspect {
		n := network.Inspect{Name: internalNetwork, Driver: "bridge", Internal: true, Options: map[string]string{optionICC: "false"}}
		change(&n)
		return n
	}
	good := func(*network.Inspect) {}
	for name, c := range map[string]struct {
		tier sandbox.Network
		n    network.Inspect
		ok   bool
	}{
		"internal":                 {sandbox.NetworkInternal, internal(good), true},
		"internal with a way out":  {sandbox.NetworkInternal, internal(func(n *network.Inspect) { n.Internal = false }), false},
		"internal with icc":        {sandbox.NetworkInternal, internal(func(n *network.Inspect) { n.Options = nil }), false},
		"internal of another kind": {sandbox.NetworkInternal, internal(func(n *network.Inspect) { n.Driver = "macvlan" }), false},
		"egress":                   {sandbox.NetworkEgress, network.Inspect{Name: egressNetwork, Driver: "bridge", Options: map[string]string{optionICC: "false"}}, true},
		"egress with icc":          {sandbox.NetworkEgress, network.Inspect{Name: egressNetwork, Driver: "bridge"}, false},
		"egress without a way out": {sandbox.NetworkEgress, internal(func(n *network.Inspect) { n.Name = egressNetwork }), false},
		"the operator's own":       {sandbox.NetworkEgress, network.Inspect{Name: "bridge", Driver: "bridge"}, true},
		"the host's":               {sandbox.NetworkEgress, network.Inspect{Name: "x", Driver: "host"}, false},
		"no network at all":        {sandbox.NetworkEgress, network.Inspect{Name: "x", Driver: "null"}, false},
	} {
		err := checkNetwork(c.tier, c.n)
		if (err == nil) != c.ok {
			t.Errorf("%s: %v", name, err)
		}
		if err != nil {
			wantError(t, err, sandbox.KindRejected, "network", c.n.Name)
		}
	}
}

func TestD07_VolumeNames(t *testing.T) {
	single, alice, bob := sandbox.Owner{Name: "local"}, sandbox.Owner{Name: "alice", Principal: true}, sandbox.Owner{Name: "bob", Principal: true}
	if got := volumeName(single, "main"); got != "tai-sbx-main" {
		t.Error(got)
	}
	if got := volumeName(alice, "main"); got != "tai-sbx-"+alice.Hash()+".main" {
		t.Error(got)
	}
	if volumeName(alice, "k") == volumeName(bob, "k") || volumeName(alice, "k") == volumeName(single, alice.Hash()+"-k") {
		t.Error("two owners share a volume")
	}
}

func TestEX05_D33_CountsOfKills(t *testing.T) {
	for text, want := range map[string]int64{
		"low 0\nhigh 0\nmax 3\noom 2\noom_kill 2\noom_group_kill 0\n": 2,
		"oom_kill_disable 0\nunder_oom 0\noom_kill 5\n":               5,
		"oom_kill 0\n": 0,
	} {
		if got, ok := parseOOM(text); !ok || got != want {
			t.Errorf("%q: %d, %v", text, got, ok)
		}
	}
	if _, ok := parseOOM("oom_kill_disable 0\n"); ok {
		t.Error("a count where there is none")
	}
}
