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
	e, err := s.manager.Exec(c.owner, *in.exec)
	if err != nil {
		return nil, err
	}
	c.session = e.SessionID()
	s.manager.Touch(c.owner, e.SessionID())
	killed, err := e.Kill(sandbox.Signal(or(in.signal, string(sandbox.SignalKill))))
	if err != nil {
		return nil, err
	}
	result, r := s.execReply(c, e, target{}, outputRequest{from: s.cursors.of(c.caller, e), chars: defaultOutputChars})
	r.structured = killResult{*result, killed}
	r.failed = nil // however the command ended: the kill itself has done its work
	r.text = killedText(killed, result.Status) + "; " + r.text
	return r, nil
}

func killedText(killed bool, status string) string {
	switch {
	case killed:
		return "signal delivered"
	case status == string(sandbox.StatusRunning):
		return "no process was there to take the signal"
	default:
		return "nothing was killed: the command had ended"
	}
}
