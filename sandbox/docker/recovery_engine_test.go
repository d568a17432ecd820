package docker

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/docker/docker/api/types/container"
	"github.com/google/go-cmp/cmp"

	"caisson/sandbox"
	"caisson/sandbox/docker/internal/enginetest"
	"caisson/wrapper"
)

// reopened is the session as the server after this one finds it.
func reopened(t *testing.T, p *Provider, id string) *Session {
	t.Helper()
	s, err := rival(t, p).Open(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	return s.(*Session)
}

func TestD10_TheSpecIsReadBackFromTheEngine(t *testing.T) {
	t.Parallel()
	p := provider(t)
	full := specOf("")
	full.Env = map[string]sandbox.Secret{
		"TOKEN": sandbox.NewSecret("canary=7\n'\"$x"), "EMPTY": sandbox.NewSecret(""), "PATH": sandbox.NewSecret("/opt/bin"), "HOME": sandbox.NewSecret("/tmp"),
	}
	full.Labels = map[string]string{"team": "x"}
	full.CPU, full.Isolation, full.Network = ptr(0.3), sandbox.IsolationContainer, sandbox.NetworkInternal
	full.Durability, full.WorkspaceKey = sandbox.Persistent, "d10-"+p.cfg.Instance[len(p.cfg.Instance)-8:]
	full.Owner = sandbox.Owner{Name: "d10", Principal: true}
	uncapped := specOf("")
	uncapped.CPU, uncapped.MemoryMB, uncapped.Pids = nil, nil, nil
	t.Cleanup(func() {
		if err := p.DeleteWorkspace(context.Background(), full.Owner, full.WorkspaceKey); err != nil {
			t.Error(err)
		}
	})
	for name, spec := range map[string]sandbox.Spec{"full": full, "uncapped": uncapped} {
		s := create(t, p, spec)
		if diff := cmp.Diff(revealed(spec), revealed(s.Spec())); diff != "" {
			t.Errorf("%s, as created:\n%s", name, diff)
		}
		spec.Owner = sandbox.Owner{}
		back := reopened(t, p, s.info.ID)
		if diff := cmp.Diff(revealed(spec), revealed(back.Spec())); diff != "" {
			t.Errorf("%s, read back:\n%s", name, diff)
		}
		delete(back.Spec().Env, "TOKEN")
		if diff := cmp.Diff(revealed(spec), revealed(back.Spec())); diff != "" {
			t.Errorf("%s is changed through what was returned:\n%s", name, diff)
		}
	}
}

// revealed is a spec with its secrets told.
func revealed(spec sandbox.Spec) any {
	env := map[string]string{}
	for name, value := range spec.Env {
		env[name] = value.Reveal()
	}
	spec.Env = nil
	return struct {
		Spec sandbox.Spec
		Env  map[string]string
	}{spec, env}
}

func TestAttackT60_ACommandOutlivesItsServerAndIsStopped(t *testing.T) {
	t.Parallel()
	p := provider(t)
	dead := rival(t, p)
	made := create(t, p, specOf(""))
	s, err := dead.Open(t.Context(), made.info.ID)
	if err != nil {
		t.Fatal(err)
	}
	argv := []string{"sh", "-c", "echo \"$1\"; sleep 300", "sh", "a b\n'"}
	before := mustStart(t, s.(*Session), sandbox.ExecSpec{Argv: argv, Timeout: time.Hour, StdinOpen: true})
	ended := mustStart(t, s.(*Session), shell("true"))
	finish(t, ended)
	id, err := wrapper.NewID()
	if err != nil {
		t.Fatal(err)
	}
	// The server died between an exec's making and its start.
	if _, err := s.(*Session).createExec(t.Context(), "test", container.ExecOptions{Cmd: wrapper.Command{ID: id, Argv: argv}.ExecArgv()}); err != nil {
		t.Fatal(err)
	}
	if err := dead.Close(); err != nil {
		t.Fatal(err)
	}
	back := reopened(t, p, made.info.ID)
	found, err := back.Orphans(t.Context())
	if err != nil || len(found) != 1 {
		t.Fatalf("%v, %+v", err, found)
	}
	o := found[0]
	if o.ExecID != before.ID() || !slices.Equal(o.Argv, argv) || time.Until(o.TimeoutAt) < 50*time.Minute || time.Until(o.TimeoutAt) > 61*time.Minute {
		t.Errorf("%+v, of %s", o, before.ID())
	}
	if runs, err := o.Running(t.Context()); err != nil || !runs {
		t.Errorf("running: %v, %v", runs, err)
	}
	_, err = o.Backend.WriteStdin(t.Context(), []byte("x"))
	wantError(t, err, sandbox.KindStdinClosed, "")
	wantError(t, o.Backend.CloseStdin(), sandbox.KindStdinClosed, "")
	report, err := o.Backend.Stop(t.Context(), sandbox.SignalKill)
	if err != nil || report.Gone || report.Incomplete != "" {
		t.Errorf("%v, %+v", err, report)
	}
	o.Backend.Close()
	eventually(t, "its end", func() bool {
		runs, err := o.Running(t.Context())
		return err == nil && !runs
	})
	if found, err = back.Orphans(t.Context()); err != nil || len(found) != 0 {
		t.Errorf("after its end: %v, %+v", err, found)
	}
	destroy(t, p, made.info.ID)
	if runs, err := o.Running(t.Context()); err != nil || runs {
		t.Errorf("of a session that is gone: running %v, %v", runs, err)
	}
	_, err = back.Orphans(t.Context())
	wantError(t, err, sandbox.KindSessionLost, "")
}

// TestAttackT61_ACommandThatTheEngineForgot plays an engine that was restarted under
// running containers.
func TestAttackT61_ACommandThatTheEngineForgot(t *testing.T) {
	t.Parallel()
	p, proxy := faulty(t)
	s := create(t, p, specOf(""))
	e := mustStart(t, s, shell("sleep 300"))
	found, err := s.Orphans(t.Context())
	if err != nil || len(found) != 1 {
		t.Fatalf("%v, %+v", err, found)
	}
	proxy.Inject(enginetest.Fault{Method: "GET", Path: calls("^/exec/.*/json$"), Status: 404, Message: "No such exec instance"})
	_, err = found[0].Running(t.Context())
	wantError(t, err, sandbox.KindExecNotFound, "")
	if left, err := s.Orphans(t.Context()); err != nil || len(left) != 0 {
		t.Errorf("%v, %+v", err, left)
	}
	proxy.Clear()
	proxy.Inject(enginetest.Fault{Method: "GET", Path: calls("^/exec/.*/json$"), Status: 500, Message: "no"})
	_, err = s.Orphans(t.Context())
	wantError(t, err, sandbox.KindUnavailable, "")
	proxy.Clear()
	if _, err := e.Kill(sandbox.SignalKill); err != nil {
		t.Error(err)
	}
}

// TestAttackT72_AgeIsByTheEnginesClock makes containers whose label of creation is
// wrong, and none of which was started.
func TestAttackT72_AgeIsByTheEnginesClock(t *testing.T) {
	t.Parallel()
	p := provider(t)
	now, err := p.engineTime(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, stamp := range []string{
		now.Add(-10 * time.Minute).Format(time.RFC3339Nano), now.Add(10 * time.Minute).Format(time.RFC3339Nano),
		now.Add(-24 * time.Hour).Format(time.RFC3339Nano), "1970-01-01T00:00:00Z", "2100-01-01T00:00:00Z", "yesterday", "",
	} {
		id := halfMade(t, p, func(labels map[string]string) { labels[labelCreated] = stamp })
		list, err := p.List(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		at := slices.IndexFunc(list, func(i sandbox.Info) bool { return i.ID == id })
		if at < 0 {
			t.Fatalf("stamped %q it is not listed", stamp)
		}
		listed := list[at]
		if age := listed.CreatedAt.Sub(now); age < -2*time.Second || age > time.Minute || listed.State != sandbox.StateCreating {
			t.Errorf("stamped %q it is listed as made %v after now, %v", stamp, age, listed.State)
		}
		s, err := p.Open(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		if got := s.Info(); !got.CreatedAt.Equal(listed.CreatedAt) || got.State != sandbox.StateCreating {
			t.Errorf("stamped %q it is opened as %v, %v and listed as %v", stamp, got.CreatedAt, got.State, listed.CreatedAt)
		}
	}
}

// halfMade makes a session's container that is not started, as a server that ends
// in the middle of a create leaves it.
func halfMade(t *testing.T, p *Provider, change func(labels map[string]string)) string {
	t.Helper()
	id := sandbox.NewSessionID()
	t.Cleanup(func() { destroy(t, p, id) })
	user := account{uid: 1000, gid: 1000, name: "u", home: "/tmp"}
	labels := p.sessionLabels(id, specOf(""), imageFacts{user: user}, time.Now(), nil)
	change(labels)
	config, host, net := createBody(blueprint{imageID: busybox, labels: labels, user: user, network: networkNone, pids: ptr(int64(8))})
	if _, err := p.api.ContainerCreate(t.Context(), config, host, net, nil, containerName(id)); err != nil {
		t.Fatal(err)
	}
	return id
}

func TestAttackT60_ASessionThatWasLeftPausedRunsAgain(t *testing.T) {
	t.Parallel()
	p, proxy := faulty(t)
	p.cfg.FileTransfer = TransferArchive
	s := create(t, p, specOf(""))
	if err := p.api.ContainerPause(t.Context(), s.containerID); err != nil {
		t.Fatal(err)
	}
	if got := sh(t, reopened(t, p, s.info.ID), "echo on"); got != "on\n" {
		t.Errorf("%q", got)
	}
	// A transfer whose end the engine does not take.
	proxy.Inject(enginetest.Fault{Method: "POST", Path: calls("/unpause$"), Status: 500, Message: "no", Times: 1})
	if _, err := s.WriteFiles(t.Context(), []sandbox.FileWrite{{Path: "f", Content: []byte("1")}}); err == nil {
		t.Fatal("the control: the transfer did not fail")
	}
	if got := sh(t, s, "cat f"); got != "1" {
		t.Errorf("%q", got)
	}
	// One that is under way is not disturbed.
	err := s.archive().frozen(t.Context(), "test", func(ctx context.Context) error {
		if _, err := p.Open(ctx, s.info.ID); err != nil {
			return err
		}
		if c, err := s.inspect(ctx); err != nil || !c.State.Paused {
			return errors.Join(errors.New("it runs"), err)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
	if p.freezes.has(s.containerID) {
		t.Error("the freeze is not forgotten")
	}
}
