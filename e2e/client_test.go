package e2e_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/mark3labs/mcp-go/client"
	"github.com/mark3labs/mcp-go/client/transport"
	"github.com/mark3labs/mcp-go/mcp"
)

// conn is one client of a server, whatever the transport and the era.
type conn interface {
	call(ctx context.Context, tool string, args any) (result, error)
	alive(ctx context.Context) error
	close() error
}

// via is a way to the server: a transport and an era of the protocol.
type via string

const (
	stdioLegacy via = "stdio, legacy"
	stdioModern via = "stdio, modern"
	httpLegacy  via = "http, legacy"
	httpModern  via = "http, modern"
	sseLegacy   via = "sse, legacy"
	sseModern   via = "sse, modern"
)

func (v via) http() bool   { return v != stdioLegacy && v != stdioModern }
func (v via) modern() bool { return v == stdioModern || v == httpModern || v == sseModern }

// sharedServer is a server that many tests use, each with sessions of its own.
type sharedServer struct {
	once   sync.Once
	server *server
	wire   *wire // of a stdio server
	err    error
}

// share returns the shared server of a way, started on first use. The plain
// program is for tests that move much data or measure.
func (s *stage) share(v via, plain bool) *sharedServer {
	key := "http"
	if !v.http() {
		key = string(v)
	}
	if plain {
		key += ", plain"
	}
	s.mu.Lock()
	shared := s.shared[key]
	if shared == nil {
		shared = &sharedServer{}
		s.shared[key] = shared
	}
	s.mu.Unlock()
	shared.once.Do(func() {
		many := []string{"SANDBOX_DOCKER_MAX_SESSIONS=500", "SANDBOX_DOCKER_MAX_SESSIONS_PER_OWNER=500"}
		if shared.server, shared.err = s.launch(launch{http: v.http(), plain: plain, env: many}); shared.err == nil && !v.http() {
			shared.wire = newWire(shared.server, v.modern())
			ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second) // outlives the test that happens to be first
			defer cancel()
			shared.err = shared.wire.hello(ctx)
		}
	})
	return shared
}

// connect gives a test a client of the shared server with the race detector.
func connect(t *testing.T, v via) *actor {
	t.Helper()
	return connectShared(t, v, false)
}

// connectPlain gives a test a client of the shared server as it ships.
func connectPlain(t *testing.T, v via) *actor {
	t.Helper()
	return connectShared(t, v, true)
}

func connectShared(t *testing.T, v via, plain bool) *actor {
	t.Helper()
	shared := onStage(t).share(v, plain)
	if shared.err != nil {
		t.Fatal(shared.err)
	}
	if !v.http() {
		return &actor{t: t, conn: shared.wire}
	}
	return join(t, shared.server, v)
}

// join connects a client of its own to an HTTP server.
func join(t *testing.T, server *server, v via) *actor {
	t.Helper()
	c, err := dial(t.Context(), server.url, v)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.close() })
	return &actor{t: t, conn: c}
}

// attach opens a conversation with a stdio server of the test's own.
func attach(t *testing.T, server *server, v via) (*actor, *wire) {
	t.Helper()
	w := newWire(server, v.modern())
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	if err := w.hello(ctx); err != nil {
		t.Fatalf("%v\n%s", err, tail(server.stderr.String()))
	}
	return &actor{t: t, conn: w}, w
}

// goClient is mcp-go's client.
type goClient struct{ *client.Client }

func dial(ctx context.Context, url string, v via, more ...transport.StreamableHTTPCOption) (conn, error) {
	var (
		link transport.Interface
		err  error
	)
	if v == sseLegacy || v == sseModern {
		link, err = transport.NewSSE(url+"/sse", transport.WithResponseTimeout(2*time.Minute))
	} else {
		link, err = transport.NewStreamableHTTP(url+"/mcp", more...)
	}
	if err != nil {
		return nil, err
	}
	version := legacyVersion
	if v.modern() {
		version = modernVersion
	}
	return greet(ctx, link, version)
}

// greet has mcp-go's client open a conversation over a link, in the one version.
func greet(ctx context.Context, link transport.Interface, version string) (goClient, error) {
	c := client.NewClient(link, client.WithProtocolVersion(version))
	if err := c.Start(context.WithoutCancel(ctx)); err != nil {
		return goClient{}, err
	}
	request := mcp.InitializeRequest{}
	request.Params.ClientInfo = mcp.Implementation{Name: "e2e", Version: "1"}
	request.Params.ProtocolVersion = version
	if _, err := c.Initialize(ctx, request); err != nil {
		return goClient{}, errors.Join(err, c.Close())
	}
	if c.ProtocolVersion() != version {
		return goClient{}, errors.Join(fmt.Errorf("speaks %s, asked for %s", c.ProtocolVersion(), version), c.Close())
	}
	return goClient{c}, nil
}

func (c goClient) call(ctx context.Context, tool string, args any) (result, error) {
	request := mcp.CallToolRequest{}
	request.Params.Name, request.Params.Arguments = tool, args
	return answered(c.CallTool(ctx, request))
}

// answered reads the answer of mcp-go's client as it came.
func answered(answer *mcp.CallToolResult, err error) (result, error) {
	if err != nil {
		return result{}, err
	}
	raw, err := json.Marshal(answer)
	if err != nil {
		return result{}, err
	}
	return readResult(raw)
}

// alive lists the tools where the era knows no ping.
func (c goClient) alive(ctx context.Context) error {
	if c.ProtocolVersion() == modernVersion {
		_, err := c.ListTools(ctx, mcp.ListToolsRequest{})
		return err
	}
	//lint:ignore SA1019 the older versions, which most clients speak, have it
	return c.Ping(ctx)
}

func listRequest() mcp.ListToolsRequest { return mcp.ListToolsRequest{} }

func (c goClient) close() error { return c.Close() }
