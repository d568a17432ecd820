package mcp

import (
	"context"
	"math"
	"net/http"
	"strconv"
	"sync"
	"time"

	mcpgo "github.com/mark3labs/mcp-go/mcp"
	"golang.org/x/time/rate"

	"caisson/sandbox"
)

// The bounds of one principal that no setting names.
const (
	// maxStreams is how many streams may be open: what a client listens on, one
	// or two a client.
	maxStreams = 256
	// maxOwnerCalls is how many calls may be under way, of all its clients.
	maxOwnerCalls = 256
	// leastBurst is how many messages may come at once, however low the rate.
	leastBurst = 10
)

// principals keeps what the server knows of each principal while it is there: its
// pace and the requests that are being served.
type principals struct {
	perMinute int         // of a principal without a rate of its own
	nobody    refusalPace // where there are no principals

	mu     sync.Mutex
	byName map[string]*guest
}

type guest struct {
	pace    *rate.Limiter
	rate    int // messages a minute that pace was made for
	live    map[*request]struct{}
	streams int
	refused refusalPace // of its calls
}

// request is one that is being served.
type request struct {
	end    context.CancelCauseFunc
	stream bool
}

// errCut is why a request ends whose principal is none any more.
var errCut = sandbox.Errorf("serve", sandbox.KindCancelled, "the principal may not call any more")

// guest returns what is known of a principal. ps.mu is held.
func (ps *principals) guest(p *Principal) *guest {
	g := ps.byName[p.Name]
	if g == nil {
		if ps.byName == nil {
			ps.byName = map[string]*guest{}
		}
		g = &guest{live: map[*request]struct{}{}}
		ps.byName[p.Name] = g
	}
	perMinute := p.RatePerMinute
	if perMinute == 0 {
		perMinute = ps.perMinute
	}
	if g.rate != perMinute {
		burst := max(perMinute/10, min(perMinute, leastBurst))
		g.rate, g.pace = perMinute, rate.NewLimiter(rate.Limit(float64(perMinute)/60), burst)
	}
	return g
}

// enter counts a request in. The returned context ends with the principal's
// right to call; leave must be called at the request's end.
func (ps *principals) enter(ctx context.Context, p *Principal, stream bool) (_ context.Context, leave func(), ok bool) {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	g := ps.guest(p)
	if stream && g.streams >= maxStreams {
		return nil, nil, false
	}
	ctx, end := context.WithCancelCause(ctx)
	stop := func() {}
	if stream && !p.Until.IsZero() {
		ctx, stop = context.WithDeadlineCause(ctx, p.Until, errCut)
	}
	mine := &request{end: end, stream: stream}
	g.live[mine] = struct{}{}
	if stream {
		g.streams++
	}
	return ctx, func() {
		stop()
		end(nil)
		ps.mu.Lock()
		defer ps.mu.Unlock()
		delete(g.live, mine)
		if stream {
			g.streams--
		}
	}, true
}

// take counts one message, and says how long to wait when there have been too
// many.
func (ps *principals) take(p *Principal) (wait time.Duration) {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	g := ps.guest(p)
	now := time.Now()
	next := g.pace.ReserveN(now, 1)
	if wait = next.DelayFrom(now); wait > 0 {
		next.CancelAt(now)
	}
	return wait
}

// refusals is the pace at which refusals of a principal's calls are recorded; nil
// stands for whoever calls where there are no principals.
func (ps *principals) refusals(p *Principal) *refusalPace {
	if p == nil {
		return &ps.nobody
	}
	ps.mu.Lock()
	defer ps.mu.Unlock()
	return &ps.guest(p).refused
}

// cut ends what is being served for some principals.
func (ps *principals) cut(names []string) {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	for _, name := range names {
		if g := ps.byName[name]; g != nil {
			for r := range g.live {
				r.end(errCut)
			}
			delete(ps.byName, name)
		}
	}
}

type overRateKey struct{}

// overRate is how long a tool call has to wait that came too soon; 0: it did not.
// The tool answers it, in a form that a model sees.
func overRate(ctx context.Context) time.Duration {
	wait, _ := ctx.Value(overRateKey{}).(time.Duration)
	return wait
}

// tooFast is the answer to such a call.
func tooFast(wait time.Duration) error {
	err := sandbox.Errorf("call tool", sandbox.KindLimit, "too many requests in a minute; wait %s", wait.Round(time.Millisecond))
	err.RetryAfter = wait
	return err
}

// pace counts a message against its principal's rate, judged by what the body
// says and no header (R29); nil stands for a request without one. What takes load
// off is never refused, and a tool call is answered by the tool.
func (w *web) pace(rw http.ResponseWriter, r *http.Request, m *message) (*http.Request, bool) {
	p := principalOf(r.Context())
	if p == nil {
		return r, true
	}
	wait := w.s.principals.take(p)
	switch {
	case wait == 0, m != nil && m.method == "notifications/cancelled":
		return r, true
	case m != nil && m.isRequest() && m.method == string(mcpgo.MethodToolsCall):
		return r.WithContext(context.WithValue(r.Context(), overRateKey{}, wait)), true
	}
	rw.Header().Set("Retry-After", strconv.Itoa(int(math.Ceil(wait.Seconds()))))
	refuse(rw, m, http.StatusTooManyRequests, rpcBusy, "too many requests in a minute; wait "+wait.Round(time.Millisecond).String())
	return nil, false
}
