package principal

import (
	"encoding/json"
	"net/http"
	"strings"
)

// metadataPath is where RFC 9728 has a protected resource described; the path of
// the resource follows it.
const metadataPath = "/.well-known/oauth-protected-resource"

// Metadata describes the endpoint as a protected resource (RFC 9728), so that a
// client finds the issuer to get a token from. It is nil without an issuer. It
// is served at /.well-known/oauth-protected-resource and below, to anybody.
func (d *Door) Metadata() http.Handler {
	if d.o.Issuer == nil {
		return nil
	}
	return http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		path := strings.TrimPrefix(r.URL.Path, metadataPath)
		if path == "" {
			path = "/mcp"
		}
		if path != resource(path) {
			http.NotFound(rw, r)
			return
		}
		body, err := json.Marshal(map[string]any{
			"resource":                 d.base(r) + path,
			"resource_name":            "Caisson",
			"authorization_servers":    []string{d.o.Issuer.o.URL},
			"bearer_methods_supported": []string{"header"},
		})
		if err != nil {
			http.Error(rw, "internal error", http.StatusInternalServerError)
			return
		}
		rw.Header().Set("Content-Type", "application/json")
		rw.Header().Set("Cache-Control", "max-age=300")
		_, _ = rw.Write(body) // a client that has gone needs no answer
	})
}

// resource is the endpoint that a path belongs to: one of the two that there are.
func resource(path string) string {
	if path == "/sse" || path == "/message" {
		return "/sse"
	}
	return "/mcp"
}

// base is how the client reaches the server.
func (d *Door) base(r *http.Request) string {
	switch {
	case d.o.PublicURL != "":
		return strings.TrimSuffix(d.o.PublicURL, "/")
	case r.TLS != nil:
		return "https://" + r.Host
	default:
		return "http://" + r.Host
	}
}
