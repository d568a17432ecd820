//go:build !conformance

package mcp

// addFixtures adds nothing: the tools that the protocol's conformance suite calls are
// built into a test's own program alone.
func (s *Server) addFixtures() {}
