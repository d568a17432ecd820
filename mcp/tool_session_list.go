package mcp

import (
	"context"
	"slices"

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
	infos, err := s.manager.List(ctx, c.owner)
	if in.session != nil {
		c.session = *in.session
		if infos, err = s.pick(c, infos, *in.session); err != nil {
			return nil, err
		}
	}
	if err != nil && len(infos) == 0 {
		return nil, err // an empty list would say that all is well
	}
	result := sessionListResult{Sessions: make([]sessionView, len(infos))}
	for i, info := range infos {
		result.Sessions[i] = viewOf(info)
	}
	return jsonReply(result, "%d sessions", len(infos))
}

// pick is the one session, with what the listing has noted on it.
func (s *Server) pick(c *call, infos []sandbox.Info, id string) ([]sandbox.Info, error) {
	if i := slices.IndexFunc(infos, func(info sandbox.Info) bool { return info.ID == id }); i >= 0 {
		return infos[i : i+1], nil
	}
	info, err := s.manager.Session(c.owner, id)
	if err != nil {
		return nil, err
	}
	return []sandbox.Info{info}, nil
}
