package mcp

import (
	"errors"
	"io"
	"mime"
	"net/http"
	"os"
	"time"

	mcpgo "github.com/mark3labs/mcp-go/mcp"
)

// maxUnread is how large a body may be that nothing here reads.
const maxUnread = 64 << 10

// dropBody takes in the body of a request that needs none, before the request
// is served: the time for it must be over before a stream begins.
func (w *web) dropBody(rw http.ResponseWriter, r *http.Request) bool {
	n, err := io.Copy(io.Discard, io.LimitReader(r.Body, maxUnread+1))
	if err != nil || n > maxUnread {
		rw.Header().Set("Connection", "close")
		status, text := http.StatusRequestTimeout, "the request body did not arrive in time"
		if err == nil {
			status, text = http.StatusRequestEntityTooLarge, "such a request needs no body"
		}
		writeRPCError(rw, status, nil, mcpgo.INVALID_REQUEST, text)
		return false
	}
	_ = http.NewResponseController(rw).SetReadDeadline(time.Time{})
	r.Body = http.NoBody
	return true
}

// readBody reads a message within the limits. What is too large, too slow or no
// JSON by its own account is answered here.
func (w *web) readBody(rw http.ResponseWriter, r *http.Request) ([]byte, bool) {
	kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if err != nil || kind != "application/json" {
		// A page can post text and forms to any address without asking (T50).
		writeRPCError(rw, http.StatusUnsupportedMediaType, nil, mcpgo.INVALID_REQUEST, "Content-Type must be application/json")
		return nil, false
	}
	limit := w.s.options.MaxBody
	if r.ContentLength > limit {
		w.tooLarge(rw)
		return nil, false
	}
	body, err := io.ReadAll(http.MaxBytesReader(rw, r.Body, limit))
	var over *http.MaxBytesError
	switch {
	case errors.As(err, &over):
		w.tooLarge(rw)
		return nil, false
	case errors.Is(err, os.ErrDeadlineExceeded):
		rw.Header().Set("Connection", "close")
		writeRPCError(rw, http.StatusRequestTimeout, nil, mcpgo.INVALID_REQUEST, "the request body did not arrive in time")
		return nil, false
	case err != nil:
		writeRPCError(rw, http.StatusBadRequest, nil, mcpgo.PARSE_ERROR, "the request body did not arrive whole")
		return nil, false
	}
	_ = http.NewResponseController(rw).SetReadDeadline(time.Time{}) // the call itself may take longer
	return body, true
}

func (w *web) tooLarge(rw http.ResponseWriter) {
	rw.Header().Set("Connection", "close")
	writeRPCError(rw, http.StatusRequestEntityTooLarge, nil, mcpgo.INVALID_REQUEST,
		"the request body is larger than "+mebibytes(w.s.options.MaxBody)+": send large files in pieces (upload with append)")
}
