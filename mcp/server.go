package mcp

import (
	"context"
	_ "embed"
	"errors"
	"log/slog"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	mcpgo "github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"

	"caisson/sandbox"
)

// instructions is what a client gives its model at the start.
//
//go:embed instructions.md
var instructions string

// Options is what a Server is made of.
type Options struct {
	Manager *sandbox.Manager // nil only together with SetupError
	Owner   string           // whose the sessions are, on stdio and without principals
	Version string
	Log     *slog.Logger // nil: nothing is logged

	// SetupError says what is wrong with the settings. The server then starts
	// all the same and says so, with the mend, in every tool result: a stdio
	// client shows its user a failed tool, never a failed start.
	SetupError error

	// Authenticator tells who makes an HTTP request; nil: nobody is asked, and all is Owner's.
	Authenticator Authenticator
	RatePerMinute int          // messages of a principal without a rate of its own; 0: 600
	Metadata      http.Handler // served below /.well-known/oauth-protected-resource, to anybody; nil: nothing is
	Images        []string     // that are offered when a client completes an image's name; patterns among them are not

	// Toolbox runs the tools of a manifest, which are listed beside the built-in
	// ones; nil: there is none. The server does not close it.
	Toolbox Toolbox

	AllowedOrigins []string                    // browsers' origins that may call; any other is refused
	AllowedHosts   []string                    // names the server is reached by; empty: any, but only loopback names on loopback
	MaxBody        int64                       // of an HTTP request, in bytes; 0: 32 MiB
	Ready          func(context.Context) error // what /readyz asks; nil: always ready

	Audit       *AuditLog // nil: the audit records go to Log
	Metrics     *Metrics  // nil: some that nobody reads
	OpenMetrics bool      // Handler serves /metrics too, to anyone: for a server that only its own machine reaches
}

// whole returns the options with a default for each that was left out.
func (o Options) whole() Options {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.MaxBody <= 0 {
		o.MaxBody = 32 << 20
	}
	if o.RatePerMinute <= 0 {
		o.RatePerMinute = 600
	}
	if o.Audit == nil {
		o.Audit = &AuditLog{log: o.Log}
	}
	if o.Metrics == nil {
		o.Metrics = NewMetrics(o.Version)
	}
	return o
}

// Server is the MCP face: the tools and resources, over every transport. It may
// be used concurrently; ServeStdio serves one client at a time.
type Server struct {
	manager *sandbox.Manager
	owner   string
	log     *slog.Logger
	setup   error
	options Options

	pace        pace
	callLimit   time.Duration
	sessionIdle time.Duration // of an HTTP client session
	heartbeat   time.Duration // on HTTP streams that are open and quiet
	writeTime   time.Duration // for a piece of an HTTP response to be taken in
	bodyTime    time.Duration // for an HTTP request's body to arrive
	stdioDrain  time.Duration // for a stdio client to read its last answers
	maxExpanded int64         // of a compressed archive, in bytes

	mcp      *server.MCPServer
	builtin  []server.ServerTool
	declared declared

	audit       *AuditLog
	refusalPace refusalPace
	metrics     *Metrics
	owners      sync.Map // the label of an owner's principal, by Owner.Hash
	halted      atomic.Bool

	work sync.WaitGroup // sessions of clients that have left, being destroyed

	calls      calls
	principals principals
	streams    streams
	defaults   defaults
	cursors    cursors
	turns      *turns // of searches

	webOnce sync.Once
	web     *web                // made by Handler
	serving atomic.Pointer[web] // the same, for who may look at any time
}

// New makes a server. It panics when a tool of ours cannot be described, which
// is a fault of the program and not of its settings.
func New(o Options) *Server {
	o = o.whole()
	s := &Server{
		principals: principals{perMinute: o.RatePerMinute}, audit: o.Audit, metrics: o.Metrics,
		manager: o.Manager, owner: o.Owner, log: o.Log, setup: o.SetupError,
		options: o, declared: declared{box: o.Toolbox, wait: listWait}, pace: defaultPace(), callLimit: callLimit, sessionIdle: sessionIdle, bodyTime: bodyTime,
		heartbeat: heartbeat, writeTime: writeTime, maxExpanded: maxExpanded,
		stdioDrain: stdioDrain, turns: newTurns(),
	}
	if s.manager == nil && s.setup == nil {
		s.setup = errors.New("the server has no engine")
	}
	s.mcp = server.NewMCPServer("caisson", o.Version,
		server.WithTitle("Caisson"),
		server.WithDescription("Hardened containers for running code and commands, on a remote engine."),
		server.WithInstructions(instructions),
		server.WithToolCapabilities(o.Toolbox != nil), // the built-in tools never change
		server.WithResourceCapabilities(true, false),
		server.WithPromptCapabilities(false),
		server.WithPromptCompletionProvider(completions{s}),
		server.WithResourceCompletionProvider(completions{s}),
		server.WithCompletions(),
		server.WithLogging(),
		cacheFor(mcpgo.MethodServerDiscover, 5*time.Minute, mcpgo.CacheScopePublic),
		cacheFor(mcpgo.MethodPromptsList, time.Hour, mcpgo.CacheScopePublic),
		cacheFor(mcpgo.MethodResourcesList, time.Hour, mcpgo.CacheScopePublic),
		cacheFor(mcpgo.MethodResourcesTemplatesList, time.Hour, mcpgo.CacheScopePublic),
		cacheFor(mcpgo.MethodToolsList, time.Minute, mcpgo.CacheScopePrivate), // differs by principal, and as toolkits come and go
		cacheFor(mcpgo.MethodResourcesRead, 0, mcpgo.CacheScopePrivate),
		server.WithHooks(s.hooks()),
		server.WithToolFilter(s.permitted),
		server.WithToolFilter(s.ordered),
	)
	for _, t := range s.allTools() {
		entry, err := s.entry(t)
		if err != nil {
			panic(err)
		}
		s.builtin = append(s.builtin, entry)
	}
	s.mcp.AddTools(s.builtin...)
	s.follow()
	s.addResources()
	s.addPrompts()
	s.metrics.server.Store(s)
	s.addFixtures()
	return s
}

// cacheFor says for how long a client may keep an answer, and whether it is the same
// for everybody.
func cacheFor(method mcpgo.MCPMethod, ttl time.Duration, scope mcpgo.CacheScope) server.ServerOption {
	return server.WithMethodCacheHints(method, ttl.Milliseconds(), scope)
}

// hooks has the calls recorded that mcp-go answers itself, and lets a list of tools
// wait for those that are not known yet.
func (s *Server) hooks() *server.Hooks {
	h := &server.Hooks{}
	h.AddOnError(func(ctx context.Context, _ any, method mcpgo.MCPMethod, _ any, err error) {
		s.answeredByLibrary(ctx, method, err)
	})
	h.AddBeforeListTools(func(ctx context.Context, _ any, _ *mcpgo.ListToolsRequest) { s.beforeList(ctx) })
	h.AddAfterListTools(func(_ context.Context, _ any, _ *mcpgo.ListToolsRequest, list *mcpgo.ListToolsResult) {
		if s.declared.box != nil && s.declared.box.Listing() {
			list.SetCacheHints(0, mcpgo.CacheScopePrivate) // it is not to be kept: more is on its way
		}
	})
	return h
}

// clientLeft ends the calls of a client that has left. Its default session is
// nobody's default any more, and goes on until its idle time is over: a client
// whose connection broke may still know its handle.
func (s *Server) clientLeft(client string) {
	s.calls.endClient(client)
	s.defaults.end(client)
	s.declared.forget(client)
}

// Close ends the server: calls under way are cancelled and what they had
// started is stopped, clients are disconnected, and every goroutine of the
// server has ended when it returns. It leaves the Manager alone. ctx bounds the
// wait.
func (s *Server) Close(ctx context.Context) error {
	err := s.calls.close(ctx)
	s.webOnce.Do(func() {})
	if s.web != nil {
		s.web.close()
	}
	s.work.Wait()
	return err
}

// Handler is the server over HTTP: Streamable HTTP on /mcp, SSE on /sse and
// /message, /healthz and /readyz, and with Options.OpenMetrics /metrics.
func (s *Server) Handler() http.Handler {
	s.webOnce.Do(func() { s.web = newWeb(s); s.serving.Store(s.web) })
	return s.web
}
