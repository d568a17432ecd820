package e2e_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"strings"
	"time"
)

// raider is a hostile client of the load: a principal of its own, which has got hold
// of others' handles. What it tries must do nothing, and look as if they had never been.
type raider struct {
	*webClient
	*witness
	who       *tenant
	rand      *rand.Rand
	workspace string // of another
	maxBody   int
}

// raid tries one thing after another until over is closed.
func (h *raider) raid(over <-chan struct{}, pause time.Duration) {
	steps := []func(context.Context){
		h.sessions, h.sessions, h.execs, h.execs, h.execs, h.files, h.clientSessions, h.clientSessions,
		h.cancels, h.cancels, h.bodies, h.tooLarge, h.origins, h.tokens, h.halves, h.own,
	}
	for {
		wait := time.NewTimer(time.Duration(h.rand.Int64N(int64(2 * pause))))
		select {
		case <-over:
			wait.Stop()
			return
		case <-wait.C:
		}
		ctx, cancel := context.WithTimeout(h.t.Context(), callLimit)
		steps[h.rand.IntN(len(steps))](ctx)
		cancel()
	}
}

// forged is a handle like another that nobody has.
func (h *raider) forged(like string) string {
	prefix, rest, _ := strings.Cut(like, "_")
	letters := []byte(rest)
	h.rand.Shuffle(len(letters), func(i, j int) { letters[i], letters[j] = letters[j], letters[i] })
	return prefix + "_" + string(letters)
}

// compare makes the same call with another's handle and with one that never was.
func (h *raider) compare(ctx context.Context, tool, argument, foreign, forged string, more args) {
	if foreign == "" {
		return // nobody has any yet
	}
	var told [2]string
	for i, id := range []string{foreign, forged} {
		arguments := args{argument: id}
		for k, v := range more {
			arguments[k] = v
		}
		r, err := h.call(ctx, tool, arguments)
		if err == nil && (r.code() == "limit_exceeded" || r.code() == "busy") || err != nil && limited(err) {
			h.count("hostile", "over a limit")
			return
		}
		if err != nil {
			h.fault("%s with a foreign handle: %v", tool, err)
			return
		}
		if code := r.code(); !strings.HasSuffix(code, "_not_found") && (tool != "session_destroy" || !strings.Contains(string(r.Structured), `"destroyed":false`)) {
			h.fault("%s with %s, which is not its own: %s %s", tool, id, clip(r.text()), clip(string(r.Structured)))
		}
		told[i] = strings.ReplaceAll(fmt.Sprint(r.IsError, r.text(), string(r.Structured), r.Meta["code"], r.Meta["retriable"]), id, "ID")
	}
	if told[0] != told[1] {
		h.fault("%s tells a foreign handle from one that never was: %s\n%s", tool, told[0], told[1])
	}
	h.count("hostile: "+tool+" with a foreign handle", "refused as unknown")
}

func (h *raider) sessions(ctx context.Context) {
	id := h.foreign(h.who, "sbx_")
	tools := []string{"session_destroy", "session_extend", "exec_list"}
	h.compare(ctx, tools[h.rand.IntN(len(tools))], "session_id", id, h.forged(id), nil)
	h.compare(ctx, "exec", "session_id", id, h.forged(id), args{"command": "cat mark; rm -rf *"})
}

func (h *raider) execs(ctx context.Context) {
	id := h.foreign(h.who, "exec_")
	tools := []string{"kill", "exec_output", "exec_input"}
	tool, more := tools[h.rand.IntN(len(tools))], args{}
	if tool == "exec_input" {
		more["data"], more["close"] = "x", true
	}
	h.compare(ctx, tool, "exec_id", id, h.forged(id), more)
}

func (h *raider) files(ctx context.Context) {
	id := h.foreign(h.who, "sbx_")
	switch h.rand.IntN(5) {
	case 0:
		h.compare(ctx, "download", "session_id", id, h.forged(id), args{"path": "mark"})
	case 1:
		h.compare(ctx, "upload", "session_id", id, h.forged(id), args{"path": "mark", "content": "gone"})
	case 2:
		h.compare(ctx, "list_files", "session_id", id, h.forged(id), nil)
	case 3:
		h.compare(ctx, "workspace_delete", "workspace_key", h.workspace, "nobody-has-it", nil)
	default:
		if _, err := h.request(ctx, "resources/read", args{"uri": "sandbox://" + id + "/mark"}); err == nil {
			h.fault("a file of %s is read as a resource", id)
		}
	}
}

// expect makes a request that must have one of some statuses, or be over a limit.
func (h *raider) expect(ctx context.Context, what, method, path, body string, statuses []int, headers ...string) {
	status, _, answer, err := h.send(ctx, method, path, body, headers...)
	if err != nil {
		h.fault("hostile: %s: %v", what, err)
		return
	}
	for _, want := range append(statuses, http.StatusTooManyRequests) {
		if status == want {
			h.count("hostile: "+what, fmt.Sprint(status))
			return
		}
	}
	h.fault("hostile: %s: %d %s", what, status, clip(string(answer)))
}

// clientSessions uses the session of the protocol that another has.
func (h *raider) clientSessions(ctx context.Context) {
	id, not := h.foreign(h.who, ""), []int{http.StatusNotFound}
	if h.rand.IntN(3) == 0 {
		id = strings.Repeat("0123456789abcdef", 2)
	}
	ask := `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"session_list","arguments":{}}}`
	h.expect(ctx, "a call in another's client session", "POST", "/mcp", ask, not, "Mcp-Session-Id", id)
	h.expect(ctx, "the stream of another's client session", "GET", "/mcp", "", not, "Mcp-Session-Id", id)
	h.expect(ctx, "the end of another's client session", "DELETE", "/mcp", "", not, "Mcp-Session-Id", id)
}

// cancels names requests that others may have under way.
func (h *raider) cancels(ctx context.Context) {
	id := h.foreign(h.who, "")
	for range 5 {
		n := 1 + h.rand.IntN(100)
		for _, request := range []string{fmt.Sprint(n), fmt.Sprintf("%q", fmt.Sprint(n))} {
			notice := `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":` + request + `}}`
			h.expect(ctx, "a cancel in its own session", "POST", "/mcp", notice, []int{http.StatusAccepted})
			h.expect(ctx, "a cancel in another's session", "POST", "/mcp", notice, []int{http.StatusNotFound}, "Mcp-Session-Id", id)
		}
	}
}

func (h *raider) bodies(ctx context.Context) {
	all := []string{
		"", "{", "null", "[]", `[{"jsonrpc":"2.0","id":1,"method":"ping"}]`, "\xff\xfe\x00", strings.Repeat("[", 100_000), `{"jsonrpc":"2.0","id":{},"method":"ping"}`,
		`{"jsonrpc":"1.0","id":1,"method":"ping"}`, `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"exec","name":"kill"}}`,
		`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"exec","arguments":[` + strings.Repeat(`{"a":`, 5000) + `1`,
	}
	body := all[h.rand.IntN(len(all))]
	status, _, answer, err := h.send(ctx, http.MethodPost, "/mcp", body)
	if err != nil || status >= 500 || !bytes.Contains(answer, []byte(`"error"`)) {
		h.fault("hostile: a malformed body %s: %v, %d %s", clip(body), err, status, clip(string(answer)))
	}
	h.count("hostile: a malformed body", fmt.Sprint(status))
	h.expect(ctx, "another type of content", "POST", "/mcp", initialize, []int{http.StatusUnsupportedMediaType}, "Content-Type", "text/plain")
}

// tooLarge may be hung up on before all of it has gone.
func (h *raider) tooLarge(ctx context.Context) {
	body := `{"jsonrpc":"2.0","id":1,"method":"ping","params":{"x":"` + strings.Repeat("x", h.maxBody+h.rand.IntN(h.maxBody)) + `"}}`
	status, _, _, err := h.send(ctx, http.MethodPost, "/mcp", body)
	if err == nil && status != http.StatusRequestEntityTooLarge && status != http.StatusTooManyRequests {
		h.fault("hostile: a body that is too large: %d", status)
	}
	h.count("hostile: a body that is too large", fmt.Sprint(status))
}

func (h *raider) origins(ctx context.Context) {
	no := []int{http.StatusForbidden}
	for _, origin := range []string{"https://evil.example.invalid", "null"} {
		h.expect(ctx, "a foreign origin", "POST", "/mcp", initialize, no, "Origin", origin)
	}
	h.expect(ctx, "a foreign host", "POST", "/mcp", initialize, no, "Host", "evil.example.invalid")
}

func (h *raider) tokens(ctx context.Context) {
	no := []int{http.StatusUnauthorized}
	for _, header := range []string{"", "Bearer " + strings.ToLower(h.token), "Bearer " + h.tenants[0].name, "Basic " + h.token} {
		h.expect(ctx, "a wrong token", "POST", "/mcp", initialize, no, "Authorization", header)
	}
	h.expect(ctx, "a token in the address", "POST", "/mcp?access_token=x", initialize, []int{http.StatusBadRequest})
}

// halves leaves in the middle of a head or a body.
func (h *raider) halves(ctx context.Context) {
	_, addr, _ := strings.Cut(h.url, "://")
	c, err := new(net.Dialer).DialContext(ctx, "tcp", addr)
	if err != nil {
		h.fault("hostile: %v", err)
		return
	}
	defer c.Close()
	text := "POST /mcp HTTP/1.1\r\nHost: " + addr + "\r\nAuthorization: Bearer " + h.token + "\r\nContent-Type: application/json\r\nContent-Length: 5000\r\n\r\n{"
	_, _ = io.WriteString(c, text[:1+h.rand.IntN(len(text))]) // it may have been hung up on
	h.count("hostile: half a request", "left")
}

// own sees that a hostile principal has what is its own, and no more.
func (h *raider) own(ctx context.Context) {
	r, err := h.call(ctx, "session_list", args{})
	if !h.judge("hostile: its own session_list", r, err) {
		return
	}
	var l sessionsListed
	if err := json.Unmarshal(r.Structured, &l); err != nil || len(l.Sessions) != 0 {
		h.fault("%s, which has no session, lists %s", h.who.name, r.Structured)
	}
}
