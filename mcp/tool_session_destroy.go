package mcp

import "context"

type sessionDestroyInput struct{ session *string }

type sessionDestroyResult struct {
	SessionID string `json:"session_id" about:"As asked for."`
	Destroyed bool   `json:"destroyed" about:"False when there was no such session (any more)."`
	Workspace string `json:"workspace,omitempty" enum:"deleted,kept" about:"What became of its workspace."`
}

func (in *sessionDestroyInput) fields() []field {
	return []field{nameField("session_id", &in.session, "The session.").must()}
}

func (s *Server) sessionDestroyTool() tool {
	return define[sessionDestroyInput, sessionDestroyResult](about{
		name: "session_destroy", title: "End a session",
		description: "Ends a session and every command in it. Its files are deleted, unless its workspace is persistent: that is kept (workspace_delete removes it). The output of its commands stays readable for an hour. A session that is gone already is success.",
		destructive: true, idempotent: true, urgent: true,
	}, (*sessionDestroyInput).fields, s.sessionDestroy)
}

func (s *Server) sessionDestroy(ctx context.Context, c *call, in *sessionDestroyInput) (*reply, error) {
	c.session = *in.session
	existed, workspace, err := s.manager.Destroy(ctx, c.owner, *in.session)
	if err != nil {
		return nil, err
	}
	text := "there is no such session (any more)"
	if existed {
		s.defaults.forget(*in.session)
		text = "the session was destroyed; its workspace was " + workspace
	}
	return jsonReply(sessionDestroyResult{*in.session, existed, workspace}, "%s", text)
}
