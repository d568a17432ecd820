package mcp

import (
	"context"
	"time"
)

type sessionExtendInput struct {
	session *string
	ttl     *int64
}

func (in *sessionExtendInput) fields() []field {
	return []field{
		nameField("session_id", &in.session, "The session.").must(),
		intField("ttl_seconds", &in.ttl, "Its new idle time, if that is longer. Default: as it is.").atLeast(1),
	}
}

func (s *Server) sessionExtendTool() tool {
	return define[sessionExtendInput, sessionResult](about{
		name: "session_extend", title: "Keep a session alive",
		description: "Renews a session's idle time, and makes it longer when ttl_seconds is. It never shortens. Commands and file calls renew it by themselves.",
		idempotent:  true,
	}, (*sessionExtendInput).fields, s.sessionExtend)
}

func (s *Server) sessionExtend(_ context.Context, c *call, in *sessionExtendInput) (*reply, error) {
	c.session = *in.session
	info, err := s.manager.Extend(c.owner, *in.session, seconds(or(in.ttl, 0)), c.ceilings())
	if err != nil {
		return nil, err
	}
	v := viewOf(info)
	return jsonReply(sessionResult{v}, "the session expires at %s if it stays idle", v.ExpiresAt.Format(time.RFC3339))
}
