package e2e_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"time"
)

// worker is an honest client of the load.
type worker struct {
	conn
	*witness
	who  *tenant
	name string
	n    int
	rand *rand.Rand
	// places is for as many clients as may have the engine work for them.
	places chan struct{}
}

func jsonInto(text string, v any) error { return json.Unmarshal([]byte(text), v) }

// ask makes a call and judges it; false when a limit was in its way or it was at fault.
func (w *worker) ask(ctx context.Context, what, tool string, arguments args) (result, bool) {
	w.t.Helper()
	began := time.Now()
	r, err := w.call(ctx, tool, arguments)
	w.timed(what, time.Since(began))
	if err == nil {
		// mcp-go's client keeps its bodies to itself.
		w.sees(w.who, []byte(r.text()+string(r.Structured)), false)
	}
	return r, w.judge(what, r, err)
}

// work does one thing after another until over is closed. Each is done to its end.
func (w *worker) work(over <-chan struct{}, pause time.Duration, churns bool) {
	steps := []func(context.Context){
		w.list, w.list, w.list, w.list, w.list, w.list, w.list, w.list, w.list, w.list,
		w.run, w.run, w.hold, w.files, w.poll, w.stop, w.vanish,
	}
	if churns {
		steps = append(steps, w.churn, w.churn, w.churn)
	}
	for {
		wait := time.NewTimer(time.Duration(w.rand.Int64N(int64(2 * pause))))
		select {
		case <-over:
			wait.Stop()
			return
		case <-wait.C:
		}
		w.n++
		ctx, cancel := context.WithTimeout(w.t.Context(), callLimit)
		w.step(ctx, steps[w.rand.IntN(len(steps))])
		cancel()
	}
}

// step does something, or lists sessions where the engine has enough to do: it is not
// the engine that is tried here, and one on a busy machine answers nobody in time.
func (w *worker) step(ctx context.Context, do func(context.Context)) {
	select {
	case w.places <- struct{}{}:
		defer func() { <-w.places }()
		do(ctx)
	default:
		w.list(ctx)
	}
}

func (w *worker) session() string { return w.who.sessions[w.rand.IntN(len(w.who.sessions))] }

func (w *worker) nonce() string { return fmt.Sprintf("%s-%d", w.name, w.n) }

func (w *worker) list(ctx context.Context) {
	r, ok := w.ask(ctx, "session_list", "session_list", args{})
	if !ok {
		return
	}
	var l sessionsListed
	if err := json.Unmarshal(r.Structured, &l); err != nil {
		w.fault("session_list: %v", err)
	}
	var ids []string
	for _, s := range l.Sessions {
		ids = append(ids, s.ID)
	}
	for _, id := range w.who.sessions {
		if !slices.Contains(ids, id) {
			w.fault("%s has lost its session %s", w.who.name, id)
		}
	}
}

// told runs a command that prints the client's own word and its principal's secret.
func (w *worker) told(ctx context.Context, what, before string) {
	arguments := script(w.session(), before+"echo "+w.nonce()+"; cat mark")
	arguments["wait_seconds"] = 60
	r, ok := w.ask(ctx, what, "exec", arguments)
	if !ok {
		return
	}
	var x execOut
	if err := unmarshal(r, &x); err != nil || !x.exited(0) || x.Stdout != w.nonce()+"\n"+w.who.secret+"\n" {
		w.fault("%s of %s: %v %v", what, w.name, err, x)
	}
}

func (w *worker) run(ctx context.Context) { w.told(ctx, "exec", "") }

// hold is a command that hostile clients have the time to reach for.
func (w *worker) hold(ctx context.Context) {
	w.told(ctx, "exec that takes a while", fmt.Sprintf("sleep %.1f; ", 1+2*w.rand.Float64()))
}

func (w *worker) files(ctx context.Context) {
	session, path := w.session(), "files/"+w.name
	text := strings.Repeat(w.nonce()+"\n", 200)
	if _, ok := w.ask(ctx, "upload", "upload", args{"session_id": session, "path": path, "content": text}); !ok {
		return
	}
	if r, ok := w.ask(ctx, "download", "download", args{"session_id": session, "path": path, "limit": len(text)}); ok && !strings.Contains(r.text(), text) {
		w.fault("download of %s: %s", w.name, clip(r.text()))
	}
}

func (w *worker) poll(ctx context.Context) {
	arguments := script(w.session(), "sleep 1; echo "+w.nonce())
	arguments["wait_seconds"], arguments["timeout_seconds"] = 0, 60
	r, ok := w.ask(ctx, "exec in the background", "exec", arguments)
	var x execOut
	for ok && unmarshal(r, &x) == nil && x.Status == "running" {
		r, ok = w.ask(ctx, "poll", "exec_output", args{"exec_id": x.ExecID, "stdout_offset": 0, "wait_seconds": 20})
	}
	if ok && (!x.exited(0) || x.Stdout != w.nonce()+"\n") {
		w.fault("poll of %s: %v", w.name, x)
	}
}

// stop kills a command, and tries again where a limit or an engine without the time for
// it is in the way, as such an answer says that one may.
func (w *worker) stop(ctx context.Context) {
	arguments := script(w.session(), "sleep 300")
	arguments["wait_seconds"], arguments["timeout_seconds"] = 0, 100
	r, ok := w.ask(ctx, "exec to be killed", "exec", arguments)
	var x execOut
	if !ok || unmarshal(r, &x) != nil || x.Status != "running" {
		return
	}
	for tries := 0; tries < 20 && x.Status == "running"; tries++ {
		began := time.Now()
		r, err := w.call(ctx, "kill", args{"exec_id": x.ExecID})
		w.timed("kill", time.Since(began))
		if err == nil && r.code() == "kill_failed" {
			w.count("kill", "kill_failed")
		} else if w.judge("kill", r, err) && unmarshal(r, &x) == nil && x.Status != "running" {
			break
		}
		if r, ok := w.ask(ctx, "poll", "exec_output", args{"exec_id": x.ExecID, "wait_seconds": 2}); ok {
			_ = unmarshal(r, &x) // what cannot be read is still running
		}
	}
	if x.Status != "killed" && !slices.ContainsFunc(x.Notes, func(n struct{ Code, Text string }) bool { return n.Code == "kill_failed" }) {
		w.fault("kill of %s: %v", w.name, x)
	}
}

// vanish goes away in the middle of a call, or of a stream.
func (w *worker) vanish(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, 50*time.Millisecond+time.Duration(w.rand.Int64N(int64(800*time.Millisecond))))
	defer cancel()
	var err error
	if raw, ok := w.conn.(*webClient); ok && w.rand.IntN(3) == 0 {
		_, _, _, err = raw.send(ctx, http.MethodGet, "/mcp", "")
	} else {
		_, err = w.call(ctx, "exec", script(w.session(), "sleep 25"))
	}
	if ctx.Err() == nil && !limited(err) {
		w.fault("a call that its client left ends with %v", err)
	}
	w.count("gone in the middle", "ok")
}

// churn makes a session, uses it and ends it.
func (w *worker) churn(ctx context.Context) {
	r, ok := w.ask(ctx, "session_create", "session_create", args{})
	id := sessionID(r)
	if !ok {
		return
	}
	arguments := script(id, "echo "+w.nonce())
	if r, ok = w.ask(ctx, "exec in a new session", "exec", arguments); ok {
		var x execOut
		if err := unmarshal(r, &x); err != nil || x.Stdout != w.nonce()+"\n" {
			w.fault("a new session of %s: %v %v", w.name, err, x)
		}
	}
	w.ask(ctx, "session_destroy", "session_destroy", args{"session_id": id})
}

func limited(err error) bool {
	return err == nil || strings.Contains(err.Error(), "with status 429") || strings.Contains(err.Error(), "with status 503")
}
