package mcp_test

import (
	"bufio"
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"caisson/mcp"
)

// talk is one HTTP response as it arrives.
type talk struct {
	t        *testing.T
	response *http.Response
	cancel   context.CancelFunc
	messages chan message // closed at the response's end
	endpoint chan string  // of an SSE client
	quiet    chan struct{}
}

// open sends a request and reads its response, plain or as a stream of events, until
// it ends or the test does.
func open(t *testing.T, web *httptest.Server, method, path, body string, headers ...string) *talk {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	request, err := http.NewRequestWithContext(ctx, method, web.URL+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Accept", "application/json, text/event-stream")
	for i := 0; i+1 < len(headers); i += 2 {
		request.Header.Set(headers[i], headers[i+1])
	}
	response, err := web.Client().Do(request)
	if err != nil {
		t.Fatal(err)
	}
	k := &talk{
		t: t, response: response, cancel: cancel,
		messages: make(chan message, 10_000), endpoint: make(chan string, 1), quiet: make(chan struct{}, 10_000),
	}
	read := make(chan struct{})
	go func() {
		defer close(read)
		k.read()
	}()
	t.Cleanup(func() { cancel(); <-read })
	return k
}

func (k *talk) read() {
	defer close(k.messages)
	defer func() { _ = k.response.Body.Close() }()
	lines := bufio.NewReader(k.response.Body)
	for {
		line, err := lines.ReadString('\n')
		data, isData := strings.CutPrefix(strings.TrimSpace(line), "data: ")
		switch {
		case strings.HasPrefix(line, ":"):
			k.quiet <- struct{}{}
		case isData && strings.HasPrefix(data, "/"):
			k.endpoint <- data
		case isData, strings.HasPrefix(line, "{"):
			var m message
			if bad := json.Unmarshal([]byte(strings.TrimPrefix(strings.TrimSpace(line), "data: ")), &m); bad != nil {
				k.t.Errorf("%v: %.200q", bad, line)
			}
			k.messages <- m
		}
		if err != nil {
			return
		}
	}
}

// all reads to the end.
func (k *talk) all() []message {
	k.t.Helper()
	var all []message
	limit := time.NewTimer(time.Minute)
	defer limit.Stop()
	for {
		select {
		case m, more := <-k.messages:
			if !more {
				return all
			}
			all = append(all, m)
		case <-limit.C:
			k.t.Fatalf("the response does not end; so far %v", all)
		}
	}
}

// next reads the next message.
func (k *talk) next() message {
	k.t.Helper()
	limit := time.NewTimer(time.Minute)
	defer limit.Stop()
	select {
	case m := <-k.messages:
		return m
	case <-limit.C:
		k.t.Fatal("nothing arrives")
		return message{}
	}
}

// connect opens an SSE stream and returns it with the address for its messages.
func connect(t *testing.T, web *httptest.Server) (*talk, string) {
	t.Helper()
	k := open(t, web, http.MethodGet, "/sse", "")
	select {
	case where := <-k.endpoint:
		return k, where
	case <-time.After(time.Minute):
		t.Fatal("no endpoint")
		return nil, ""
	}
}

// execBody is a call of exec.
func execBody(id, command, meta string) string {
	return `{"jsonrpc":"2.0","id":` + id + `,"method":"tools/call","params":{"name":"exec","arguments":{"command":"` + command + `","wait_seconds":40}` + meta + `}}`
}

const modernMeta = `"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}`

// modernHeaders are those of a call of the stateless protocol.
func modernHeaders(method, name string) []string {
	return []string{"MCP-Protocol-Version", "2026-07-28", "Mcp-Method", method, "Mcp-Name", name}
}

// byName takes a principal's name for its token.
type byName struct{}

func (byName) Authenticate(r *http.Request) (mcp.Principal, error) {
	return mcp.Principal{Name: r.Header.Get("Authorization"), RatePerMinute: 1_000_000}, nil
}
