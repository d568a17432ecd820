package mcp

import (
	"time"

	"github.com/mark3labs/mcp-go/server"
)

// MCP is the server inside, for in-process clients.
func (s *Server) MCP() *server.MCPServer { return s.mcp }

// Hurry shortens the clocks of a test.
func (s *Server) Hurry(callLimit, step, quiet time.Duration) {
	s.callLimit = callLimit
	s.pace.step, s.pace.quiet = step, quiet
}

// IdleAfter sets how long an HTTP client session may be silent. It must be
// called before Handler.
func (s *Server) IdleAfter(d time.Duration) { s.sessionIdle = d }

// ClientSessions is how many HTTP client sessions there are.
func (s *Server) ClientSessions() int {
	s.web.sessions.mu.Lock()
	defer s.web.sessions.mu.Unlock()
	return len(s.web.sessions.ids)
}

// CallsUnderWay is how many calls are being served.
func (s *Server) CallsUnderWay() int {
	s.calls.mu.Lock()
	defer s.calls.mu.Unlock()
	n := 0
	for _, mine := range s.calls.live {
		n += len(mine)
	}
	return n
}

// AllCodes is every error code that a tool can answer.
func AllCodes() []string {
	all := []string{codeStringNotFound, codeStringNotUnique, "timed_out", "lost"}
	for _, row := range codes {
		all = append(all, row.code)
	}
	return all
}

// DecodeExec decodes the arguments of exec.
func DecodeExec(raw []byte) error { return decodeArguments(raw, new(execInput).fields()) }
