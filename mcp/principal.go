package mcp

import (
	"context"
	"net/http"
	"path"
	"slices"

	mcpgo "github.com/mark3labs/mcp-go/mcp"

	"caisson/principal"
	"caisson/sandbox"
)

// Principal is who makes a call on a shared endpoint.
type Principal = principal.Principal

// Authenticator tells who makes an HTTP request. It is called for each one, from
// many goroutines, and waits for nothing longer than the request's context.
type Authenticator interface {
	// Authenticate returns the principal of a request, or why there is none: a
	// *principal.Refusal; any other error is answered as a fault of the server.
	Authenticate(r *http.Request) (Principal, error)
}

type principalKey struct{}

func withPrincipal(ctx context.Context, p *Principal) context.Context {
	return context.WithValue(ctx, principalKey{}, p)
}

// principalOf is the principal of a request, or nil: on stdio, and where the
// server has no principals.
func principalOf(ctx context.Context) *Principal {
	p, _ := ctx.Value(principalKey{}).(*Principal)
	return p
}

// mayUse says whether a caller may see and call a tool: every tool without a
// principal. One that it may not use looks as if it were not there.
func (c caller) mayUse(tool string) bool { return c.principal.May(tool) }

// mayUseImage says whether a caller's sessions may have an image, as far as its own
// ceilings say.
func (c caller) mayUseImage(image string) bool {
	if c.principal == nil || c.principal.Ceilings == nil || len(c.principal.Ceilings.Images) == 0 {
		return true
	}
	return slices.ContainsFunc(c.principal.Ceilings.Images, func(pattern string) bool {
		ok, err := path.Match(pattern, image)
		return err == nil && ok
	})
}

// ceilings are the bounds of the caller's own sessions, nil for none.
func (c caller) ceilings() *sandbox.Ceilings {
	if c.principal == nil {
		return nil
	}
	return c.principal.Ceilings
}

// principalName is what the caller's calls are counted under; empty without a
// principal.
func (c caller) principalName() string {
	if c.principal == nil {
		return ""
	}
	return c.principal.Name
}

// permitted leaves the tools that the caller may use. mcp-go asks it for the
// list and for each call.
func (s *Server) permitted(ctx context.Context, tools []mcpgo.Tool) []mcpgo.Tool {
	c := s.callerOf(ctx)
	if c.principal == nil {
		return tools
	}
	left := make([]mcpgo.Tool, 0, len(tools))
	for _, t := range tools {
		if c.mayUse(t.Name) {
			left = append(left, t)
		}
	}
	return left
}

// Cut ends what is being served for principals that may not call any more, and
// forgets their protocol sessions. Their sandbox sessions stay until they are
// idle.
func (s *Server) Cut(names []string) {
	s.principals.cut(names)
	s.Handler()
	s.web.streamable.cut(names)
	s.web.sse.cut(names)
}
