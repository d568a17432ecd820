package mcp

import (
	"fmt"
	"io/fs"

	"caisson/sandbox"
)

// inSession does work in a session that is held meanwhile, so that it cannot be
// ended as idle under it.
func (s *Server) inSession(c *call, t target, work func(sandbox.Session) error) error {
	c.session = t.id
	session, release, err := s.manager.Acquire(c.owner, t.id)
	if err != nil {
		return s.lost(t, err)
	}
	defer release()
	return s.lost(t, work(session))
}

// madeSession is in a file tool's result when its call has made the default
// session.
type madeSession struct {
	SessionID      string `json:"session_id,omitempty" about:"The session, when this call made it."`
	SessionCreated *bool  `json:"session_created,omitempty" about:"True when this call made the session."`
}

func (t target) made() madeSession {
	if !t.created {
		return madeSession{}
	}
	return madeSession{t.id, &t.created}
}

// line tells the same in words, or nothing.
func (m madeSession) line() string {
	if m.SessionID == "" {
		return ""
	}
	return "session_id: " + m.SessionID + " (made by this call)\n"
}

// octal shows permissions the way chmod takes them.
func octal(mode fs.FileMode) string { return fmt.Sprintf("%04o", mode.Perm()) }
