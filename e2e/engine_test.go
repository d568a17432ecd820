package e2e_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/containerd/errdefs"
	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/events"
	"github.com/docker/docker/api/types/filters"
	"github.com/docker/docker/api/types/network"
	"github.com/docker/docker/api/types/volume"
	"github.com/docker/docker/client"

	"caisson/e2e/internal/rawengine"
)

// engine is the tests' own look at the engine, past the program under test.
type engine struct {
	api    *client.Client
	vars   map[string]string
	run    string // begins the instance names of this run
	cancel context.CancelFunc
	done   chan struct{}

	mu      sync.Mutex
	seen    map[string]string // container ids of this run, with their names
	volumes map[string]bool   // volumes that those have mounted
	broken  error             // why the watch has ended
}

func connectEngine(vars []string, run string) (*engine, error) {
	e := &engine{vars: map[string]string{}, run: run, seen: map[string]string{}, volumes: map[string]bool{}, done: make(chan struct{})}
	for _, v := range vars {
		name, value, _ := strings.Cut(v, "=")
		e.vars[name] = value
	}
	var err error
	if e.api, err = rawengine.Connect(vars); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(context.Background()) // ends with close
	e.cancel = cancel
	if _, err := e.api.Ping(ctx); err != nil {
		cancel()
		return nil, fmt.Errorf("the engine does not answer: %w", err)
	}
	// A volume of a container that is gone bears no mark that all engines show:
	// the events tell which volumes were ever mounted by containers of this run.
	stream, failed := e.api.Events(ctx, events.ListOptions{Filters: filters.NewArgs(filters.Arg("type", "container"), filters.Arg("type", "volume"))})
	go e.watch(stream, failed)
	return e, nil
}

func (e *engine) watch(stream <-chan events.Message, failed <-chan error) {
	defer close(e.done)
	for {
		select {
		case m := <-stream:
			e.mu.Lock()
			switch {
			case m.Type == events.ContainerEventType && m.Action == events.ActionCreate && strings.HasPrefix(m.Actor.Attributes["caisson.instance"], e.run):
				e.seen[m.Actor.ID] = m.Actor.Attributes["name"]
			case m.Type == events.VolumeEventType && m.Action == events.ActionMount && e.seen[m.Actor.Attributes["container"]] != "":
				e.volumes[m.Actor.ID] = true
			}
			e.mu.Unlock()
		case err := <-failed:
			e.mu.Lock()
			e.broken = err
			e.mu.Unlock()
			return
		}
	}
}

func (e *engine) close() error {
	e.cancel()
	<-e.done
	return e.api.Close()
}

// leftovers waits for the containers and volumes of this run to be gone, and
// says which are not when ctx ends. Of networks only the two that all servers
// share may be there.
func (e *engine) leftovers(ctx context.Context) error {
	for {
		left, err := e.left(ctx)
		if err == nil && len(left) == 0 {
			return e.networks(ctx)
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("left on the engine: %v %w", left, err)
		case <-time.After(200 * time.Millisecond):
		}
	}
}

func (e *engine) left(ctx context.Context) ([]string, error) {
	e.mu.Lock()
	containers, volumes, broken := len(e.seen), slices.Collect(maps.Keys(e.volumes)), e.broken
	e.mu.Unlock()
	if broken == nil && containers == 0 && !flagGiven("test.run") {
		broken = errors.New("no container of this run was ever seen")
	}
	if broken != nil {
		return nil, fmt.Errorf("the watch over the engine's events: %w", broken)
	}
	var left []string
	found, err := e.api.ContainerList(ctx, container.ListOptions{All: true, Filters: filters.NewArgs(filters.Arg("label", "caisson.sandbox=1"))})
	if err != nil {
		return nil, err
	}
	for _, c := range found {
		if strings.HasPrefix(c.Labels["caisson.instance"], e.run) {
			left = append(left, fmt.Sprint("container ", c.Names, " ", c.State))
		}
	}
	for _, name := range volumes {
		if _, err := e.api.VolumeInspect(ctx, name); err == nil {
			left = append(left, "volume "+name)
		} else if !errdefs.IsNotFound(err) {
			return nil, err
		}
	}
	return left, nil
}

func (e *engine) networks(ctx context.Context) error {
	found, err := e.api.NetworkList(ctx, network.ListOptions{})
	if err != nil {
		return err
	}
	var left []string
	for _, n := range found {
		ours := slices.ContainsFunc(slices.Collect(maps.Keys(n.Labels)), func(name string) bool { return strings.HasPrefix(name, "caisson.") })
		if ours && n.Name != "tai-sbx-internal" && n.Name != "tai-sbx-egress" {
			left = append(left, n.Name)
		}
	}
	if len(left) > 0 {
		return fmt.Errorf("networks left on the engine: %v", left)
	}
	return nil
}

// container is a session's container, found by its label.
func (e *engine) container(t testing.TB, session string) container.InspectResponse {
	t.Helper()
	found, err := e.api.ContainerList(t.Context(), container.ListOptions{All: true, Filters: filters.NewArgs(filters.Arg("label", "caisson.id="+session))})
	if err != nil || len(found) != 1 {
		t.Fatalf("%d containers of session %s: %v", len(found), session, err)
	}
	inspected, err := e.api.ContainerInspect(t.Context(), found[0].ID)
	if err != nil {
		t.Fatal(err)
	}
	return inspected
}

// of lists the containers of one instance, without its lease.
func (e *engine) of(t testing.TB, instance string) []container.Summary {
	t.Helper()
	return slices.DeleteFunc(e.all(t, instance), func(c container.Summary) bool { return c.Labels["caisson.role"] == "lease" })
}

// all lists the containers of one instance.
func (e *engine) all(t testing.TB, instance string) []container.Summary {
	t.Helper()
	found, err := e.api.ContainerList(t.Context(), container.ListOptions{All: true, Filters: filters.NewArgs(filters.Arg("label", "caisson.instance="+instance))})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// volumesOf lists the volumes of one instance.
func (e *engine) volumesOf(t testing.TB, instance string) []string {
	t.Helper()
	found, err := e.api.VolumeList(t.Context(), volume.ListOptions{Filters: filters.NewArgs(filters.Arg("label", "caisson.instance="+instance))})
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, v := range found.Volumes {
		names = append(names, v.Name)
	}
	return names
}

// socket is the engine's unix socket on the machine that plays the remote host.
func (e *engine) socket() string { return filepath.Clean(e.vars["CAISSON_ENGINE_SOCKET"]) }
