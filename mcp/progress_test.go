package mcp_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	mcpgo "github.com/mark3labs/mcp-go/mcp"

	"caisson/mcp"
)

// report is one progress notice.
type report struct {
	Token    json.RawMessage `json:"progressToken"`
	Progress float64
}

// checkReports holds the messages of one call's response against what they must be:
// its own progress, rising, and then the result.
func checkReports(t *testing.T, what string, got []message, token string) (reports int) {
	t.Helper()
	last := -1.0
	for i, m := range got {
		if m.Method == "" {
			if i != len(got)-1 {
				t.Errorf("%s: %d messages after the result", what, len(got)-1-i)
			}
			return reports
		}
		var r report
		if err := json.Unmarshal(m.Params, &r); err != nil || string(r.Token) != token {
			t.Errorf("%s: on the response of the call with token %s: %s", what, token, m.Params)
		}
		if r.Progress <= last {
			t.Errorf("%s: %v after %v", what, r.Progress, last)
		}
		last = r.Progress
		reports++
	}
	t.Errorf("%s: no result in %v", what, got)
	return reports
}

// TestBugMT09_ProgressStaysWithItsCall has many calls of one client session at once,
// beside an open stream of the same session: each response carries its own progress
// and nothing else, and the stream none.
func TestBugMT09_ProgressStaysWithItsCall(t *testing.T) {
	r := newRig(t)
	r.server.Hurry(45*time.Second, 2*time.Millisecond, 4*time.Millisecond)
	web := r.web()
	session := initialize(t, web)
	stream := open(t, web, http.MethodGet, "/mcp", "", "Mcp-Session-Id", session)
	post(t, web, "/mcp", execBody("0", "true", ""), "Mcp-Session-Id", session)
	var all sync.WaitGroup
	for i := range 40 {
		all.Go(func() {
			token := fmt.Sprintf(`"t%d"`, i)
			k := open(t, web, http.MethodPost, "/mcp", execBody(fmt.Sprint(100+i), "sleep 0.1", `,"_meta":{"progressToken":`+token+`}`), "Mcp-Session-Id", session)
			if n := checkReports(t, "http", k.all(), token); n == 0 {
				t.Errorf("call %d: no progress", i)
			}
		})
	}
	all.Wait()
	if n := len(stream.messages); n != 0 {
		t.Errorf("%d messages went to the stream of the session", n)
	}
}

// TestBugMT09_NoReportIsLost lets a tool report a thousand times in one breath and
// answer at once, over each transport.
func TestBugMT09_NoReportIsLost(t *testing.T) {
	const burst = 1000
	r := newRig(t)
	r.server.MCP().AddTool(mcpgo.NewTool("burst"), func(ctx context.Context, request mcpgo.CallToolRequest) (*mcpgo.CallToolResult, error) {
		for i := range burst {
			if err := mcp.Notify(ctx, map[string]any{"progressToken": request.Params.Meta.ProgressToken, "progress": i + 1}); err != nil {
				return nil, err
			}
		}
		return mcpgo.NewToolResultText("done"), nil
	})
	body := `{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"burst","_meta":{"progressToken":"b"`
	web := r.web()
	session := initialize(t, web)
	count := func(what string, got []message) {
		if n := checkReports(t, what, got, `"b"`); n != burst {
			t.Errorf("%s: %d of %d reports", what, n, burst)
		}
	}
	for range 5 {
		count("legacy", open(t, web, http.MethodPost, "/mcp", body+`}}}`, "Mcp-Session-Id", session).all())
		count("modern", open(t, web, http.MethodPost, "/mcp", body+`,`+modernMeta+`}}}`, modernHeaders("tools/call", "burst")...).all())
	}
	k, where := connect(t, web)
	post(t, web, where, body+`}}}`)
	var got []message
	for len(got) == 0 || got[len(got)-1].Method != "" {
		got = append(got, k.next())
	}
	count("sse", got)
	w := r.stdio()
	w.send(body + `}}}`)
	answer, before := w.await("7")
	count("stdio", append(before, answer))
}

// TestBugMT09_TokensKeepEveryDigit sends a token beyond what a float can hold.
func TestBugMT09_TokensKeepEveryDigit(t *testing.T) {
	r := newRig(t)
	r.server.Hurry(45*time.Second, 2*time.Millisecond, 4*time.Millisecond)
	web := r.web()
	session := initialize(t, web)
	k := open(t, web, http.MethodPost, "/mcp", execBody("9007199254740993", "sleep 0.1", `,"_meta":{"progressToken":9007199254740995}`), "Mcp-Session-Id", session)
	got := k.all()
	if n := checkReports(t, "http", got, "9007199254740995"); n == 0 {
		t.Error("no progress")
	}
	if id := string(got[len(got)-1].ID); id != "9007199254740993" {
		t.Errorf("answered as %s", id)
	}
}

// TestBugMT07_ALongQuietCallIsKeptAlive gives a call without progress signs of life
// on its response, and a stream of its own that is quiet too.
func TestBugMT07_ALongQuietCallIsKeptAlive(t *testing.T) {
	r := newRig(t)
	r.server.Quickly(20*time.Millisecond, time.Minute)
	web := r.web()
	session := initialize(t, web)
	stream := open(t, web, http.MethodGet, "/mcp", "", "Mcp-Session-Id", session)
	sse, _ := connect(t, web)
	k := open(t, web, http.MethodPost, "/mcp", execBody("1", "sleep 0.3", ""), "Mcp-Session-Id", session)
	if got := k.all(); len(got) != 1 || len(k.quiet) < 2 {
		t.Errorf("%d signs of life, %v", len(k.quiet), got)
	}
	eventually(t, "the streams live", func() bool { return len(stream.quiet) > 2 && len(sse.quiet) > 2 })
	// A client that takes no stream gets plain JSON all the same.
	response, body := post(t, web, "/mcp", execBody("2", "sleep 0.2", `,"_meta":{"progressToken":1}`), "Mcp-Session-Id", session, "Accept", "application/json")
	if kind := response.Header.Get("Content-Type"); kind != "application/json" || !strings.HasPrefix(body, `{"jsonrpc"`) {
		t.Errorf("%s: %.100s", kind, body)
	}
}
