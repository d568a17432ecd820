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
	count    *count // nil: seconds are counted
}

// count is how far a call has come in a unit of its tool's own. total is 0 where it
// is not known.
type count struct{ done, total float64 }

// countStep is how far a sign of life moves a count on: its numbers have to rise
// each time, and mean the tool's.
const countStep = 1e-6

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

// counted is say for a tool that counts by itself.
func (p *progress) counted(c count, text func() string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.describe, p.count = text, &c
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
		last     float64
		lastText string
		lastSent = p.started
	)
	for {
		select {
		case <-p.stop:
			return
		case now := <-ticker.C:
			p.mu.Lock()
			describe, count := p.describe, p.count
			p.mu.Unlock()
			text := describe()
			if news := text != lastText || count != nil && count.done > last; !news && now.Sub(lastSent) < p.pace.quiet {
				continue
			}
			report := map[string]any{"progressToken": p.token, "message": escape(text)}
			if count == nil {
				last = max(time.Since(p.started).Truncate(time.Millisecond).Seconds(), last+0.001)
			} else {
				last = max(count.done, last+countStep)
				if count.total > 0 {
					report["total"] = count.total
				}
			}
			report["progress"] = last
			// A client that has gone ends the call elsewhere.
			_ = p.send(report)
			lastText, lastSent = text, now
		}
	}
}
