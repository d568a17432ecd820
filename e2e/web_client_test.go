package e2e_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
)

// webClient is a client of Streamable HTTP that writes its requests itself, so that
// it may write anything. Its requests have the ids 1, 2, 3…, as anybody's have.
type webClient struct {
	url, token, session string
	streams             bool // takes answers as streams of events, else as plain JSON
	web                 *http.Client
	last                atomic.Int64
	sees                func([]byte) // every body; may be nil
}

// webStatus is an answer of HTTP that is no success.
type webStatus int

func (s webStatus) Error() string { return fmt.Sprintf("request failed with status %d", int(s)) }

// newWebClient has connections of its own and no session yet.
func newWebClient(url, token string, streams bool) *webClient {
	return &webClient{url: url, token: token, streams: streams, web: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 2}}}
}

// hello begins a client session.
func (c *webClient) hello(ctx context.Context) error {
	status, header, body, err := c.send(ctx, http.MethodPost, "/mcp", initialize)
	if err != nil {
		return err
	}
	if c.session = header.Get("Mcp-Session-Id"); status != http.StatusOK || c.session == "" {
		return fmt.Errorf("%w: %s", webStatus(status), clip(string(body)))
	}
	status, _, _, err = c.send(ctx, http.MethodPost, "/mcp", `{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	if err == nil && status != http.StatusAccepted {
		err = webStatus(status)
	}
	return err
}

// send makes one request with the client's token and session. headers, by pairs, come
// last and replace what is there; an empty value leaves a header out.
func (c *webClient) send(ctx context.Context, method, path, body string, headers ...string) (int, http.Header, []byte, error) {
	request, err := http.NewRequestWithContext(ctx, method, c.url+path, strings.NewReader(body))
	if err != nil {
		return 0, nil, nil, err
	}
	set := []string{"Content-Type", "application/json", "Authorization", "Bearer " + c.token, "Mcp-Session-Id", c.session, "Accept", "application/json"}
	if c.streams || method == http.MethodGet {
		set = append(set, "Accept", "application/json, text/event-stream")
	}
	for set = append(set, headers...); len(set) > 1; set = set[2:] {
		switch {
		case set[0] == "Host":
			request.Host = set[1]
		case set[1] == "":
			request.Header.Del(set[0])
		default:
			request.Header.Set(set[0], set[1])
		}
	}
	response, err := c.web.Do(request)
	if err != nil {
		return 0, nil, nil, err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if c.sees != nil {
		c.sees(text)
	}
	return response.StatusCode, response.Header, text, err
}

// request sends a request of the protocol and returns its result.
func (c *webClient) request(ctx context.Context, method string, params any) (json.RawMessage, error) {
	id := c.last.Add(1)
	raw, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": id, "method": method, "params": params})
	if err != nil {
		return nil, err
	}
	status, header, body, err := c.send(ctx, http.MethodPost, "/mcp", string(raw))
	if err != nil {
		return nil, err
	}
	if status != http.StatusOK {
		return nil, webStatus(status)
	}
	if strings.HasPrefix(header.Get("Content-Type"), "text/event-stream") {
		body = answerOf(body)
	}
	var m message
	if err := json.Unmarshal(body, &m); err != nil || string(m.ID) != fmt.Sprint(id) {
		return nil, fmt.Errorf("not the answer to %d: %w: %q", id, err, clip(string(body)))
	}
	return answer(m)
}

// answerOf is the last message of a stream of events.
func answerOf(events []byte) []byte {
	var data []byte
	lines := bufio.NewScanner(bytes.NewReader(events))
	lines.Buffer(nil, 64<<20)
	for lines.Scan() {
		if text, ok := bytes.CutPrefix(lines.Bytes(), []byte("data:")); ok {
			data = bytes.Clone(bytes.TrimSpace(text))
		}
	}
	return data
}

func (c *webClient) call(ctx context.Context, tool string, arguments any) (result, error) {
	raw, err := c.request(ctx, "tools/call", callParams(tool, arguments))
	if err != nil {
		return result{}, err
	}
	return readResult(raw)
}

func (c *webClient) alive(ctx context.Context) error {
	_, err := c.request(ctx, "ping", nil)
	return err
}

func (c *webClient) close() error {
	c.web.CloseIdleConnections()
	return nil
}

// metric reads one number of the server's metrics.
func metric(t testing.TB, url, name string) float64 {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url+"/metrics", nil)
	if err != nil {
		t.Fatal(err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		var n float64
		if rest, ok := strings.CutPrefix(line, name+" "); ok {
			if _, err := fmt.Sscan(rest, &n); err == nil {
				return n
			}
		}
	}
	t.Fatalf("no metric %s", name)
	return 0
}
