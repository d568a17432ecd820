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

// octal shows permissions the way chmod takes them.
func octal(mode fs.FileMode) string { return fmt.Sprintf("%04o", mode.Perm()) }
