package docker

import (
	"context"
	"strings"
	"time"

	"github.com/containerd/errdefs"
	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/filters"

	"caisson/sandbox"
)

// List returns every session on the engine (sandbox.Provider).
func (p *Provider) List(ctx context.Context) ([]sandbox.Info, error) {
	if err := p.connect(ctx); err != nil {
		return nil, err
	}
	found, err := p.containersOf(ctx, filters.NewArgs(filters.Arg("label", labelSandbox+"=1")))
	if err != nil {
		return nil, p.failed("list sessions", err)
	}
	infos := make([]sandbox.Info, 0, len(found))
	for _, c := range found {
		l := labelled{
			containerID: c.ID, name: nameOf(c.Names, containerPrefix), imageID: c.ImageID,
			state: stateOf(c.State), created: time.Unix(c.Created, 0), labels: c.Labels,
		}
		if s, ok := l.session(p); ok && l.state != sandbox.StateLost {
			infos = append(infos, s.info)
		}
	}
	return infos, nil
}

// Open returns one session (sandbox.Provider). It is for the server that is
// entitled to work in the session: one that is found frozen runs again.
func (p *Provider) Open(ctx context.Context, id string) (sandbox.Session, error) {
	const op = "open session"
	if !sandbox.ValidSessionID(id) {
		return nil, noSession(op)
	}
	if err := p.connect(ctx); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, callLimit)
	defer cancel()
	c, err := p.api.ContainerInspect(ctx, containerName(id))
	if errdefs.IsNotFound(err) {
		return nil, noSession(op).Because(err)
	}
	if err != nil {
		return nil, p.failed(op, err)
	}
	l := labelled{containerID: c.ID, name: strings.TrimPrefix(c.Name, "/"), imageID: c.Image, state: stateOf(c.State.Status), labels: c.Config.Labels, env: c.Config.Env}
	if l.created, err = time.Parse(time.RFC3339Nano, c.Created); err != nil {
		return nil, sandbox.Errorf(op, sandbox.KindInternal, "the engine does not tell when the session was made").Because(err)
	}
	s, ok := l.session(p)
	if !ok || l.state == sandbox.StateLost {
		return nil, noSession(op)
	}
	if c.State.Paused {
		return s, s.thawLeft(ctx)
	}
	return s, nil
}

func noSession(op string) *sandbox.Error {
	return sandbox.Errorf(op, sandbox.KindSessionNotFound, "there is no such session")
}

// stateOf maps the engine's state of a container.
func stateOf(state container.ContainerState) sandbox.State {
	switch state {
	case container.StateCreated:
		return sandbox.StateCreating
	case container.StateRunning, container.StatePaused:
		return sandbox.StateRunning
	case container.StateExited, container.StateRestarting:
		return sandbox.StateStopped
	default: // removing, dead
		return sandbox.StateLost
	}
}

// nameOf returns the container's name that begins with prefix, without the
// slash that the engine puts before it.
func nameOf(names []string, prefix string) string {
	for _, n := range names {
		if n = strings.TrimPrefix(n, "/"); strings.HasPrefix(n, prefix) {
			return n
		}
	}
	return ""
}
