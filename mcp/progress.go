package mcp

import (
	"context"
	"sync"
	"time"

	mcpgo "github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"
)

// pace is how often progress goes out: news at most every step, and a sign of
// life at least every quiet, for clients and proxies that give up on a silent
// call (MT-07, MT-09).
type pace struct{ step, quiet time.Duration }

func defaultPace() pace { return pace{step: time.Second, quiet: 5 * time.Second} }

// progress tells a client that asked for it how far its call is. A nil progress
// belongs to a client that did not ask, and says nothing.
type progress struct {
	token   any
	send    func(params map[string]any) error
	pace    pace
	started time.Time
	stop    chan struct{}
	done    chan struct{}

	mu       sync.Mutex
	describe func() string
}

// startProgress begins to report on a call when its request has a progress
// token. finish ends it. Reports are written by the progress' own goroutine to the
// call's own response, one after the other: none overtakes another, and none is on
// its way when finish has returned.
func startProgress(ctx context.Context, s *server.MCPServer, request mcpgo.CallToolRequest, pace pace) *progress {
	token, ok := progressToken(ctx, request)
	if !ok {
		return nil
	}
	p := &progress{
		token: token, pace: pace, started: time.Now(),
		send: func(params map[string]any) error {
			if x := exchangeOf(ctx); x != nil {
				return x.notify("notifications/progress", params)
			}
			return s.SendNotificationToClient(ctx, "notifications/progress", params)
		},
		stop: make(chan struct{}), done: make(chan struct{}),
		describe: func() string { return "working" },
	}
	go p.run()
	return p
}

// progressToken is the request's token, as it was sent: a number of any size keeps
// its digits.
func progressToken(ctx context.Context, request mcpgo.CallToolRequest) (any, bool) {
	if x := exchangeOf(ctx); x != nil {
		_, ok := idKey(x.token)
		return x.token, ok
	}
	if request.Params.Meta == nil {
		return nil, false
	}
	switch token := request.Params.Meta.ProgressToken.(type) {
	case string, float64:
		return token, true
	default:
		return nil, false // the protocol knows only strings and numbers
	}
}

// say sets what is told next. text is called from the progress' own goroutine
// and must not block.
func (p *progress) say(text func() string) {
	if p == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.describe = text
}

// finish ends the reports. After it has returned nothing more is on its way.
func (p *progress) finish() {
	if p == nil {
		return
	}
	close(p.stop)
	<-p.done
}

func (p *progress) run() {
	defer close(p.done)
	ticker := time.NewTicker(p.pace.step)
	defer ticker.Stop()
	var (
		last     time.Duration
		lastText string
		lastSent = p.started
	)
	for {
		select {
		case <-p.stop:
			return
		case now := <-ticker.C:
			p.mu.Lock()
			describe := p.describe
			p.mu.Unlock()
			text := describe()
			if text == lastText && now.Sub(lastSent) < p.pace.quiet {
				continue
			}
			elapsed := max(time.Since(p.started), last+time.Millisecond)
			// A client that has gone ends the call elsewhere.
			_ = p.send(map[string]any{
				"progressToken": p.token,
				"progress":      elapsed.Truncate(time.Millisecond).Seconds(),
				"message":       escape(text),
			})
			last, lastText, lastSent = elapsed, text, now
		}
	}
}
