package docker

import (
	"context"
	"errors"
	"time"

	"github.com/containerd/errdefs"
	"github.com/docker/docker/api/types/container"

	"caisson/sandbox"
)

// answerWait is how much longer than its caller a create waits for the engine's
// answer, so that what was made can be removed by its id.
const answerWait = 5 * time.Second

// creation is one session on its way.
type creation struct {
	p     *Provider
	id    string
	spec  sandbox.Spec
	img   engineImage
	facts imageFacts
	hard  *hardening
	notes []sandbox.Note

	disk        diskPlan
	volume      string
	freshVolume bool
	asked       bool // the engine was sent the container's create
	containerID string
}

// Create makes a running session (sandbox.Provider). With an image that is known
// and right it costs an inspect of the image, a create and a start.
func (p *Provider) Create(ctx context.Context, id string, spec sandbox.Spec, progress sandbox.Progress) (sandbox.Session, error) {
	if !sandbox.ValidSessionID(id) {
		return nil, sandbox.Errorf("create session", sandbox.KindInternal, "the handle has not the form of one")
	}
	if err := p.connect(ctx); err != nil {
		return nil, err
	}
	c := &creation{p: p, id: id, spec: spec}
	s, err := c.run(ctx, progress)
	if err != nil {
		return nil, c.undo(ctx, err)
	}
	return s, nil
}

func (c *creation) run(ctx context.Context, progress sandbox.Progress) (*Session, error) {
	runtime, err := c.p.runtime(c.spec)
	if err != nil {
		return nil, err
	}
	network, err := c.p.networkName(c.spec.Network)
	if err != nil {
		return nil, err
	}
	proved := c.p.prove(c.spec.Network)
	if c.hard, err = c.p.hardening(ctx, c.spec.Operator); err != nil {
		return nil, err
	}
	if c.img, err = c.p.image(ctx, c.spec.Image, c.p.pullPolicy(c.spec.Operator), progress); err != nil {
		return nil, err
	}
	c.img = asUser(c.img, c.spec.Operator)
	if c.facts, err = c.p.facts(ctx, c.img); err != nil {
		return nil, err
	}
	if _, err := c.p.network(ctx, c.spec.Network); err != nil {
		return nil, err
	}
	if c.disk, err = c.p.planDisk(ctx, c.img); err != nil {
		return nil, err
	}
	if c.volume, c.freshVolume, err = c.p.volume(ctx, c.spec, c.disk.volumeOptions()); err != nil {
		return nil, err
	}
	if err := c.disk.settle(ctx, c.p, c.spec, c.volume, c.freshVolume); err != nil {
		return nil, err
	}
	s, err := c.make(ctx, network, runtime)
	if err != nil {
		return nil, err
	}
	if err := c.prepare(ctx, s); err != nil {
		return nil, err
	}
	// Nothing of the session runs before the firewall is proved (D1).
	if err := proved(ctx); err != nil {
		return nil, err
	}
	if err := c.start(ctx); err != nil {
		return nil, err
	}
	return s, c.p.checkContract(ctx, s)
}

// make asks the engine for the container.
func (c *creation) make(ctx context.Context, network, runtime string) (*Session, error) {
	env, dropped := sessionEnv(c.facts.user, c.spec.Env, c.img.env)
	if len(dropped) > 0 {
		c.notes = addNote(c.notes, droppedNote(dropped))
	}
	c.notes = append(c.notes, c.disk.notes()...)
	created := time.Now()
	labels := c.p.sessionLabels(c.id, c.spec, c.facts, created, c.notes)
	labels[labelDisk] = c.disk.label()
	config, hostConfig, netConfig := createBody(blueprint{
		imageID: c.img.id, labels: labels, env: env, user: c.facts.user,
		network: network, sinkDNS: c.spec.Network != sandbox.NetworkEgress,
		volume: c.volume, onVol: map[string]string{labelSandbox: "1", labelID: c.id, labelDurability: string(sandbox.Ephemeral), labelInstance: c.p.cfg.Instance},
		cpu: c.spec.CPU, memory: c.spec.Memory(), pids: c.spec.Pids, runtime: runtime, seccomp: c.p.seccomp, chosen: c.hard,
		disk: c.disk.caps(),
	})
	ctx, cancel := outlive(ctx, createLimit, answerWait)
	defer cancel()
	made, err := c.p.api.ContainerCreate(ctx, config, hostConfig, netConfig, nil, containerName(c.id))
	c.asked = !neverSent(err)
	if err != nil {
		return nil, c.p.createFailed(err)
	}
	c.containerID = made.ID
	notes, err := readWarnings(made.Warnings)
	if err != nil {
		return nil, err
	}
	s, ok := labelled{
		containerID: made.ID, name: containerName(c.id), imageID: c.img.id,
		state: sandbox.StateRunning, created: created, labels: labels,
	}.session(c.p)
	if !ok {
		return nil, sandbox.Errorf("create session", sandbox.KindInternal, "the session's labels cannot be read back")
	}
	s.spec, s.oomSeen = c.spec.WithoutFiles(), 0
	for _, n := range notes {
		s.note(n)
	}
	return s, nil
}

// outlive returns a context that ends late after ctx does, and is bounded.
func outlive(ctx context.Context, limit, late time.Duration) (context.Context, context.CancelFunc) {
	longer, cancel := context.WithTimeout(context.WithoutCancel(ctx), limit)
	stop := context.AfterFunc(ctx, func() {
		select {
		case <-longer.Done(): // the returned function was called, and ends this goroutine
		case <-time.After(late):
			cancel()
		}
	})
	return longer, func() {
		stop()
		cancel()
	}
}

// prepare puts right, before anything runs, what the image has not: the entry of
// the account, and the workspace's owner (D25).
func (c *creation) prepare(ctx context.Context, s *Session) error {
	workspace := !c.facts.ownsWorkspace
	if c.volume != "" && !c.freshVolume {
		// The volume may come from another image's session.
		owned, err := c.p.writable(ctx, c.containerID, workspacePath, c.facts.user)
		if err != nil {
			return err
		}
		if workspace = !owned; workspace {
			s.note(sandbox.Note{Code: "workspace_taken_over", Text: "the workspace belonged to another image's user and is now this session's; files in it keep their owners"})
		}
	}
	layer, err := c.layer(ctx, workspace)
	if err != nil || layer.entries == 0 {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, callLimit)
	defer cancel()
	if err := c.p.api.CopyToContainer(ctx, c.containerID, "/", &layer.buffer, container.CopyToContainerOptions{}); err != nil {
		return c.p.failed("prepare the session", err)
	}
	return nil
}

// layer is what prepare puts into the container.
func (c *creation) layer(ctx context.Context, workspace bool) (*archive, error) {
	a := newArchive()
	var errs []error
	if workspace {
		errs = append(errs, a.directory(workspacePath, c.facts.user))
	}
	if c.facts.passwd != nil {
		errs = append(errs, a.file("/etc/passwd", 0o644, account{}, string(c.facts.passwd)))
	}
	if c.facts.group != nil {
		errs = append(errs, a.file("/etc/group", 0o644, account{}, string(c.facts.group)))
	}
	if c.spec.Operator != nil {
		errs = append(errs, c.initialFiles(ctx, a, c.spec.Operator.Files))
	}
	return a, errors.Join(append(errs, a.w.Close())...)
}

// start starts the container. A network that somebody removed since it was last
// seen is made again, once.
func (c *creation) start(ctx context.Context) error {
	err := c.startOnce(ctx)
	if err == nil || !errdefs.IsNotFound(err) || c.spec.Network == sandbox.NetworkNone {
		return c.p.startFailed(err)
	}
	name, nameErr := c.p.networkName(c.spec.Network)
	if nameErr != nil {
		return nameErr
	}
	c.p.networks.set(name, false)
	if _, err := c.p.network(ctx, c.spec.Network); err != nil {
		return err
	}
	return c.p.startFailed(c.startOnce(ctx))
}

func (c *creation) startOnce(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, createLimit)
	defer cancel()
	return c.p.api.ContainerStart(ctx, c.containerID, container.StartOptions{})
}
