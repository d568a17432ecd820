package mcp

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"sync"
	"sync/atomic"

	"github.com/mark3labs/mcp-go/server"
)

// The sizes of mcp-go's stdio workers and queue, its largest: our own limit
// (maxCalls) answers before either is full.
const (
	stdioWorkers = 100
	stdioQueue   = 10_000
)

// ServeStdio serves one client over in and out until in ends or ctx does; both
// are no error. Calls under way are then cancelled and what they had started is
// stopped. Nothing but protocol messages is ever written to out.
//
// mcp-go keeps one stdio session for the whole process: serve only one client
// this way.
func (s *Server) ServeStdio(ctx context.Context, in io.Reader, out io.Writer) error {
	ctx = withTransport(ctx, overStdio)
	filter := &stdioFilter{ctx: ctx, in: in, out: out}
	s.stdio.Store(filter)
	stdio := server.NewStdioServer(s.mcp)
	for _, option := range []server.StdioOption{
		server.WithErrorLogger(slog.NewLogLogger(s.log.Handler(), slog.LevelWarn)),
		server.WithWorkerPoolSize(stdioWorkers),
		server.WithQueueSize(stdioQueue),
	} {
		option(stdio)
	}
	err := stdio.Listen(ctx, filter, filter)
	if ctx.Err() != nil || errors.Is(err, io.ErrClosedPipe) {
		return nil //nolint:nilerr // we were asked to end
	}
	return err
}

// stdioFilter keeps the answers to cancelled requests off the wire: the protocol
// wants none, and mcp-go sends one (MT-01). When the client has closed its side
// or the server ends, answers go out as usual.
type stdioFilter struct {
	ctx context.Context
	in  io.Reader
	out io.Writer

	ended atomic.Bool // in is at its end

	mu    sync.Mutex
	drop  map[string]struct{} // ids of cancelled requests, as JSON
	quiet map[string]struct{} // progress tokens of calls that are over, as JSON
}

// Read passes on what the client sends.
func (f *stdioFilter) Read(p []byte) (int, error) {
	n, err := f.in.Read(p)
	if err != nil {
		f.ended.Store(true)
	}
	return n, err
}

// cancelled notes a request whose answer is not to be sent.
func (f *stdioFilter) cancelled(id any) {
	if f == nil || f.ended.Load() || f.ctx.Err() != nil {
		return
	}
	key, err := json.Marshal(id)
	if err != nil {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.drop == nil {
		f.drop = map[string]struct{}{}
	}
	f.drop[string(key)] = struct{}{}
}

// Write sends one message; mcp-go writes each with one call.
func (f *stdioFilter) Write(p []byte) (int, error) {
	if f.dropped(p) {
		return len(p), nil
	}
	if _, err := f.out.Write(recode(p)); err != nil {
		return 0, err
	}
	return len(p), nil
}

// maxQuiet bounds the tokens that are kept: a late notice is late by moments.
const maxQuiet = 1024

// progress notes whether a call reports under a token, or is over. mcp-go writes notices
// from another goroutine than results, so one can come late whoever waits for it (MT-09).
func (f *stdioFilter) progress(token any, over bool) {
	key, err := json.Marshal(token)
	if f == nil || err != nil {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case !over:
		delete(f.quiet, string(key))
	case f.quiet == nil || len(f.quiet) >= maxQuiet:
		f.quiet = map[string]struct{}{string(key): {}}
	default:
		f.quiet[string(key)] = struct{}{}
	}
}

// late says whether a message is progress of a call that is over. f.mu is held.
func (f *stdioFilter) late(message []byte) bool {
	if len(f.quiet) == 0 || !bytes.Contains(message, []byte(`"notifications/progress"`)) {
		return false
	}
	var notice struct {
		Method string `json:"method"`
		Params struct {
			Token json.RawMessage `json:"progressToken"`
		} `json:"params"`
	}
	if json.Unmarshal(message, &notice) != nil || notice.Method != "notifications/progress" {
		return false
	}
	_, over := f.quiet[string(bytes.TrimSpace(notice.Params.Token))]
	return over
}

func (f *stdioFilter) dropped(message []byte) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.late(message) {
		return true
	}
	if len(f.drop) == 0 {
		return false
	}
	var head struct {
		ID     json.RawMessage `json:"id"`
		Method string          `json:"method"`
	}
	if json.Unmarshal(message, &head) != nil || head.Method != "" {
		return false
	}
	key := string(bytes.TrimSpace(head.ID))
	_, drop := f.drop[key]
	delete(f.drop, key)
	return drop
}
