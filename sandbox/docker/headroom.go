package docker

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strconv"
	"time"

	"github.com/containerd/errdefs"
	"github.com/docker/docker/api/types/container"

	"caisson/sandbox"
)

// headrooms are by how much the cap of processes is raised for a stop, from one
// try to the next: what has filled the cap takes of them too, so that a little
// may be gone before the stop's shell has begun.
var headrooms = []int64{32, 128, 512}

// stopWithHeadroom is a stop for a container at its cap of processes: the cap is
// raised, and put back (D24). errNoRoom means that it was no use.
func (s *Session) stopWithHeadroom(ctx context.Context, id string, sig sandbox.Signal) (report sandbox.StopReport, err error) {
	pids := s.Info().Pids
	err = errNoRoom
	if pids <= 0 {
		return report, err
	}
	defer func() {
		ctx, cancel := cleanup(ctx)
		defer cancel()
		if err := s.capPids(ctx, pids); err != nil && !errdefs.IsNotFound(err) {
			s.p.log.Error("a raised cap of processes could not be put back", "session", sandbox.ShortID(s.info.ID), "error", err)
			s.note(sandbox.Note{Code: "pids_cap_raised", Text: "the cap of processes was raised to stop a command, and could not be put back"})
		}
	}()
	for _, room := range headrooms {
		if capErr := s.capPids(ctx, pids+room); capErr != nil {
			return report, errors.Join(err, capErr)
		}
		report, err = s.stopOnce(ctx, id, sig)
		if err != nil && ctx.Err() != nil {
			return report, errors.Join(errNoRoom, err) // the stop's time went by without room for it
		}
		if !errors.Is(err, errNoRoom) {
			return report, err
		}
	}
	return report, err
}

// fullStart is how long a command in a session at its cap of processes may be silent
// until it counts as started. Runtimes since runc 1.2 get the wrapper's own process into
// such a session, where it can start no other and says so when it gets to it.
const (
	fullStart  = 5 * time.Second
	fullMargin = 2 // what the wrapper needs beside itself, at a moment when something has ended
)

// full says whether the session is at its cap of processes, false where the engine does
// not say.
func (s *Session) full(ctx context.Context) bool {
	pids := s.Info().Pids
	if pids <= 0 {
		return false
	}
	ctx, cancel := context.WithTimeout(ctx, inspectLimit)
	defer cancel()
	answer, err := s.p.api.ContainerStatsOneShot(ctx, s.containerID)
	if err != nil {
		return false
	}
	defer func() { _ = answer.Body.Close() }()
	var stats container.StatsResponse
	return json.NewDecoder(answer.Body).Decode(&stats) == nil && stats.PidsStats.Current+fullMargin >= uint64(pids)
}

// forked says whether a process of the session's, by its id on the engine's host, has a
// child: a wrapper that has one found room for it.
func (s *Session) forked(ctx context.Context, pid int) bool {
	ctx, cancel := context.WithTimeout(ctx, inspectLimit)
	defer cancel()
	top, err := s.p.api.ContainerTop(ctx, s.containerID, []string{"-eo", "pid,ppid"})
	return err == nil && slices.ContainsFunc(top.Processes, func(row []string) bool {
		return len(row) == 2 && row[1] == strconv.Itoa(pid)
	})
}

func (s *Session) capPids(ctx context.Context, pids int64) error {
	_, err := s.p.api.ContainerUpdate(ctx, s.containerID, container.UpdateConfig{Resources: container.Resources{PidsLimit: &pids}})
	return err
}

// endForStop ends the session, since a command in it can be stopped in no other
// way.
func (s *Session) endForStop(ctx context.Context, cause error) (sandbox.StopReport, error) {
	ctx, cancel := cleanup(ctx)
	defer cancel()
	s.p.log.Error("a command can only be stopped with its session", "session", sandbox.ShortID(s.info.ID), "error", cause)
	if err := s.p.remove(ctx, s.containerID); err != nil {
		return sandbox.StopReport{}, killFailed("the session has no room for the stop's own process, and could not be ended").Because(errors.Join(cause, err))
	}
	s.setState(sandbox.StateLost)
	text := "the session was ended: it had no room for the process that stops a command"
	s.note(sandbox.Note{Code: "ended_to_stop", Text: text})
	return sandbox.StopReport{Gone: true, Incomplete: text}, nil
}
