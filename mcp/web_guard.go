package mcp

import (
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"runtime/debug"
	"slices"
	"strings"

	mcpgo "github.com/mark3labs/mcp-go/mcp"
)

// guard stands before every protocol endpoint: it screens a request, asks who
// makes it, and marks over which transport it came.
func (w *web) guard(t transport, next http.Handler) http.Handler {
	return w.screen(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		r, leave, in := w.admit(rw, r)
		if !in {
			return
		}
		defer leave()
		// Proxies that hold a stream back in their buffer would hold progress
		// back with it (MT-07).
		rw.Header().Set("X-Accel-Buffering", "no")
		next.ServeHTTP(rw, r.WithContext(withTransport(r.Context(), t)))
	}))
}

// screen catches panics, and refuses what a browser sends for a foreign page and
// names the server is not reached by (MT-08, T50).
func (w *web) screen(next http.Handler) http.Handler {
	return http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		defer func() {
			fault := recover()
			if err, ok := fault.(error); ok && errors.Is(err, http.ErrAbortHandler) {
				panic(fault) // how a handler hangs up on purpose
			}
			if fault != nil {
				ref := requestID(r.Context())
				w.s.log.Error("panic in a request", "request_id", ref, "panic", panicText(fault), "stack", string(debug.Stack()))
				writeRPCError(rw, http.StatusInternalServerError, nil, mcpgo.INTERNAL_ERROR, "internal error, reference "+ref)
			}
		}()
		host, ours := w.hostAllowed(r)
		switch {
		case !host:
			writeRPCError(rw, http.StatusForbidden, nil, mcpgo.INVALID_REQUEST, "this server is not reached by that Host")
			return
		case !w.originAllowed(r, ours):
			writeRPCError(rw, http.StatusForbidden, nil, mcpgo.INVALID_REQUEST, "pages of that Origin may not call this server")
			return
		}
		if w.crossOrigin(rw, r) {
			return
		}
		next.ServeHTTP(rw, r)
	})
}

// ownPages refuses what a browser sends for a foreign page, to a page of the
// server that asks for nothing else.
func (w *web) ownPages(next http.Handler) http.Handler {
	return http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		if host, ours := w.hostAllowed(r); !host || !w.originAllowed(r, ours) {
			writeStatus(rw, http.StatusForbidden, "forbidden")
			return
		}
		next.ServeHTTP(rw, r)
	})
}

// originAllowed refuses every browser page that is not listed. Programs send no
// Origin, or our own address; that counts only where the address is known to be
// ours, since a page can point a name of its own at us.
func (w *web) originAllowed(r *http.Request, ours bool) bool {
	origins := r.Header.Values("Origin")
	switch {
	case len(origins) == 0:
		return true
	case len(origins) > 1:
		return false
	case ours && strings.EqualFold(origins[0], "https://"+r.Host), ours && r.TLS == nil && strings.EqualFold(origins[0], "http://"+r.Host):
		return true // plain connections may come from a proxy that speaks TLS for us, and from none
	}
	return w.originListed(origins[0])
}

// originListed says whether the operator has named an origin. What could stand for
// more than one page never counts.
func (w *web) originListed(origin string) bool {
	if origin == "" || origin == "null" || strings.Contains(origin, "*") {
		return false
	}
	return slices.ContainsFunc(w.s.options.AllowedOrigins, func(allowed string) bool { return strings.EqualFold(allowed, origin) })
}

// hostAllowed refuses names that a foreign page could have pointed at us. On a
// loopback connection only loopback names are our own, beside those listed.
// ours says that the name is known to be: not merely that none is excluded.
func (w *web) hostAllowed(r *http.Request) (allowed, ours bool) {
	name := hostName(r.Host)
	for _, listed := range w.s.options.AllowedHosts {
		if strings.EqualFold(listed, r.Host) || strings.EqualFold(listed, name) {
			return true, true
		}
	}
	local, ok := r.Context().Value(http.LocalAddrContextKey).(net.Addr)
	if ok && isLoopback(hostName(local.String())) {
		return isLoopback(name), isLoopback(name)
	}
	return len(w.s.options.AllowedHosts) == 0 && name != "", false
}

func hostName(hostPort string) string {
	if host, _, err := net.SplitHostPort(hostPort); err == nil {
		return host
	}
	return strings.Trim(hostPort, "[]")
}

func isLoopback(name string) bool {
	if strings.EqualFold(name, "localhost") {
		return true
	}
	ip, err := netip.ParseAddr(name)
	return err == nil && ip.IsLoopback()
}

// writeRPCError refuses a request in the protocol's own form, so that clients
// can show why.
func writeRPCError(rw http.ResponseWriter, status int, id json.RawMessage, code int, text string) {
	writeRPC(rw, status, rpcError(id, code, text))
}

func mebibytes(n int64) string { return fmt.Sprintf("%.4g MiB", float64(n)/(1<<20)) }
