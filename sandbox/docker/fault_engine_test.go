package docker

import (
	"context"
	"net"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"caisson/sandbox"
	"caisson/sandbox/docker/internal/enginetest"
)

// faulty gives a provider that reaches the real engine through a proxy that can
// break things.
func faulty(t *testing.T) (*Provider, *enginetest.Proxy) {
	t.Helper()
	direct := newProvider(t, engine(t))
	return faultyOver(t, func() (net.Conn, error) { return direct.dialer.dial(context.Background(), "", "") })
}

func faultyOver(t *testing.T, dial func() (net.Conn, error)) (*Provider, *enginetest.Proxy) {
	t.Helper()
	proxy := enginetest.NewProxy(t, dial)
	cfg := configFor(proxy.PKI, proxy.Addr, "client")
	real := engine(t)
	cfg.PullPolicy, cfg.Log, cfg.Instance = PullNever, real.Log, real.Instance
	p := newProvider(t, cfg)
	if err := p.connect(t.Context()); err != nil {
		t.Fatal(err)
	}
	return p, proxy
}

func calls(pattern string) *regexp.Regexp { return regexp.MustCompile(pattern) }

// TestSES17_LostAnswersLeaveNothing loses the answer of each call of a
// create that makes something.
func TestSES17_LostAnswersLeaveNothing(t *testing.T) {
	t.Parallel()
	p, proxy := faulty(t)
	before := volumes(t, p)
	destroy(t, p, create(t, p, specOf("")).info.ID) // the image is known from here on
	for name, fault := range map[string]enginetest.Fault{
		"create made, answer lost": {Method: "POST", Path: calls("^/containers/create$"), Swallow: true, Times: 1},
		"start made, answer lost":  {Method: "POST", Path: calls("^/containers/.*/start$"), Swallow: true, Times: 1},
		"start refused":            {Method: "POST", Path: calls("^/containers/.*/start$"), Status: 500, Message: "driver failed", Times: 1},
		"upload refused":           {Method: "PUT", Path: calls("^/containers/.*/archive$"), Status: 500, Message: "lchown: broken", Times: 1},
	} {
		t.Run(name, func(t *testing.T) {
			proxy.Inject(fault)
			defer proxy.Clear()
			_, err := tryCreate(t, p, specOf(""))
			wantError(t, err, sandbox.KindUnavailable, "")
			if left := containers(t, p); len(left) != 0 {
				t.Errorf("left: %v", left)
			}
		})
	}
	if after := volumes(t, p); !slices.Equal(before, after) {
		t.Errorf("volumes before %v, after %v", before, after)
	}
}

// TestNET03_ANetworkInTheMakingIsWaitedFor: the engine takes a bridge's name before it can
// tell of its network, so that who comes second is refused and finds nothing yet.
func TestNET03_ANetworkInTheMakingIsWaitedFor(t *testing.T) {
	t.Parallel()
	p, proxy := faulty(t)
	spec := specOf("")
	spec.Network = sandbox.NetworkInternal
	destroy(t, p, create(t, p, spec).info.ID)
	look := enginetest.Fault{Method: "GET", Path: calls("^/networks/" + internalNetwork + "$"), Status: 404, Message: "network not found", Times: 3}
	for kind, status := range map[string]int{"forbidden": 403, "conflict": 409} {
		p.networks.forget()
		proxy.Inject(look)
		proxy.Inject(enginetest.Fault{Method: "POST", Path: calls("^/networks/create$"), Status: status, Message: "cannot create network: conflicts with network", Times: 1})
		if _, err := p.network(t.Context(), sandbox.NetworkInternal); err != nil {
			t.Errorf("%s: %v", kind, err)
		}
		proxy.Clear()
	}
	// Anything else is told at once.
	p.networks.forget()
	look.Times = 2
	proxy.Inject(look)
	proxy.Inject(enginetest.Fault{Method: "POST", Path: calls("^/networks/create$"), Status: 500, Message: "broken", Times: 1})
	defer proxy.Clear()
	_, err := p.network(t.Context(), sandbox.NetworkInternal)
	wantError(t, err, sandbox.KindUnavailable, "")
}

func TestSES17_CreateThatCannotBeUndoneSaysSo(t *testing.T) {
	t.Parallel()
	p, proxy := faulty(t)
	destroy(t, p, create(t, p, specOf("")).info.ID)
	proxy.Inject(enginetest.Fault{Method: "POST", Path: calls("^/containers/.*/start$"), Status: 500, Message: "no", Times: 1})
	proxy.Inject(enginetest.Fault{Method: "DELETE", Path: calls("^/containers/"), Status: 500, Message: "busy"})
	_, err := tryCreate(t, p, specOf(""))
	proxy.Clear() // before the test's own cleanup
	wantError(t, err, sandbox.KindUnknownOutcome, "")
}

// TestSES17_CancelledCreateLeavesNothing cancels a create as the engine has it.
func TestSES17_CancelledCreateLeavesNothing(t *testing.T) {
	t.Parallel()
	p, proxy := faulty(t)
	destroy(t, p, create(t, p, specOf("")).info.ID)
	for _, call := range []string{"^/containers/create$", "^/containers/.*/start$"} {
		asked := make(chan struct{})
		proxy.Inject(enginetest.Fault{Method: "POST", Path: calls(call), Times: 1, Done: asked})
		ctx, cancel := context.WithCancel(t.Context())
		go func() { <-asked; cancel() }()
		s, err := p.Create(ctx, sandbox.NewSessionID(), specOf(""), nil)
		if err == nil { // the engine was faster than the cancel
			destroy(t, p, s.Info().ID)
		} else {
			wantError(t, err, sandbox.KindCancelled, "")
		}
		cancel()
		eventually(t, "nothing is left", func() bool { return len(containers(t, p)) == 0 })
	}
}

func TestDUR07_VolumeThatCannotBeMadeIsNoEphemeralOne(t *testing.T) {
	t.Parallel()
	p, proxy := faulty(t)
	proxy.Inject(enginetest.Fault{Method: "POST", Path: calls("^/volumes/create$"), Status: 500, Message: "no driver"})
	spec := specOf("")
	spec.Durability, spec.WorkspaceKey = sandbox.Persistent, "dur07"
	_, err := tryCreate(t, p, spec)
	wantError(t, err, sandbox.KindRejected, "durability")
	if slices.Contains(proxy.Calls(), "POST /containers/create") && len(containers(t, p)) != 0 {
		t.Error("a container was made")
	}
}

// TestDUR07_FailedCreateTakesItsFreshVolumeAlong fails the start of a session
// with a workspace that did not exist before, and then of one that did.
func TestDUR07_FailedCreateTakesItsFreshVolumeAlong(t *testing.T) {
	t.Parallel()
	p, proxy := faulty(t)
	owner := sandbox.Owner{Name: "fresh-" + testInstance, Principal: true}
	spec := specOf("")
	spec.Owner, spec.Durability, spec.WorkspaceKey = owner, sandbox.Persistent, "k"
	fail := func() {
		t.Helper()
		proxy.Inject(enginetest.Fault{Method: "POST", Path: calls("^/containers/.*/start$"), Status: 500, Message: "no", Times: 1})
		_, err := tryCreate(t, p, spec)
		wantError(t, err, sandbox.KindUnavailable, "")
		proxy.Clear()
	}
	fail()
	if list, err := p.Workspaces(t.Context(), owner); err != nil || len(list) != 0 {
		t.Errorf("%v, %+v", err, list)
	}
	destroy(t, p, create(t, p, spec).info.ID)
	fail()
	if list, err := p.Workspaces(t.Context(), owner); err != nil || len(list) != 1 {
		t.Errorf("a workspace that was there is gone: %v, %+v", err, list)
	}
	if err := p.DeleteWorkspace(t.Context(), owner, "k"); err != nil {
		t.Error(err)
	}
}

func TestPUL03_FailedInspectIsNoAbsentImage(t *testing.T) {
	t.Parallel()
	p, proxy := faulty(t)
	p.cfg.PullPolicy = PullMissing
	proxy.Inject(enginetest.Fault{Method: "GET", Path: calls("^/images/"), Status: 500, Message: "broken"})
	_, err := tryCreate(t, p, specOf(""))
	wantError(t, err, sandbox.KindUnavailable, "")
	if i := slices.IndexFunc(proxy.Calls(), func(c string) bool { return strings.HasSuffix(c, "/images/create") }); i >= 0 {
		t.Error("it was pulled")
	}
}

func TestNET03_RemovedNetworkIsMadeAgain(t *testing.T) {
	t.Parallel()
	p, proxy := faulty(t)
	spec := specOf("")
	spec.Network = sandbox.NetworkEgress
	destroy(t, p, create(t, p, spec).info.ID)
	proxy.Forget()
	proxy.Inject(enginetest.Fault{Method: "POST", Path: calls("^/containers/.*/start$"), Status: 404, Message: "network tai-sbx-egress not found", Times: 1})
	create(t, p, spec)
	if !slices.Contains(proxy.Calls(), "GET /networks/"+egressNetwork) {
		t.Errorf("the network was not looked for: %v", proxy.Calls())
	}
}

// TestSES01_CallsOfACreate pins what a create with a known image costs.
func TestSES01_CallsOfACreate(t *testing.T) {
	t.Parallel()
	p, proxy := faulty(t)
	for _, tier := range []sandbox.Network{sandbox.NetworkNone, sandbox.NetworkInternal} {
		spec := specOf(debian)
		spec.Network = tier
		destroy(t, p, create(t, p, spec).info.ID)
		proxy.Forget()
		s := create(t, p, spec)
		want := []string{"GET /images/" + debian + "/json", "POST /containers/create", "POST /containers/" + s.containerID + "/start"}
		if got := proxy.Calls(); !slices.Equal(got, want) {
			t.Errorf("%s: %v, want %v", tier, got, want)
		}
		// A start that takes its time is asked about; one in ten will not.
		least := 100
		for range 10 {
			proxy.Forget()
			sh(t, s, "echo x")
			least = min(least, len(proxy.Calls()))
		}
		if least != 3 {
			t.Errorf("a command costs %d calls, want create, start and inspect", least)
		}
	}
}

// TestAttackT65_EngineThatNeverAnswers sees calls end by their caller's
// deadline, and by their own bound.
func TestAttackT65_EngineThatNeverAnswers(t *testing.T) {
	t.Parallel()
	p, proxy := faulty(t)
	s := create(t, p, specOf(""))
	for call, ask := range map[string]func(context.Context) error{
		"^/containers/json$": func(ctx context.Context) error { _, err := p.List(ctx); return err },
		"/exec$":             func(ctx context.Context) error { _, err := s.Start(ctx, shell("true"), nil); return err },
		"^/exec/.*/start$":   func(ctx context.Context) error { _, err := s.Start(ctx, shell("true"), nil); return err },
		"^/_ping$":           p.Ping,
	} {
		proxy.Inject(enginetest.Fault{Path: calls(call), Hang: true})
		ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
		began := time.Now()
		kind := sandbox.KindUnavailable
		if strings.Contains(call, "start") {
			kind = sandbox.KindUnknownOutcome // it was asked, and may have done it
		}
		wantError(t, ask(ctx), kind, "")
		// A failed start is stopped first, within the stop's own bound.
		if took := time.Since(began); took > sandbox.StopLimit+2*time.Second {
			t.Errorf("%s took %v", call, took)
		}
		cancel()
		proxy.Clear()
	}
}
