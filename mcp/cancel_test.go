package mcp_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
)

// near are ids that a reader of numbers takes for one another, and the string that
// looks like one of them.
var near = [...]string{`9007199254740992`, `9007199254740993`, `1`, `"1"`}

// cancelEach starts a call under each of the ids, cancels them one after the other,
// and expects each notice to end its own call alone. send sends a message.
func cancelEach(t *testing.T, r *rig, send func(body string)) {
	t.Helper()
	for _, id := range near {
		send(execBody(id, "sleep 1000", ""))
	}
	eventually(t, "all run", func() bool { return r.fake.Running() == len(near) })
	for i, id := range near {
		send(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":` + id + `}}`)
		left := len(near) - 1 - i
		eventually(t, "one is stopped", func() bool { return r.fake.Running() <= left && r.server.CallsUnderWay() <= left })
		if n := r.fake.Running(); n != left {
			t.Fatalf("the notice for %s left %d commands, not %d", id, n, left)
		}
	}
}

// TestBugMT01_CancelledOverSSEIsNotAnswered also for ids that look alike.
func TestBugMT01_CancelledOverSSEIsNotAnswered(t *testing.T) {
	r := newRig(t)
	web := r.web()
	k, where := connect(t, web)
	cancelEach(t, r, func(body string) {
		if response, text := post(t, web, where, body); response.StatusCode != http.StatusAccepted {
			t.Fatalf("%s %s", response.Status, text)
		}
	})
	post(t, web, where, `{"jsonrpc":"2.0","id":"after","method":"ping"}`)
	if m := k.next(); string(m.ID) != `"after"` {
		t.Errorf("after the cancels: %s %s", m.ID, m.Result)
	}
}

// TestBugMT01_CancelledOnStdioIsNotAnswered for ids that look alike.
func TestBugMT01_CancelledOnStdioIsNotAnswered(t *testing.T) {
	r := newRig(t)
	w := r.stdioClient()
	cancelEach(t, r, w.send)
	w.send(`{"jsonrpc":"2.0","id":"after","method":"ping"}`)
	if _, before := w.await(`"after"`); len(before) != 0 {
		t.Errorf("before it: %v", before)
	}
}

// TestBugMT01_CancelledOverHTTPIsNotAnswered ends each response without a message.
func TestBugMT01_CancelledOverHTTPIsNotAnswered(t *testing.T) {
	r := newRig(t)
	web := r.web()
	session := initialize(t, web)
	ends := make(chan string, len(near))
	cancelEach(t, r, func(body string) {
		if strings.Contains(body, "tools/call") {
			go func() {
				request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, web.URL+"/mcp", strings.NewReader(body))
				if err != nil {
					ends <- err.Error()
					return
				}
				request.Header.Set("Content-Type", "application/json")
				request.Header.Set("Mcp-Session-Id", session)
				response, err := web.Client().Do(request)
				if err != nil {
					ends <- err.Error()
					return
				}
				defer func() { _ = response.Body.Close() }()
				var text strings.Builder
				_, err = fmt.Fprint(&text, response.StatusCode, " ", response.Header.Get("Content-Type"))
				if n, _ := response.Body.Read(make([]byte, 100)); n > 0 || err != nil {
					text.WriteString(" and a message")
				}
				ends <- text.String()
			}()
			return
		}
		post(t, web, "/mcp", body, "Mcp-Session-Id", session)
	})
	for range near {
		if end := <-ends; end != "200 text/event-stream" {
			t.Errorf("a cancelled call ended with %s", end)
		}
	}
}

// TestBugMT01_AnSSEClientThatGoesTakesItsCallsAlong: they are stopped, and its place
// is free.
func TestBugMT01_AnSSEClientThatGoesTakesItsCallsAlong(t *testing.T) {
	r := newRig(t)
	web := r.web()
	gone, where := connect(t, web)
	_, other := connect(t, web)
	post(t, web, where, execBody("1", "sleep 1000", ""))
	post(t, web, other, execBody("1", "sleep 1000", ""))
	eventually(t, "both run", func() bool { return r.fake.Running() == 2 })
	gone.cancel()
	eventually(t, "its call is stopped", func() bool {
		return r.fake.Running() == 1 && r.server.CallsUnderWay() == 1 && r.server.SSEClients() == 1
	})
	if response, _ := post(t, web, where, `{"jsonrpc":"2.0","id":1,"method":"ping"}`); response.StatusCode != http.StatusBadRequest {
		t.Errorf("its address still takes messages: %s", response.Status)
	}
}

// TestRequestsWithAnIDInUseAreRefused and leave the first alone.
func TestRequestsWithAnIDInUseAreRefused(t *testing.T) {
	r := newRig(t)
	w := r.stdioClient()
	w.tool("5", "exec", `{"command":"await go; echo first","wait_seconds":40}`)
	eventually(t, "it waits", func() bool { return r.fake.Running() == 1 })
	w.tool("5", "session_list", `{}`)
	if answer, _ := w.await("5"); !strings.Contains(string(answer.Error), "being served") {
		t.Errorf("%s %s", answer.Result, answer.Error)
	}
	w.tool("6", "upload", `{"path":"go","content":""}`)
	_, before := w.await("6")
	var answer message
	if i := slices.IndexFunc(before, func(m message) bool { return string(m.ID) == "5" && m.Method == "" }); i >= 0 {
		answer = before[i] // the command has seen the file before the upload was answered
	} else {
		answer, _ = w.await("5")
	}
	if !strings.Contains(string(answer.Result), "first") {
		t.Errorf("%s %s", answer.Result, answer.Error)
	}
}
