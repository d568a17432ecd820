package mcp_test

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mark3labs/mcp-go/client"
	"github.com/mark3labs/mcp-go/client/transport"
	mcpgo "github.com/mark3labs/mcp-go/mcp"
	"github.com/santhosh-tekuri/jsonschema/v6"

	"caisson/mcp"
	"caisson/sandbox"
	"caisson/sandbox/sandboxtest"
)

// rig is a server on a fake engine.
type rig struct {
	t       *testing.T
	fake    *sandboxtest.Fake
	manager *sandbox.Manager
	server  *mcp.Server
	log     *lockedBuffer
	metrics *mcp.Metrics
	schemas map[string]*jsonschema.Schema
}

// lockedBuffer collects log lines from many goroutines.
type lockedBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}

// newRig makes a server; change may alter its options.
func newRig(t *testing.T, change ...func(*mcp.Options)) *rig {
	t.Helper()
	r := &rig{t: t, fake: sandboxtest.NewFake(), log: &lockedBuffer{}, metrics: mcp.NewMetrics("test")}
	log := slog.New(slog.NewTextHandler(r.log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	spools, err := sandbox.NewSpools(sandbox.SpoolLimits{Memory: 64 << 10, Disk: 1 << 20, Total: 32 << 20, Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	r.manager = sandbox.NewManager(sandbox.Options{
		Provider: r.fake, Instance: "test", Grace: 2 * time.Minute, Spools: spools, Log: log, Observer: r.metrics,
		Policy: sandbox.Policy{DefaultImage: "img", DefaultTTL: time.Hour, MaxTTL: 24 * time.Hour, MaxNetwork: sandbox.NetworkEgress, AllowPersistent: true},
		Limits: sandbox.Limits{
			Sessions: 64, PerOwner: 16, ExecsPerSession: 200, Records: 10_000, Retention: time.Hour, LostRetention: 24 * time.Hour,
			ReapInterval: time.Minute, DefaultTimeout: 300 * time.Second, MaxTimeout: 24 * time.Hour,
		},
	})
	options := mcp.Options{Manager: r.manager, Owner: "local", Version: "test", Log: log, Metrics: r.metrics}
	for _, f := range change {
		f(&options)
	}
	r.server = mcp.New(options)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), time.Minute)
		defer cancel()
		if err := r.server.Close(ctx); err != nil {
			t.Error(err)
		}
		if err := r.manager.Close(ctx); err != nil {
			t.Error(err)
		}
		if n := len(r.fake.Sessions()); n != 0 {
			t.Errorf("%d sessions left on the engine", n)
		}
	})
	r.schemas = outputSchemas(t, r.server)
	return r
}

// outputSchemas compiles what the tools declare, so that every result of every
// test is held against it (MS-05).
func outputSchemas(t *testing.T, s *mcp.Server) map[string]*jsonschema.Schema {
	t.Helper()
	all := map[string]*jsonschema.Schema{}
	for name, tool := range s.MCP().ListTools() {
		doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(tool.Tool.RawOutputSchema))
		if err != nil {
			t.Fatal(err)
		}
		c := jsonschema.NewCompiler()
		if err := c.AddResource(name, doc); err != nil {
			t.Fatal(err)
		}
		if all[name], err = c.Compile(name); err != nil {
			t.Fatal(err)
		}
	}
	return all
}

// The two eras of the protocol. A client that is left to itself speaks modern.
const (
	legacy = mcpgo.ProtocolVersion20251125
	modern = mcpgo.ProtocolVersion20260728
)

// dial makes a client connect in one of the ways.
func (r *rig) dial(how, version string) *conn {
	r.t.Helper()
	options := []client.ClientOption{client.WithProtocolVersion(version)}
	var c *client.Client
	switch how {
	case "inprocess":
		var err error
		if c, err = client.NewInProcessClientWithOptions(r.server.MCP(), options...); err != nil {
			r.t.Fatal(err)
		}
	case "http", "http with a stream":
		web := r.web()
		more := []transport.StreamableHTTPCOption{transport.WithHTTPBasicClient(web.Client())}
		if how != "http" {
			//lint:ignore SA1019 the older versions, which most clients speak, have it
			more = append(more, transport.WithContinuousListening())
		}
		tr, err := transport.NewStreamableHTTP(web.URL+"/mcp", more...)
		if err != nil {
			r.t.Fatal(err)
		}
		c = client.NewClient(tr, options...)
	case "sse":
		web := r.web()
		tr, err := transport.NewSSE(web.URL+"/sse", transport.WithHTTPClient(web.Client()))
		if err != nil {
			r.t.Fatal(err)
		}
		c = client.NewClient(tr, options...)
	}
	return r.start(c)
}

// web serves the handler on loopback until the test's end.
func (r *rig) web() *httptest.Server {
	web := httptest.NewServer(r.server.Handler())
	r.t.Cleanup(func() {
		web.CloseClientConnections()
		web.Close()
	})
	return web
}

func (r *rig) start(c *client.Client) *conn {
	r.t.Helper()
	ctx, cancel := context.WithCancel(context.WithoutCancel(r.t.Context()))
	r.t.Cleanup(func() { _ = c.Close(); cancel() })
	if err := c.Start(ctx); err != nil {
		r.t.Fatal(err)
	}
	if _, err := c.Initialize(ctx, mcpgo.InitializeRequest{}); err != nil {
		r.t.Fatal(err)
	}
	return &conn{r, c}
}

// conn is a connected client.
type conn struct {
	*rig
	c *client.Client
}

// result is a tool's result as a client sees it.
type result struct {
	raw    *mcpgo.CallToolResult
	text   string
	code   string // of a failure
	fields map[string]any
}

type args = map[string]any

// call calls a tool and holds the result against what every result must be.
func (c *conn) call(tool string, a args) *result {
	c.t.Helper()
	got, err := c.try(c.t.Context(), tool, a, nil)
	if err != nil {
		c.t.Fatalf("%s: %v", tool, err)
	}
	return got
}

func (c *conn) try(ctx context.Context, tool string, a args, meta *mcpgo.Meta) (*result, error) {
	c.t.Helper()
	request := mcpgo.CallToolRequest{Params: mcpgo.CallToolParams{Name: tool, Arguments: a, Meta: meta}}
	raw, err := c.c.CallTool(ctx, request)
	if err != nil {
		return nil, err
	}
	return c.check(tool, raw), nil
}

func (c *conn) check(tool string, raw *mcpgo.CallToolResult) *result {
	c.t.Helper()
	r := &result{raw: raw}
	for _, content := range raw.Content {
		if text, ok := content.(mcpgo.TextContent); ok {
			r.text += text.Text
		}
	}
	if raw.IsError {
		r.code, _ = raw.Meta.AdditionalFields["code"].(string)
		if !strings.HasPrefix(r.text, r.code+": ") || r.code == "" {
			c.t.Errorf("%s: error text %q does not begin with its code %q", tool, r.text, r.code)
		}
		if _, ok := raw.Meta.AdditionalFields["retriable"].(bool); !ok {
			c.t.Errorf("%s: error %s does not say whether it is retriable", tool, r.code)
		}
	} else if raw.StructuredContent == nil || r.text == "" {
		c.t.Errorf("%s: a success has structure and text, got %v and %q", tool, raw.StructuredContent, r.text)
	}
	if raw.StructuredContent != nil {
		if c.schemas[tool] == nil {
			c.schemas = outputSchemas(c.t, c.server) // a tool that has come since
		}
		doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(raw.RawStructuredContent))
		if err == nil {
			err = c.schemas[tool].Validate(doc)
		}
		if err != nil {
			c.t.Errorf("%s: the structured result does not fit its schema: %v\n%s", tool, err, raw.RawStructuredContent)
		}
		r.fields, _ = raw.StructuredContent.(map[string]any)
	}
	return r
}

// want calls a tool and expects a failure with the code.
func (c *conn) want(code, tool string, a args) *result {
	c.t.Helper()
	got := c.call(tool, a)
	if got.code != code {
		c.t.Errorf("%s(%v): code %q, want %q: %s", tool, a, got.code, code, got.text)
	}
	return got
}

// ok calls a tool and expects a success.
func (c *conn) ok(tool string, a args) *result {
	c.t.Helper()
	got := c.call(tool, a)
	if got.raw.IsError {
		c.t.Fatalf("%s(%v): %s", tool, a, got.text)
	}
	return got
}

func (r *result) str(name string) string { s, _ := r.fields[name].(string); return s }

func (r *result) num(name string) int64 { n, _ := r.fields[name].(float64); return int64(n) }

func (r *result) list(name string) []any { l, _ := r.fields[name].([]any); return l }

func (r *result) field() string {
	if r.raw.Meta == nil {
		return ""
	}
	f, _ := r.raw.Meta.AdditionalFields["field"].(string)
	return f
}

// noteCodes lists the codes of the notes.
func (r *result) noteCodes() string {
	var all []string
	for _, n := range r.list("notes") {
		all = append(all, n.(map[string]any)["code"].(string))
	}
	return strings.Join(all, " ")
}

// eventually polls until cond holds.
func eventually(t *testing.T, what string, cond func() bool) {
	t.Helper()
	deadline := time.NewTimer(time.Minute)
	defer deadline.Stop()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for !cond() {
		select {
		case <-tick.C:
		case <-deadline.C:
			t.Fatalf("not within a minute: %s", what)
		}
	}
}

// post sends one raw message to an HTTP endpoint.
func post(t *testing.T, web *httptest.Server, path, body string, headers ...string) (*http.Response, string) {
	t.Helper()
	return send(t, web, http.MethodPost, path, body, headers...)
}

func send(t *testing.T, web *httptest.Server, method, path, body string, headers ...string) (*http.Response, string) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), method, web.URL+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	if method == http.MethodPost {
		request.Header.Set("Content-Type", "application/json")
		request.Header.Set("Accept", "application/json, text/event-stream")
	}
	for i := 0; i+1 < len(headers); i += 2 {
		if headers[i] == "Host" {
			request.Host = headers[i+1]
		} else {
			request.Header.Set(headers[i], headers[i+1])
		}
	}
	response, err := web.Client().Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	var text bytes.Buffer
	if _, err := text.ReadFrom(response.Body); err != nil {
		t.Fatal(err)
	}
	return response, text.String()
}

func mustJSON(t *testing.T, v any) string {
	t.Helper()
	raw, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}
