package mcp

import (
	"context"
	"fmt"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/mark3labs/mcp-go/server"

	"caisson/sandbox"
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

// BodiesWithin sets how long a request's body may take to arrive.
func (s *Server) BodiesWithin(d time.Duration) { s.bodyTime = d }

// DrainWithin sets how long the end waits for a stdio client that does not read.
func (s *Server) DrainWithin(d time.Duration) { s.stdioDrain = d }

// ExpandAtMost sets how large a compressed archive may become.
func (s *Server) ExpandAtMost(n int64) { s.maxExpanded = n }

// ClientSessions is how many HTTP client sessions there are.
func (s *Server) ClientSessions() int { return s.web.streamable.count() }

// SSEClients is how many SSE clients there are.
func (s *Server) SSEClients() int { return s.web.sse.count() }

// Quickly shortens the clocks of streams. It must be called before Handler.
func (s *Server) Quickly(heartbeat, write time.Duration) { s.heartbeat, s.writeTime = heartbeat, write }

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

// CheckExcerpt takes an excerpt of a spool that was given all and holds it
// against what every excerpt must be.
func CheckExcerpt(t *testing.T, spool *sandbox.Spool, all string, from, limit int64, onwards, ended bool) {
	t.Helper()
	s := newSource(spool, sandbox.Stdout, from, onwards, ended, limit)
	x := s.take(limit)
	at := s.from
	gaps := x.omitted
	fault := func(format string, args ...any) {
		t.Helper()
		t.Fatalf("of %d bytes from %d, limit %d, onwards %v, ended %v: %s\n%+v", len(all), from, limit, onwards, ended, fmt.Sprintf(format, args...), x)
	}
	for _, p := range x.pieces {
		for len(gaps) > 0 && gaps[0].Offset == at && at < p.offset {
			at += gaps[0].Bytes
			gaps = gaps[1:]
		}
		if p.offset != at || string(p.data) != all[p.offset:p.end()] {
			fault("a piece at %d where %d is next", p.offset, at)
		}
		at = p.end()
	}
	if onwards && at != x.next {
		fault("next is %d after %d", x.next, at)
	}
	for _, gap := range gaps {
		if gap.Offset != at {
			fault("a gap at %d where %d is next", gap.Offset, at)
		}
		at += gap.Bytes
	}
	content := x.content()
	switch waiting := int64(len(all)) - at; {
	case x.binary && at != int64(len(all)), !x.binary && (waiting > 3 || ended && waiting != 0):
		fault("%d bytes are unaccounted for", waiting)
	case !onwards && x.next != at:
		fault("next is %d, not %d", x.next, at)
	case !x.binary && !utf8.ValidString(content):
		fault("a broken character")
	case int64(utf8.RuneCountInString(content)) > limit:
		fault("%d characters", utf8.RuneCountInString(content))
	}
}

// Grep searches stdout from an offset on; over is asked before each line but
// the first.
func Grep(spool *sandbox.Spool, pattern string, from, chars int64, over func() bool) (found string, next int64, cut bool) {
	return grepIn(newTurns(), spool, pattern, from, chars, over)
}

// Grep searches stdout among other searches.
func (s Searches) Grep(spool *sandbox.Spool, pattern string, over func() bool) (found string, next int64, cut bool) {
	return grepIn(s.t, spool, pattern, 0, 1000, over)
}

func grepIn(t *turns, spool *sandbox.Spool, pattern string, from, chars int64, over func() bool) (found string, next int64, cut bool) {
	re, err := compile("grep", pattern)
	if err != nil {
		return err.Error(), 0, false
	}
	s := newSource(spool, sandbox.Stdout, from, true, true, chars)
	f := &lineFilter{pattern: re, over: over, search: &search{turns: t}}
	s.grep(f, chars)
	x := s.takeMatches(chars)
	return x.content(), x.next, f.cut
}

// GrepGap searches a stdout that has ended, and tells how many bytes before the next
// read are said to be missing.
func GrepGap(spool *sandbox.Spool, pattern string, from, chars int64) (next, missing int64) {
	re, err := compile("grep", pattern)
	if err != nil {
		return -1, -1
	}
	s := newSource(spool, sandbox.Stdout, from, true, true, chars)
	s.grep(&lineFilter{pattern: re, over: func() bool { return false }, search: &search{turns: newTurns()}}, chars)
	x := s.takeMatches(chars)
	for _, o := range x.omitted {
		if o.Offset < x.next && !o.Recoverable {
			missing += o.Bytes
		}
	}
	return x.next, missing
}

// LookTwice lets a wait_for pattern look at a spool whose reader has no more
// time, and then at one whose reader has; it tells how many bytes the first
// look took in.
func LookTwice(ctx, ended context.Context, spool *sandbox.Spool, pattern string) (first int64, found bool) {
	m, err := newMatcher(&pattern, positions{}, &search{turns: newTurns()})
	if err != nil {
		return -1, false
	}
	m.look(ended, nil, spool)
	first = m.next[0]
	return first, m.look(ctx, nil, spool)
}

// Notify reports progress the way our own tools do.
func Notify(ctx context.Context, params map[string]any) error {
	return exchangeOf(ctx).notify("notifications/progress", params)
}

// ToolLabels is how many labels n tools have in the metrics.
func ToolLabels(n int) int {
	m := NewMetrics("")
	seen := map[string]bool{}
	for i := range n {
		seen[m.tools.of(fmt.Sprint(i))] = true
	}
	return len(seen)
}

// ListWithin sets how long a client's first list of tools waits for toolkits.
func (s *Server) ListWithin(d time.Duration) { s.declared.wait = d }

// PatternCost is how many instructions a pattern of a client is taken to have, and
// how many bytes are matched with it at once, at most.
func PatternCost(text string) (size, part int, err error) {
	p, err := compile("grep", text)
	if err != nil {
		return 0, 0, err
	}
	return p.size, p.part(maxLine), nil
}

// Searches is a server's sharing out of processors among searches.
type Searches struct{ t *turns }

// NewSearches is that of a machine.
func NewSearches(processors int) Searches { return Searches{turnsOf(processors)} }

// Searches is the server's own.
func (s *Server) Searches() Searches { return Searches{s.turns} }

// Places is how many searches there may be at a time, and how many of one owner.
func (s Searches) Places() (all, each int) { return s.t.places, s.t.each }

// Begin takes a place for an owner's search; false: over came first.
func (s Searches) Begin(owner string, over <-chan struct{}) (rest func(), ok bool) {
	x := &search{turns: s.t, owner: sandbox.Owner{Name: owner}}
	return x.rest, x.on(over, nil)
}

// BodyBytes is how much memory has been taken for bodies, and whether somebody waits
// for some.
func (s *Server) BodyBytes() (taken int64, waiting bool) {
	b := s.web.bodies
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.taken, b.freed != nil
}

// BodyRoom sets how much memory bodies have. It must be called after Handler.
func (s *Server) BodyRoom(n int64) {
	s.web.bodies.mu.Lock()
	defer s.web.bodies.mu.Unlock()
	s.web.bodies.room = n
}

// ValuesIn counts the members and elements of a JSON text.
func ValuesIn(raw string) int { return valuesIn([]byte(raw)) }
