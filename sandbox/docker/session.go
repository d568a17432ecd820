package docker

import (
	"context"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/containerd/errdefs"
	"github.com/docker/docker/api/types/container"

	"caisson/sandbox"
)

// workspacePath is where a session's volume is mounted, and where its commands
// start.
const workspacePath = "/workspace"

// Session is one container of ours. It implements sandbox.Session. It holds
// nothing that its labels do not tell, so that any number of Sessions of one
// container may exist side by side; what it learns are notes.
type Session struct {
	p           *Provider
	containerID string
	user        account
	spec        sandbox.Spec

	mu      sync.Mutex
	info    sandbox.Info
	oomSeen int64 // the container's count of out-of-memory kills when last read; -1: not known
}

// account is whom a session's commands run as.
type account struct {
	uid, gid int
	name     string
	home     string
}

// String is the account as the engine's API takes it. With a group named, the
// engine adds none of the image's supplementary groups.
func (a account) String() string { return strconv.Itoa(a.uid) + ":" + strconv.Itoa(a.gid) }

// Info returns what the session is (sandbox.Session).
func (s *Session) Info() sandbox.Info {
	s.mu.Lock()
	defer s.mu.Unlock()
	info := s.info
	info.Notes = slices.Clone(info.Notes)
	return info
}

// Spec returns what the session was made from (sandbox.Session).
func (s *Session) Spec() sandbox.Spec {
	spec := s.spec
	spec.Env, spec.Labels = maps.Clone(spec.Env), maps.Clone(spec.Labels)
	return spec
}

// note adds a note to the session, once for each code.
func (s *Session) note(n sandbox.Note) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.info.Notes = addNote(s.info.Notes, n)
}

func addNote(notes []sandbox.Note, n sandbox.Note) []sandbox.Note {
	if slices.ContainsFunc(notes, func(o sandbox.Note) bool { return o.Code == n.Code }) {
		return notes
	}
	return append(notes, n)
}

// createExec makes an engine exec in the session's container. A container that
// is found stopped is started first (D28).
func (s *Session) createExec(ctx context.Context, op string, options container.ExecOptions) (string, error) {
	if err := s.p.connect(ctx); err != nil {
		return "", err
	}
	id, err := s.execCreate(ctx, options)
	if err != nil && isStopped(err) {
		if err := s.revive(ctx); err != nil {
			return "", err
		}
		id, err = s.execCreate(ctx, options)
	}
	if err != nil && isPaused(err) && s.p.freezes.takeStuck(s.containerID) {
		if err := s.thawLeft(ctx); err != nil {
			return "", err
		}
		id, err = s.execCreate(ctx, options)
	}
	if err != nil {
		return "", s.failed(op, err)
	}
	return id, nil
}

// execCreate is one call of createExec, which may be part of a transfer with a far
// longer bound.
func (s *Session) execCreate(ctx context.Context, options container.ExecOptions) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, callLimit)
	defer cancel()
	made, err := s.p.api.ContainerExecCreate(ctx, s.containerID, options)
	return made.ID, err
}

// inspect asks the engine for the session's container.
func (s *Session) inspect(ctx context.Context) (container.InspectResponse, error) {
	ctx, cancel := context.WithTimeout(ctx, callLimit)
	defer cancel()
	return s.p.api.ContainerInspect(ctx, s.containerID)
}

// revive starts the container again, which the engine's or its host's restart
// has stopped. Starting one that runs is no error to the engine, so concurrent
// calls need no lock.
func (s *Session) revive(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, createLimit)
	defer cancel()
	if err := s.p.api.ContainerStart(ctx, s.containerID, container.StartOptions{}); err != nil {
		return s.failed("start the session's container again", err)
	}
	s.mu.Lock()
	s.info.State, s.oomSeen = sandbox.StateRunning, 0
	s.mu.Unlock()
	s.note(sandbox.Note{Code: "restarted", Text: "the session's container was found stopped and was started again: its files are there, the processes that ran in it are not"})
	s.p.log.Info("session's container started again", "session", sandbox.ShortID(s.info.ID))
	return nil
}

// failed is Provider.failed for calls about the session's container.
func (s *Session) failed(op string, err error) *sandbox.Error {
	switch {
	case errdefs.IsNotFound(err), isGoing(err):
		s.setState(sandbox.StateLost)
		return sandbox.Errorf(op, sandbox.KindSessionLost, "the session's container is gone").Because(err)
	case isPaused(err):
		return sandbox.Errorf(op, sandbox.KindBusy, "the session's container is paused on the engine").Because(err)
	case isStopped(err):
		return sandbox.Errorf(op, sandbox.KindSessionLost, "the session's container stops as soon as it is started").Because(err)
	}
	return s.p.failed(op, err)
}

// attachFailed is failed for the start of an exec that was created a moment ago.
// The engine that knows nothing of it was restarted; the session is still there,
// or the next call says that it is not.
func (s *Session) attachFailed(op string, err error) *sandbox.Error {
	if errdefs.IsNotFound(err) && strings.Contains(err.Error(), "exec") {
		return sandbox.Errorf(op, sandbox.KindUnavailable, "the engine was restarted meanwhile; try again").Because(err)
	}
	return s.failed(op, err)
}

// startFailed is attachFailed for a command. Where the engine was asked and its answer
// is lost, the command may have run: the same call again could do it twice.
func (s *Session) startFailed(op string, err error) *sandbox.Error {
	if kind, text, link := s.p.linkFailure(err); link && kind == sandbox.KindUnavailable && !neverSent(err) {
		return sandbox.Errorf(op, sandbox.KindUnknownOutcome, "%s; the command may have run, and is stopped if it has", text).Because(err)
	}
	return s.attachFailed(op, err)
}

func (s *Session) setState(state sandbox.State) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.info.State = state
}

// oomUnknown stands for a count of kills that was not read yet.
const oomUnknown = -1
