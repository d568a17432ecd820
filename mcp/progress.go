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
// call (MT-07, MT-09). settle is how long the call then waits before it answers:
// mcp-go writes notices and results from different goroutines, and a notice
// that comes after the result breaks clients.
type pace struct{ step, quiet, settle time.Duration }

func defaultPace() pace {
	return pace{step: time.Second, quiet: 5 * time.Second, settle: 10 * time.Millisecond}
}

// progress tells a client that asked for it how far its call is. A nil progress
// belongs to a client that did not ask, and says nothing.
type progress struct {
	token   mcpgo.ProgressToken
	send    func(params map[string]any) error
	pace    pace
	started time.Time
	stop    chan struct{}
	done    chan struct{}

	mu       sync.Mutex
	describe func() string
}

// startProgress begins to report on a call when its request has a progress
// token. finish ends it.
func startProgress(ctx context.Context, s *server.MCPServer, request mcpgo.CallToolRequest, pace pace) *progress {
	meta := request.Params.Meta
	if meta == nil {
		return nil
	}
	switch meta.ProgressToken.(type) {
	case string, float64:
	default:
		return nil // the protocol knows only strings and numbers
	}
	p := &progress{
		token: meta.ProgressToken, pace: pace, started: time.Now(),
		send: func(params map[string]any) error {
			return s.SendNotificationToClient(ctx, "notifications/progress", params)
		},
		stop: make(chan struct{}), done: make(chan struct{}),
		describe: func() string { return "working" },
	}
	go p.run()
	return p
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
		sent     bool
	)
	for {
		select {
		case <-p.stop:
			if sent {
				time.Sleep(p.pace.settle)
			}
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
			// A full channel or a client that has gone is no reason to fail the call.
			_ = p.send(map[string]any{
				"progressToken": p.token,
				"progress":      elapsed.Truncate(time.Millisecond).Seconds(),
				"message":       escape(text),
			})
			last, lastText, lastSent, sent = elapsed, text, now, true
		}
	}
}
