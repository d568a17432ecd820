package mcp

import (
	"context"

	"caisson/sandbox"
)

type killInput struct {
	exec   *string
	signal *string
}

type killResult struct {
	execResult
	Killed bool `json:"killed" about:"The signal came before the command's own exit."`
}

func (in *killInput) fields() []field {
	return []field{
		execIDField(&in.exec),
		textField("signal", &in.signal, "Which signal to send to the command's process group.").
			oneOf("KILL", "TERM", "INT", "HUP", "QUIT", "USR1", "USR2").orElse("KILL"),
	}
}

func (s *Server) killTool() tool {
	return define[killInput, killResult](about{
		name: "kill", title: "Stop a command",
		description: "Stops a running command and every process of its group, and returns how it ended with the output since your last result. " +
			"Another signal than KILL is only delivered: the call waits up to 2 s for its effect and may answer running. " +
			"A command that has ended already is success with killed false. A process that left the group goes on; ending the session ends everything.",
		destructive: true, idempotent: true, urgent: true,
	}, (*killInput).fields, s.kill)
}

func (s *Server) kill(_ context.Context, c *call, in *killInput) (*reply, error) {
	c.exec = *in.exec
	e, err := s.manager.Exec(c.owner, *in.exec)
	if err != nil {
		return nil, err
	}
	c.session = e.SessionID()
	s.manager.Touch(c.owner, e.SessionID())
	signal := sandbox.Signal(or(in.signal, string(sandbox.SignalKill)))
	killed, err := e.Kill(signal)
	if err != nil {
		return nil, err
	}
	result, r := s.execReply(c, e, target{}, outputRequest{from: s.cursors.of(c.caller, e), chars: defaultOutputChars})
	r.structured = killResult{*result, killed}
	r.failed = nil // however the command ended: the kill itself has done its work
	r.text = killedText(killed, signal, result) + "; " + r.text
	return r, nil
}

// killedText says what became of the kill, and no more than is known: nobody saw
// how a lost command ended, nor whether.
func killedText(killed bool, signal sandbox.Signal, r *execResult) string {
	unseen := r.Status == string(sandbox.StatusLost) || r.Status == string(sandbox.StatusTimedOut)
	switch {
	case killed:
		return "signal delivered"
	case r.Status == string(sandbox.StatusRunning):
		return "no process was there to take the signal"
	case r.LostReason == string(sandbox.LostContainerGone):
		return "nothing was killed: the session's container is gone, and the command with it"
	case unseen && signal != sandbox.SignalKill:
		return "no signal was sent: the command is no longer followed; KILL stops what may be left of it"
	case r.Status == string(sandbox.StatusLost):
		return "nothing was killed: there is no process of the command to be found (any more); how it ended is not known"
	default:
		return "nothing was killed: the command had ended"
	}
}
