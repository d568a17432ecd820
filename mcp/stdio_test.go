package mcp_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"caisson/sandbox"
	"caisson/sandbox/sandboxtest"
)

// wire is a stdio client that sees every line. Only one may be open at a time:
// mcp-go keeps one stdio session for the whole process.
type wire struct {
	*rig
	in     *io.PipeWriter
	lines  chan message
	ended  chan error
	cancel context.CancelFunc
}

type message struct {
	JSONRPC string          `json:"jsonrpc"`
	ID      json.RawMessage `json:"id"`
	Method  string          `json:"method"`
	Result  json.RawMessage `json:"result"`
	Error   json.RawMessage `json:"error"`
	Params  json.RawMessage `json:"params"`
}

func (r *rig) stdio() *wire {
	r.t.Helper()
	fromClient, toServer := io.Pipe()
	fromServer, toClient := io.Pipe()
	ctx, cancel := context.WithCancel(context.WithoutCancel(r.t.Context()))
	w := &wire{rig: r, in: toServer, lines: make(chan message, 10_000), ended: make(chan error, 1), cancel: cancel}
	go func() {
		w.ended <- r.server.ServeStdio(ctx, fromClient, toClient)
		_ = toClient.Close()
	}()
	read := make(chan struct{})
	go func() {
		defer close(read)
		defer close(w.lines)
		lines := bufio.NewReader(fromServer)
		for {
			line, err := lines.ReadString('\n')
			if line != "" {
				w.lines <- r.parse(line)
			}
			if err != nil {
				return
			}
		}
	}()
	r.t.Cleanup(func() {
		_ = toServer.Close()
		cancel()
		<-read
	})
	return w
}

// parse holds a line against what every line on stdout must be (MT-03).
func (r *rig) parse(line string) message {
	var m message
	d := json.NewDecoder(strings.NewReader(line))
	if err := d.Decode(&m); err != nil || d.More() || m.JSONRPC != "2.0" || m.Method == "" && m.Result == nil && m.Error == nil {
		r.t.Errorf("a line that is no JSON-RPC message (%v): %.300q", err, line)
	}
	return m
}

func (w *wire) send(line string) {
	w.t.Helper()
	if _, err := io.WriteString(w.in, line+"\n"); err != nil {
		w.t.Error(err)
	}
}

func (w *wire) tool(id, name, arguments string) {
	w.t.Helper()
	w.send(`{"jsonrpc":"2.0","id":` + id + `,"method":"tools/call","params":{"name":"` + name + `","arguments":` + arguments + `}}`)
}

// await reads until the answer to id, and returns it with what came before.
func (w *wire) await(id string) (answer message, before []message) {
	w.t.Helper()
	limit := time.NewTimer(60 * time.Second)
	defer limit.Stop()
	for {
		select {
		case m, open := <-w.lines:
			if !open {
				w.t.Fatalf("the server has ended before it answered %s", id)
			}
			if string(m.ID) == id && m.Method == "" {
				return m, before
			}
			before = append(before, m)
		case <-limit.C:
			w.t.Fatalf("no answer to %s within 60 s, but %v", id, before)
		}
	}
}

const stdioInitialize = `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`

func (r *rig) stdioClient() *wire {
	r.t.Helper()
	w := r.stdio()
	w.send(stdioInitialize)
	w.await("0")
	w.send(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	return w
}

func TestBugMT03_StdoutCarriesOnlyMessages(t *testing.T) {
	r := newRig(t)
	w := r.stdioClient()
	n := 0
	each := func(arguments func(tool string) string) {
		for name := range r.server.MCP().ListTools() {
			n++
			id := fmt.Sprint(n)
			w.send(`{"jsonrpc":"2.0","id":` + id + `,"method":"tools/call","params":{"name":"` + name + `","arguments":` + arguments(name) + `,"_meta":{"progressToken":` + id + `}}}`)
			w.await(id)
		}
	}
	each(func(string) string { return `{}` })
	each(func(tool string) string {
		switch tool {
		case "exec", "run":
			return `{"command":"printf '{\"jsonrpc\":\"2.0\"}\\r\\nContent-Length: 5\\r\\n\\r\\n'"}`
		case "upload":
			return `{"path":"f","content":"\n{}\n"}`
		case "download":
			return `{"path":"f"}`
		case "session_create":
			return `{"labels":{"a":"b\n{}"}}`
		}
		return `[]`
	})
	r.fake.Fail(sandboxtest.OpReadDir, panicking{io.ErrUnexpectedEOF})
	r.fake.Fail(sandboxtest.OpCreate, sandbox.Errorf("dial", sandbox.KindUnavailable, "the engine is down"))
	each(func(string) string { return `{"session_id":"x\n\u2028"}` })
	for i, broken := range []string{``, `{`, `[]`, `[{"jsonrpc":"2.0","id":1,"method":"ping"}]`, `"x"`, `{"jsonrpc":"1.0","id":5}`, `{"jsonrpc":"2.0","id":"\u001b[2J","method":"nope"}`} {
		w.send(broken)
		id := fmt.Sprintf(`"ping%d"`, i)
		w.send(`{"jsonrpc":"2.0","id":` + id + `,"method":"ping"}`)
		w.await(id)
	}
}

// MT-01: the notice stops the command; the cancelled request is never answered.
func TestBugMT01_CancelNoticeOverStdio(t *testing.T) {
	r := newRig(t)
	w := r.stdioClient()
	for _, id := range []string{`7`, `"seven"`} {
		w.tool(id, "exec", `{"command":"sleep 1000","wait_seconds":40}`)
		eventually(t, "the command runs", func() bool { return r.fake.Running() == 1 })
		w.send(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":12345}}`)
		w.send(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":` + id + `}}`)
		eventually(t, "the command is stopped", func() bool { return r.fake.Running() == 0 && r.server.CallsUnderWay() == 0 })
		next := `"after ` + strings.Trim(id, `"`) + `"`
		w.tool(next, "exec", `{"command":"echo hi"}`)
		answer, before := w.await(next)
		if len(before) != 0 || !strings.Contains(string(answer.Result), `hi`) {
			t.Errorf("after the notice for %s: %v, then %s", id, before, answer.Result)
		}
		// The same id may be used again, and is answered.
		w.tool(id, "exec", `{"command":"echo again"}`)
		w.await(id)
	}
}

func TestBugMT04_SlowCallsDoNotBlockStdio(t *testing.T) {
	r := newRig(t)
	w := r.stdioClient()
	w.tool("0", "session_create", `{}`)
	w.await("0")
	for i := range 64 {
		w.tool(fmt.Sprint(100+i), "exec", `{"command":"sleep 1000","wait_seconds":40}`)
	}
	eventually(t, "64 calls wait", func() bool { return r.server.CallsUnderWay() == 64 && r.fake.Running() == 64 })
	start := time.Now()
	w.send(`{"jsonrpc":"2.0","id":"p","method":"ping"}`)
	w.await(`"p"`)
	for i := range 200 {
		id := fmt.Sprint(1000 + i)
		w.tool(id, "session_list", `{}`)
		if answer, _ := w.await(id); !strings.Contains(string(answer.Result), `busy: 64 calls`) {
			t.Fatalf("%s", answer.Result)
		}
	}
	w.send(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":100}}`)
	eventually(t, "the cancelled one is stopped", func() bool { return r.fake.Running() == 63 && r.server.CallsUnderWay() == 63 })
	w.tool("5", "session_list", `{}`)
	if answer, _ := w.await("5"); strings.Contains(string(answer.Result), "isError") {
		t.Errorf("%s", answer.Result)
	}
	if took := time.Since(start); took > 20*time.Second {
		t.Errorf("the others waited for %v", took)
	}
}

func TestBugMT10_LongLines(t *testing.T) {
	r := newRig(t)
	w := r.stdioClient()
	for i, size := range []int{1 << 20, large} {
		id := fmt.Sprint(i + 1)
		w.tool(id, "upload", `{"path":"f","content":"`+strings.Repeat("z", size)+`"}`)
		if answer, _ := w.await(id); !strings.Contains(string(answer.Result), fmt.Sprintf(`"size":%d`, size)) {
			t.Errorf("%.300s", answer.Result)
		}
	}
	w.tool("3", "download", `{"path":"f","limit":1048576}`)
	if answer, _ := w.await("3"); len(answer.Result) < 2<<20 {
		t.Errorf("%d bytes", len(answer.Result))
	}
	w.send(`{"jsonrpc":"2.0","id":4,"method":"ping"}`)
	w.await("4")
}

// The client closes its side: what it had started is stopped, and the server
// ends by itself, without an error.
func TestEndOfInputStopsWhatIsUnderWay(t *testing.T) {
	for _, how := range []string{"end of input", "signal"} {
		r := newRig(t)
		w := r.stdioClient()
		w.tool("1", "exec", `{"command":"sleep 1000","wait_seconds":40}`)
		w.tool("2", "exec", `{"command":"sleep 1000","wait_seconds":0}`)
		w.await("2")
		eventually(t, "both run", func() bool { return r.fake.Running() == 2 })
		if how == "signal" {
			w.cancel()
		} else {
			_ = w.in.Close()
		}
		select {
		case err := <-w.ended:
			if err != nil {
				t.Errorf("%s: %v", how, err)
			}
		case <-time.After(30 * time.Second):
			t.Fatalf("%s: the server does not end", how)
		}
		if n := r.fake.Running(); n != 1 {
			t.Errorf("%s: %d commands run; the one that was answered belongs to the session", how, n)
		}
		answered := false
		for m := range w.lines {
			answered = answered || string(m.ID) == "1"
		}
		if !answered {
			t.Errorf("%s: the call under way got no answer", how)
		}
	}
}

// A client of the stateless protocol on stdio is one client all the same: it has
// a default session.
func TestStdioHasOneDefaultSessionInBothEras(t *testing.T) {
	r := newRig(t)
	w := r.stdioClient()
	w.tool("1", "exec", `{"command":"true"}`)
	w.await("1")
	w.send(`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"exec","arguments":{"command":"echo hi"},"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}`)
	if answer, _ := w.await("2"); !strings.Contains(string(answer.Result), "hi") || strings.Contains(string(answer.Result), "session_created") {
		t.Errorf("%s %s", answer.Result, answer.Error)
	}
	if n := len(r.fake.Sessions()); n != 1 {
		t.Errorf("%d sessions", n)
	}
}

func TestBugMT09_ProgressOverStdio(t *testing.T) {
	r := newRig(t)
	r.server.Hurry(45*time.Second, 2*time.Millisecond, 4*time.Millisecond)
	w := r.stdioClient()
	late := 0
	for i := range 20 {
		id := fmt.Sprint(i + 1)
		w.send(`{"jsonrpc":"2.0","id":` + id + `,"method":"tools/call","params":{"name":"exec","arguments":{"command":"sleep 0.1"},"_meta":{"progressToken":"t` + id + `"}}}`)
		_, before := w.await(id)
		mine := 0
		for _, m := range before {
			if m.Method != "notifications/progress" {
				continue
			}
			if strings.Contains(string(m.Params), `"t`+id+`"`) {
				mine++
			} else {
				late++
			}
		}
		if mine == 0 {
			t.Errorf("call %s: no progress", id)
		}
	}
	if late != 0 {
		t.Errorf("%d notices came after their result", late)
	}
}
