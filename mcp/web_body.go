package mcp

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"mime"
	"net/http"
	"os"
	"strings"
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

// takeMessage reads the message of a POST and counts it against its principal's rate: a
// small one when it has been read, since what it says decides (R29); a larger one before,
// so that nothing is read and taken apart for whoever is over the rate. What cannot be
// served is answered here. release gives back the message's room in memory, and must be
// called when nothing needs the message any more.
func (w *web) takeMessage(rw http.ResponseWriter, r *http.Request) (_ *http.Request, m message, release func(), ok bool) {
	held := &share{of: w.bodies, owner: w.s.callerOf(r.Context()).principalName()}
	defer func() {
		if !ok {
			held.release()
		}
	}()
	body, large, ok := w.readBody(rw, r, held)
	if !ok {
		return nil, m, nil, false
	}
	if n := valuesIn(body); n > smallValues && n <= maxValues && json.Valid(body) { // any other is not taken apart
		if err := held.more(int64(n) * valueCost); err != nil {
			refuseBusy(rw, nil, err)
			return nil, m, nil, false
		}
	}
	m, fault := readMessage(body)
	if !large {
		if r, ok = w.pace(rw, r, &m); !ok {
			return nil, m, nil, false
		}
	}
	if fault != nil {
		refuse(rw, &m, http.StatusBadRequest, fault.code, fault.text)
		return nil, m, nil, false
	}
	return r.WithContext(context.WithValue(r.Context(), shareKey{}, held)), m, held.release, true
}

// readBody reads a body within the limits. What is too large, too slow or no JSON by
// its own account is answered here. A large one has been counted against the rate.
func (w *web) readBody(rw http.ResponseWriter, r *http.Request, held *share) (_ []byte, large, ok bool) {
	if fault := formFault(r.Header); fault != "" {
		writeRPCError(rw, http.StatusUnsupportedMediaType, nil, mcpgo.INVALID_REQUEST, fault)
		return nil, false, false
	}
	limit := w.s.options.MaxBody
	if r.ContentLength > limit {
		w.tooLarge(rw)
		return nil, false, false
	}
	body, buf := http.MaxBytesReader(rw, r.Body, limit), new(bytes.Buffer)
	_, err := io.CopyN(buf, body, smallBody+1)
	if large = err == nil; large {
		if !w.admitLarge(rw, r, held, buf) {
			return nil, true, false
		}
		_, err = buf.ReadFrom(body)
		held.shrink(int64(buf.Len()))
	}
	var over *http.MaxBytesError
	switch {
	case err == nil, errors.Is(err, io.EOF): // as CopyN tells a short body
	case errors.As(err, &over):
		w.tooLarge(rw)
		return nil, large, false
	case errors.Is(err, os.ErrDeadlineExceeded):
		rw.Header().Set("Connection", "close")
		writeRPCError(rw, http.StatusRequestTimeout, nil, mcpgo.INVALID_REQUEST, "the request body did not arrive in time")
		return nil, large, false
	default:
		writeRPCError(rw, http.StatusBadRequest, nil, mcpgo.PARSE_ERROR, "the request body did not arrive whole")
		return nil, large, false
	}
	_ = http.NewResponseController(rw).SetReadDeadline(time.Time{}) // the call itself may take longer
	return buf.Bytes(), large, true
}

// admitLarge counts a body that is not small against the rate, and waits for room for
// it: for as long as a body may take to arrive, which begins anew then.
func (w *web) admitLarge(rw http.ResponseWriter, r *http.Request, held *share, buf *bytes.Buffer) bool {
	if _, ok := w.pace(rw, r, nil); !ok {
		return false
	}
	size := r.ContentLength
	if size < 0 {
		size = w.s.options.MaxBody
	}
	ctx, cancel := context.WithTimeout(r.Context(), w.s.bodyTime)
	defer cancel()
	defer context.AfterFunc(w.ctx, cancel)()
	if err := held.wait(ctx, size); err != nil {
		refuseBusy(rw, nil, err)
		return false
	}
	_ = http.NewResponseController(rw).SetReadDeadline(time.Now().Add(w.s.bodyTime))
	if r.ContentLength > 0 {
		buf.Grow(int(size) - buf.Len() + bytes.MinRead) // no growing, which would take twice as much
	}
	return true
}

// formFault says why a body cannot be what is read here, JSON in UTF-8 and as it is; empty
// when it can. A page can post text and forms to any address without asking (T50).
func formFault(h http.Header) string {
	kinds := h.Values("Content-Type")
	if len(kinds) != 1 {
		return "one Content-Type is needed, application/json"
	}
	kind, options, err := mime.ParseMediaType(kinds[0])
	if err != nil || kind != "application/json" {
		return "Content-Type must be application/json"
	}
	if charset, given := options["charset"]; given && !strings.EqualFold(charset, "utf-8") {
		return "JSON is read in UTF-8 alone"
	}
	for _, encoding := range h.Values("Content-Encoding") {
		if encoding != "" && !strings.EqualFold(encoding, "identity") {
			return "Content-Encoding is not taken: send the body as it is"
		}
	}
	return ""
}

func (w *web) tooLarge(rw http.ResponseWriter) {
	rw.Header().Set("Connection", "close")
	writeRPCError(rw, http.StatusRequestEntityTooLarge, nil, mcpgo.INVALID_REQUEST,
		"the request body is larger than "+mebibytes(w.s.options.MaxBody)+": send large files in pieces (upload with append)")
}

// watchedBody is a request's body that knows whether it has been read to its end.
type watchedBody struct {
	io.ReadCloser
	expected bool // its client waits for a word before it sends it
	ended    bool
}

// Read reads on.
func (b *watchedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	b.ended = b.ended || err == io.EOF
	return n, err
}

// leave makes ready for a refusal: what was sent with the request is taken in, so that
// its connection can be used on. When the body is not whole by then the connection is
// closed after the answer, so that whoever sends slowly holds neither up (T53).
func (b *watchedBody) leave(rw http.ResponseWriter) {
	if b == nil || b.ended {
		return
	}
	ctl := http.NewResponseController(rw)
	if !b.expected {
		_ = ctl.SetReadDeadline(time.Now().Add(restTime))
		if _, _ = io.Copy(io.Discard, io.LimitReader(b, maxUnread)); b.ended {
			_ = ctl.SetReadDeadline(time.Time{})
			return
		}
	}
	rw.Header().Set("Connection", "close")
	_ = ctl.SetReadDeadline(time.Now()) // nothing reads on
}
