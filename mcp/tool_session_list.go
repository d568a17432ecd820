package mcp

import (
	"context"

	"caisson/sandbox"
)

type sessionListInput struct{ session *string }

type sessionListResult struct {
	Sessions []sessionView `json:"sessions" about:"Oldest first."`
}

func (in *sessionListInput) fields() []field {
	return []field{nameField("session_id", &in.session, "Only this session. Default: all of yours.")}
}

func (s *Server) sessionListTool() tool {
	return define[sessionListInput, sessionListResult](about{
		name: "session_list", title: "List sessions",
		description: "Lists your sandbox sessions with image, network, caps, state and when they expire. Looking does not keep a session alive.",
		readOnly:    true, idempotent: true,
	}, (*sessionListInput).fields, s.sessionList)
}

func (s *Server) sessionList(ctx context.Context, c *call, in *sessionListInput) (*reply, error) {
	infos := s.manager.List(ctx, c.owner)
	if in.session != nil {
		c.session = *in.session
		info, err := s.manager.Session(c.owner, *in.session)
		if err != nil {
			return nil, err
		}
		infos = []sandbox.Info{info}
	}
	result := sessionListResult{Sessions: make([]sessionView, len(infos))}
	for i, info := range infos {
		result.Sessions[i] = viewOf(info)
	}
	return jsonReply(result, "%d sessions", len(infos))
}
