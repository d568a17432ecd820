package docker

import (
	"context"
	"errors"

	"github.com/docker/docker/api/types/container"

	"caisson/sandbox"
)

// headroom is by how much the cap of processes is raised for a stop: enough for
// its shell, and little for what has filled the cap.
const headroom = 24

// stopWithHeadroom is stop for a container at its cap of processes: the cap is
// raised, and put back (D24). Where the stop fails even then, the session ends:
// nothing in it could ever be stopped.
func (s *Session) stopWithHeadroom(ctx context.Context, id string, sig sandbox.Signal) (sandbox.StopReport, error) {
	pids := s.Info().Pids
	report, err := sandbox.StopReport{}, errNoRoom
	if pids > 0 && s.capPids(ctx, pids+headroom) == nil {
		report, err = s.stopOnce(ctx, id, sig)
		back, cancel := cleanup(ctx)
		defer cancel()
		if err := s.capPids(back, pids); err != nil {
			s.p.log.Error("a raised cap of processes could not be put back", "session", s.info.ID, "error", err)
			s.note(sandbox.Note{Code: "pids_cap_raised", Text: "the cap of processes was raised to stop a command, and could not be put back"})
		}
	}
	if err == nil || sig != sandbox.SignalKill || !errors.Is(err, errNoRoom) {
		return report, plainKillFailure(err)
	}
	return s.endForStop(ctx, err)
}

func (s *Session) capPids(ctx context.Context, pids int64) error {
	_, err := s.p.api.ContainerUpdate(ctx, s.containerID, container.UpdateConfig{Resources: container.Resources{PidsLimit: &pids}})
	return err
}

func plainKillFailure(err error) error {
	if errors.Is(err, errNoRoom) {
		return killFailed("the session has no room for the stop's own process").Because(err)
	}
	return err
}

// endForStop ends the session, since a command in it can be stopped in no other
// way.
func (s *Session) endForStop(ctx context.Context, cause error) (sandbox.StopReport, error) {
	ctx, cancel := cleanup(ctx)
	defer cancel()
	s.p.log.Error("a command can only be stopped with its session", "session", s.info.ID, "error", cause)
	if err := s.p.remove(ctx, s.containerID); err != nil {
		return sandbox.StopReport{}, killFailed("the session has no room for the stop's own process, and could not be ended").Because(errors.Join(cause, err))
	}
	s.setState(sandbox.StateLost)
	text := "the session was ended: it had no room for the process that stops a command"
	s.note(sandbox.Note{Code: "ended_to_stop", Text: text})
	return sandbox.StopReport{Gone: true, Incomplete: text}, nil
}
