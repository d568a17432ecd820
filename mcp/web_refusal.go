package mcp

import (
	"net/http"
	"strings"

	mcpgo "github.com/mark3labs/mcp-go/mcp"
)

// writeRPC answers a request with a message that is ready.
func writeRPC(rw http.ResponseWriter, status int, message []byte) {
	rw.Header().Set("Content-Type", "application/json")
	rw.WriteHeader(status)
	_, _ = rw.Write(message) // a client that has gone needs no answer
}

// refuseSession answers a request whose session is not alive, so that its client
// starts over (MT-06).
func refuseSession(rw http.ResponseWriter, m *message) {
	refuse(rw, m, http.StatusNotFound, mcpgo.INVALID_REQUEST, "no such client session (any more): call initialize again")
}

func refuseNoSession(rw http.ResponseWriter, m *message) {
	refuse(rw, m, http.StatusBadRequest, mcpgo.INVALID_REQUEST, headerSession+" header is missing: call initialize first")
}

func refuseVersion(rw http.ResponseWriter, m *message, version string) {
	refuse(rw, m, http.StatusBadRequest, mcpgo.INVALID_REQUEST,
		"unsupported protocol version "+escape(version)+"; this server speaks "+strings.Join(ProtocolVersions(), ", "))
}

// refuseBusy answers a client that there is no room for.
func refuseBusy(rw http.ResponseWriter, m *message, err error) {
	rw.Header().Set("Retry-After", "30")
	refuse(rw, m, http.StatusServiceUnavailable, rpcBusy, err.Error())
}

func refuseMethod(rw http.ResponseWriter, allowed string) {
	rw.Header().Set("Allow", allowed)
	refuse(rw, nil, http.StatusMethodNotAllowed, mcpgo.INVALID_REQUEST, "this address takes "+allowed)
}

func refuse(rw http.ResponseWriter, m *message, status, code int, text string) {
	if m == nil {
		m = &message{}
	}
	writeRPC(rw, status, rpcError(m.id, code, text))
}
