package cli

import (
	"encoding/json"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"caisson/sandbox"
	"caisson/sandbox/docker"
	"caisson/settings"
)

// tenant is a server's hold on the engine: its provider, and a session of its own.
type tenant struct {
	*docker.Provider
	instance string
	session  string
}

// newTenant makes one; without a lease or with one that soon runs out, other servers may
// end the session when its time to live is over.
func newTenant(t *testing.T, environ []string, lease, ttl time.Duration) tenant {
	t.Helper()
	instance := "cli-" + strings.TrimPrefix(sandbox.NewSessionID(), "sbx_")[:10]
	s, err := settings.Load(append(slices.Clone(environ), settings.DockerPrefix+"INSTANCE="+instance))
	if err != nil {
		t.Fatal(err)
	}
	p, err := docker.New(engineConfig(s.Docker, slog.New(slog.DiscardHandler)))
	if err != nil {
		t.Fatal(err)
	}
	spec, err := policy(s.Docker).Apply(sandbox.Spec{Owner: sandbox.Owner{Name: "tester"}, Image: "busybox:latest", TTL: ttl})
	if err != nil {
		t.Fatal(err)
	}
	if lease > 0 {
		if _, err := p.TakeLease(t.Context(), lease); err != nil {
			t.Fatal(err)
		}
	}
	id := sandbox.NewSessionID()
	t.Cleanup(func() {
		if _, out := run(t, environ, "sessions", "destroy", "--instance", instance); out.status != exitOK {
			t.Errorf("%s", out.stderr)
		}
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	})
	if _, err := p.Create(t.Context(), id, spec, nil); err != nil {
		t.Fatal(err)
	}
	return tenant{p, instance, id}
}

func TestSessionsListTellsWhoseTheyAreAndWhetherTheirServerLives(t *testing.T) {
	environ := realEngine(t)
	a, b := newTenant(t, environ, time.Minute, time.Hour), newTenant(t, environ, 0, time.Hour)
	out, p := run(t, environ, "sessions", "list", "--json")
	var all []sessionObject
	if err := json.Unmarshal([]byte(out), &all); err != nil || p.status != exitOK {
		t.Fatalf("%v %s %s", err, out, p.stderr)
	}
	want := map[string]string{a.session: "alive", b.session: "unknown"}
	for _, s := range all {
		if server, ours := want[s.ID]; ours {
			delete(want, s.ID)
			if s.Server != server || s.Image != "busybox:latest" || s.State != "running" || s.TTLSeconds != 3600 || time.Since(s.CreatedAt).Abs() > time.Minute {
				t.Errorf("%+v", s)
			}
		}
	}
	if len(want) != 0 {
		t.Errorf("not listed: %v", want)
	}
	table, p := run(t, environ, "sessions", "list")
	if p.status != exitOK || !strings.HasPrefix(table, "SESSION") || !strings.Contains(table, a.session) || !strings.Contains(table, b.instance) {
		t.Errorf("%s%s", table, p.stderr)
	}
}

func TestSessionsDestroyEndsWhatItIsToldToAndNothingElse(t *testing.T) {
	environ := realEngine(t)
	a, b := newTenant(t, environ, time.Minute, time.Hour), newTenant(t, environ, time.Minute, time.Hour)
	out, p := run(t, environ, "sessions", "destroy", a.session, "sbx_aaaaaaaaaaaaaaaaaaaaaaaaaa", "nonsense")
	if p.status != exitFailed || out != a.session+"\n" || strings.Count(p.stderr.String(), "no such session") != 2 {
		t.Errorf("status %d, %q, %s", p.status, out, p.stderr)
	}
	if _, err := b.Open(t.Context(), b.session); err != nil {
		t.Errorf("another one: %v", err)
	}
	for _, args := range [][]string{{"sessions", "destroy"}, {"sessions", "destroy", "--instance=x", "sbx_x"}, {"sessions", "prune", "x"}} {
		if _, p := run(t, environ, args...); p.status != exitSetting {
			t.Errorf("%v: status %d", args, p.status)
		}
	}
}

func TestSessionsPruneEndsWhatDeadServersLeft(t *testing.T) {
	environ := append(realEngine(t), "SANDBOX_DOCKER_INSTANCE_GRACE_SECONDS=10")
	alive, dead := newTenant(t, environ, 10*time.Minute, time.Hour), newTenant(t, environ, time.Second, 15*time.Second)
	dry := func() string {
		out, p := run(t, environ, "sessions", "prune", "--dry-run")
		if p.status != exitOK {
			t.Fatalf("%s", p.stderr)
		}
		return out
	}
	if out := dry(); strings.Contains(out, dead.session) || strings.Contains(out, alive.session) {
		t.Fatalf("before the grace is over: %s", out)
	}
	for deadline := time.Now().Add(40 * time.Second); !strings.Contains(dry(), dead.session); time.Sleep(500 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("the dead server's session is never due")
		}
	}
	if _, err := dead.Open(t.Context(), dead.session); err != nil {
		t.Fatalf("a dry run ended it: %v", err)
	}
	out, p := run(t, environ, "sessions", "prune")
	if p.status != exitOK || !strings.Contains(out, dead.session) || strings.Contains(out, alive.session) {
		t.Errorf("status %d, %q, %s", p.status, out, p.stderr)
	}
	if _, err := dead.Open(t.Context(), dead.session); sandbox.KindOf(err) != sandbox.KindSessionNotFound {
		t.Errorf("%v", err)
	}
	if _, err := alive.Open(t.Context(), alive.session); err != nil {
		t.Errorf("%v", err)
	}
	leases, _, err := alive.Leases(t.Context())
	if err != nil || slices.ContainsFunc(leases, func(l sandbox.Lease) bool { return l.Instance == dead.instance }) ||
		!slices.ContainsFunc(leases, func(l sandbox.Lease) bool { return l.Instance == alive.instance }) {
		t.Errorf("leases %v %v", leases, err)
	}
}
