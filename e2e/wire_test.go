package e2e_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"sync"
)

// The protocol versions that tests speak, one of each era.
const (
	legacyVersion = "2025-11-25"
	modernVersion = "2026-07-28"
)

// message is one line of JSON-RPC from the server.
type message struct {
	JSONRPC string          `json:"jsonrpc"`
	ID      json.RawMessage `json:"id"`
	Method  string          `json:"method"`
	Params  json.RawMessage `json:"params"`
	Result  json.RawMessage `json:"result"`
	Error   *rpcError       `json:"error"`
}

type rpcError struct {
	Code    int    `json:"code"`
	Message string `json:"message"`
}

func (e *rpcError) Error() string { return fmt.Sprintf("JSON-RPC error %d: %s", e.Code, e.Message) }

// wire speaks to a stdio server in lines that it writes itself, so that nothing
// is put right on the way.
type wire struct {
	server *server
	modern bool
	done   chan struct{} // closed when the server's standard output has ended

	writing sync.Mutex

	mu      sync.Mutex
	next    int
	waiting map[string]chan message
	notes   []message // notifications, in the order they came
	wrong   []string  // lines that are no JSON-RPC message
	lines   int
}

func newWire(v *server, modern bool) *wire {
	w := &wire{server: v, modern: modern, waiting: map[string]chan message{}, done: make(chan struct{})}
	go w.read()
	return w
}

func (w *wire) read() {
	defer close(w.done)
	in := bufio.NewReaderSize(w.server.stdout, 1<<20)
	for {
		line, err := in.ReadBytes('\n')
		if len(line) > 0 {
			w.take(line, err == nil)
		}
		if err != nil {
			return
		}
	}
}

// take sorts one line in. whole is false for a last line without its end.
func (w *wire) take(line []byte, whole bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.lines++
	var m message
	decoder := json.NewDecoder(bytes.NewReader(line))
	err := decoder.Decode(&m)
	_, rest := decoder.Token()
	if err != nil || !errors.Is(rest, io.EOF) || m.JSONRPC != "2.0" || !whole {
		w.wrong = append(w.wrong, string(line[:min(len(line), 300)]))
		return
	}
	if m.Method != "" {
		w.notes = append(w.notes, m)
		return
	}
	if reply := w.waiting[string(m.ID)]; reply != nil {
		delete(w.waiting, string(m.ID))
		reply <- m
		return
	}
	w.notes = append(w.notes, m) // an answer that nobody waits for
}

// impure lists the lines that were no JSON-RPC messages, and how many lines
// there were in all.
func (w *wire) impure() (wrong []string, lines int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.wrong, w.lines
}

// heard lists what came and was no answer to a call.
func (w *wire) heard() []message {
	w.mu.Lock()
	defer w.mu.Unlock()
	return append([]message(nil), w.notes...)
}

// line sends one line as it is.
func (w *wire) line(raw []byte) error {
	w.writing.Lock()
	defer w.writing.Unlock()
	_, err := w.server.stdin.Write(append(raw, '\n'))
	return err
}

// begin sends a request and returns its id and where the answer will come.
func (w *wire) begin(method string, params map[string]any) (string, <-chan message, error) {
	w.mu.Lock()
	w.next++
	id := strconv.Itoa(w.next)
	reply := make(chan message, 1)
	w.waiting[id] = reply
	w.mu.Unlock()
	raw, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": json.RawMessage(id), "method": method, "params": w.dress(params)})
	if err != nil {
		return "", nil, err
	}
	return id, reply, w.line(raw)
}

// dress adds what each request of the modern era says about itself.
func (w *wire) dress(params map[string]any) map[string]any {
	dressed := map[string]any{}
	for k, v := range params {
		dressed[k] = v
	}
	if w.modern {
		meta := map[string]any{
			"io.modelcontextprotocol/protocolVersion":    modernVersion,
			"io.modelcontextprotocol/clientCapabilities": map[string]any{},
			"io.modelcontextprotocol/clientInfo":         map[string]any{"name": "e2e", "version": "1"},
		}
		if own, ok := dressed["_meta"].(map[string]any); ok {
			for k, v := range own {
				meta[k] = v
			}
		}
		dressed["_meta"] = meta
	}
	return dressed
}

// request sends a request and waits for its answer.
func (w *wire) request(ctx context.Context, method string, params map[string]any) (json.RawMessage, error) {
	_, reply, err := w.begin(method, params)
	if err != nil {
		return nil, err
	}
	return w.await(ctx, reply)
}

func (w *wire) await(ctx context.Context, reply <-chan message) (json.RawMessage, error) {
	select {
	case m := <-reply:
		return answer(m)
	case <-w.done:
		select {
		case m := <-reply: // it came just before the end
			return answer(m)
		default:
			return nil, errors.New("the server ended without an answer")
		}
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func answer(m message) (json.RawMessage, error) {
	if m.Error != nil {
		return nil, m.Error
	}
	return m.Result, nil
}

// notify sends a notification.
func (w *wire) notify(method string, params map[string]any) error {
	raw, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "method": method, "params": w.dress(params)})
	if err != nil {
		return err
	}
	return w.line(raw)
}

// hello opens the conversation as the era does it.
func (w *wire) hello(ctx context.Context) error {
	if w.modern {
		_, err := w.request(ctx, "server/discover", nil)
		return err
	}
	raw, err := w.request(ctx, "initialize", map[string]any{
		"protocolVersion": legacyVersion, "capabilities": map[string]any{}, "clientInfo": map[string]any{"name": "e2e", "version": "1"},
	})
	if err != nil {
		return err
	}
	var init struct{ ProtocolVersion string }
	if err := json.Unmarshal(raw, &init); err != nil || init.ProtocolVersion != legacyVersion {
		return fmt.Errorf("version %q: %w", init.ProtocolVersion, err)
	}
	return w.notify("notifications/initialized", nil)
}

func (w *wire) call(ctx context.Context, tool string, args any) (result, error) {
	raw, err := w.request(ctx, "tools/call", callParams(tool, args))
	if err != nil {
		return result{}, err
	}
	return readResult(raw)
}

// callParams leaves arguments out when args is nil.
func callParams(tool string, args any) map[string]any {
	params := map[string]any{"name": tool}
	if args != nil {
		params["arguments"] = args
	}
	return params
}

// alive asks for the smallest answer that the era has.
func (w *wire) alive(ctx context.Context) error {
	method := "ping"
	if w.modern {
		method = "server/discover"
	}
	_, err := w.request(ctx, method, nil)
	return err
}

func (w *wire) close() error { return nil } // the server is ended by whoever started it
