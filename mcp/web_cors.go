package mcp

import (
	"net/http"

	mcpgo "github.com/mark3labs/mcp-go/mcp"
)

// crossHeaders are what a page may send.
const crossHeaders = "Content-Type, Authorization, " + headerSession + ", Last-Event-ID, " + mcpgo.HeaderProtocolVersion + ", Mcp-Method, Mcp-Name"

// crossOrigin tells a browser that a page which is listed may read the answer, and
// answers its question beforehand, which carries no token. The guard has refused
// every other page by now; programs send no Origin and get no such header.
func (w *web) crossOrigin(rw http.ResponseWriter, r *http.Request) (answered bool) {
	if len(w.s.options.AllowedOrigins) > 0 {
		rw.Header().Add("Vary", "Origin")
	}
	origin := r.Header.Get("Origin")
	if !w.originListed(origin) {
		return false
	}
	rw.Header().Set("Access-Control-Allow-Origin", origin)
	rw.Header().Set("Access-Control-Expose-Headers", headerSession)
	if r.Method != http.MethodOptions || r.Header.Get("Access-Control-Request-Method") == "" {
		return false
	}
	rw.Header().Set("Access-Control-Allow-Methods", "GET, POST, DELETE, OPTIONS")
	rw.Header().Set("Access-Control-Allow-Headers", crossHeaders)
	rw.WriteHeader(http.StatusNoContent)
	return true
}
