package mcp_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	mcpgo "github.com/mark3labs/mcp-go/mcp"

	"caisson/mcp"
)

// A change is told on every transport and in both eras, and what is listed then is
// what there is. Nobody is told when nothing has changed.
func TestPOL12_AChangeIsTold(t *testing.T) {
	for _, row := range []struct{ how, version string }{{"http with a stream", legacy}, {"http", modern}, {"sse", legacy}} {
		t.Run(row.how+" "+row.version, func(t *testing.T) {
			f := withTools("one")
			c := newRig(t, f.into).dial(row.how, row.version)
			told := make(chan struct{}, 1000)
			c.c.OnNotification(func(n mcpgo.JSONRPCNotification) {
				if n.Method == mcpgo.MethodNotificationToolsListChanged {
					told <- struct{}{}
				}
			})
			if row.version == modern {
				stop, err := c.c.ListenAsync(t.Context(), mcpgo.SubscriptionFilter{ToolsListChanged: true}, nil)
				if err != nil {
					t.Fatal(err)
				}
				defer stop()
			}
			// The stream may not be open yet when the first change comes.
			n := 0
			eventually(t, "the client is told", func() bool {
				n++
				f.change("one", fmt.Sprintf("new_%d", n))
				return len(told) > 0
			})
			f.change("one", "two")
			if got := c.names(); !slices.Contains(got, "two") || len(got) != len(mcp.ToolNames())+2 {
				t.Errorf("listed %v", got)
			}
			c.ok("two", args{"n": 1})
		})
	}
}

func TestPOL12_AChangeIsToldOnStdio(t *testing.T) {
	f := withTools("one")
	w := newRig(t, f.into).stdioClient()
	w.send(`{"jsonrpc":"2.0","id":1,"method":"ping"}`)
	w.await("1")    // the notice that the client is there has been read
	f.change("one") // as it was
	f.change("one", "two")
	w.send(`{"jsonrpc":"2.0","id":2,"method":"tools/list"}`)
	answer, before := w.await("2")
	if !strings.Contains(string(answer.Result), `"two"`) {
		t.Errorf("listed %s", answer.Result)
	}
	w.send(`{"jsonrpc":"2.0","id":3,"method":"ping"}`)
	_, after := w.await("3")
	told := 0
	for _, m := range append(before, after...) {
		if m.Method == mcpgo.MethodNotificationToolsListChanged {
			told++
		}
	}
	if told != 1 {
		t.Errorf("one change was told %d times", told)
	}
}

// In the era of requests without a session, a client on stdio asks to be told.
func TestPOL12_AChangeIsToldOnStdioToWhoListens(t *testing.T) {
	const meta = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}`
	f := withTools("one")
	w := newRig(t, f.into).stdio()
	w.send(`{"jsonrpc":"2.0","id":1,"method":"subscriptions/listen","params":{"notifications":{"toolsListChanged":true},` + meta + `}}`)
	told := map[string]bool{}
	n := 0
	eventually(t, "the client is told", func() bool {
		n++
		f.change("one", fmt.Sprintf("new_%d", n))
		select {
		case m := <-w.lines:
			told[m.Method] = true
		default:
		}
		return told[mcpgo.MethodNotificationToolsListChanged]
	})
	w.send(`{"jsonrpc":"2.0","id":2,"method":"tools/list","params":{` + meta + `}}`)
	if answer, _ := w.await("2"); !strings.Contains(string(answer.Result), fmt.Sprintf(`"new_%d"`, n)) {
		t.Errorf("listed %s", answer.Result)
	}
}
