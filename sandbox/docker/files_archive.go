package docker

import (
	"context"
	"errors"
	"path"
	"strings"
	"time"

	"github.com/containerd/errdefs"
	"github.com/docker/docker/api/types/container"

	"caisson/sandbox"
)

// archiveTools moves files by the engine's archive calls, for images without the
// commands that fileTools needs. Those calls work as root, follow links and can
// be raced by what runs in the session. So they reach the workspace alone, on a
// session that is frozen meanwhile, and every step of a path is looked at first.
// They do not put files in place at once: a write that fails for want of space
// may leave a part.
type archiveTools struct {
	s *Session
}

// noteArchive is the note of a session whose files travel this way.
var noteArchive = sandbox.Note{
	Code: "file_transfer_archive",
	Text: "files travel by the engine's archive calls: they reach the workspace only, and the session stands still while they run",
}

const (
	freezeWait  = 10 * time.Second
	freezePause = 50 * time.Millisecond
)

// frozen does something while nothing in the session runs. Transfers wait for
// one another; a session that somebody else has frozen is KindBusy.
func (a archiveTools) frozen(ctx context.Context, op string, do func(context.Context) error) error {
	if err := a.s.p.connect(ctx); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, transferLimit)
	defer cancel()
	thaw, err := a.freeze(ctx, op)
	if err != nil {
		return err
	}
	return errors.Join(do(ctx), thaw())
}

// freeze returns what lets the session run again. One that is stopped cannot race.
func (a archiveTools) freeze(ctx context.Context, op string) (thaw func() error, err error) {
	a.s.p.freezes.begin(a.s.containerID)
	defer func() {
		if thaw == nil {
			a.s.p.freezes.end(a.s.containerID, true)
		}
	}()
	for deadline := time.Now().Add(freezeWait); ; {
		err := a.s.p.api.ContainerPause(ctx, a.s.containerID)
		switch {
		case err == nil:
			return func() error { return a.thaw(ctx, op) }, nil
		case isStopped(err):
			return func() error {
				a.s.p.freezes.end(a.s.containerID, true)
				return nil
			}, nil
		case !errdefs.IsConflict(err) || !strings.Contains(err.Error(), "already paused"):
			return nil, a.s.failed(op, err)
		case time.Now().After(deadline):
			return nil, sandbox.Errorf(op, sandbox.KindBusy, "the session's container is paused on the engine").Because(err)
		}
		if err := pause(ctx, freezePause); err != nil {
			return nil, a.s.p.failed(op, err)
		}
	}
}

// thaw runs on its own context: whatever ended the transfer, the session has to
// go on.
func (a archiveTools) thaw(ctx context.Context, op string) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanupLimit)
	defer cancel()
	err := a.s.p.api.ContainerUnpause(ctx, a.s.containerID)
	thawed := err == nil || errdefs.IsNotFound(err)
	a.s.p.freezes.end(a.s.containerID, thawed)
	if !thawed {
		a.s.p.log.Error("session stays paused", "session", sandbox.ShortID(a.s.info.ID), "error", err)
		return a.s.failed(op, err)
	}
	return nil
}

// located is where a path leads: to something, or to a place that is free below
// the directory have.
type located struct {
	path string
	stat *container.PathStat // nil: nothing is there
	have string
}

// locate follows a path inside the workspace, step by step.
func (a archiveTools) locate(ctx context.Context, op string, at place) (located, error) {
	whole := path.Clean(at.abs)
	if hasDotDot(at.abs) || whole != workspacePath && !strings.HasPrefix(whole, workspacePath+"/") {
		return located{}, sandbox.Errorf(op, sandbox.KindNotSupported, "%q: with this image only files in %s can be reached, by their plain path", at.abs, workspacePath)
	}
	found := located{path: workspacePath, have: workspacePath}
	rest := strings.TrimPrefix(strings.TrimPrefix(whole, workspacePath), "/")
	var err error
	if found.stat, err = a.stat(ctx, op, workspacePath); err != nil || rest == "" {
		return found, err
	}
	for rest != "" {
		step, after, _ := strings.Cut(rest, "/")
		if found.stat == nil || !found.stat.Mode.IsDir() {
			return located{}, sandbox.Errorf(op, sandbox.KindNotDirectory, "%q: part of the path is not a directory", at.abs)
		}
		next := path.Join(found.path, step)
		stat, err := a.stat(ctx, op, next)
		if err != nil {
			return located{}, err
		}
		if stat == nil {
			return located{path: path.Join(next, after), have: found.path}, nil
		}
		if next, stat, err = a.through(ctx, op, next, stat); err != nil {
			return located{}, err
		}
		found, rest = located{path: next, stat: stat, have: path.Dir(next)}, after
	}
	return found, nil
}

// through follows a link, whose target the engine tells with all links on the
// way resolved.
func (a archiveTools) through(ctx context.Context, op, name string, stat *container.PathStat) (string, *container.PathStat, error) {
	if stat.LinkTarget == "" {
		return name, stat, nil
	}
	target := path.Clean(stat.LinkTarget)
	if !strings.HasPrefix(target, workspacePath+"/") {
		return "", nil, sandbox.Errorf(op, sandbox.KindPathEscapes, "%q leads out of the workspace through a link", name)
	}
	stat, err := a.stat(ctx, op, target)
	switch {
	case err != nil:
		return "", nil, err
	case stat == nil || stat.LinkTarget != "":
		return "", nil, sandbox.Errorf(op, sandbox.KindFileNotFound, "%q is a link to nothing", name)
	}
	return target, stat, nil
}

// stat returns nil where nothing is.
func (a archiveTools) stat(ctx context.Context, op, name string) (*container.PathStat, error) {
	stat, err := a.s.p.api.ContainerStatPath(ctx, a.s.containerID, name)
	switch {
	case err == nil:
		return &stat, nil
	case errdefs.IsNotFound(err) && !strings.Contains(err.Error(), "No such container"):
		return nil, nil
	case strings.Contains(err.Error(), "not a directory"):
		return nil, sandbox.Errorf(op, sandbox.KindNotDirectory, "%q: part of the path is not a directory", name).Because(err)
	case strings.Contains(err.Error(), "file name too long"):
		return nil, sandbox.Invalid("path", "%.100q: the name is too long", name).Because(err)
	}
	return nil, a.s.failed(op, err)
}
