package e2e_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"
)

// args are a tool's arguments.
type args map[string]any

// result is a tool's result as it came over the wire.
type result struct {
	IsError    bool            `json:"isError"`
	Content    []content       `json:"content"`
	Structured json.RawMessage `json:"structuredContent"`
	Meta       map[string]any  `json:"_meta"`
	size       int             // bytes of the whole result
}

type content struct {
	Type     string `json:"type"`
	Text     string `json:"text"`
	Data     string `json:"data"`
	MIMEType string `json:"mimeType"`
}

func readResult(raw json.RawMessage) (result, error) {
	r := result{size: len(raw)}
	if err := json.Unmarshal(raw, &r); err != nil {
		return r, fmt.Errorf("not a tool result: %w", err)
	}
	return r, nil
}

// text is all text of a result.
func (r result) text() string {
	var all strings.Builder
	for _, c := range r.Content {
		all.WriteString(c.Text)
	}
	return all.String()
}

// code is the error's code, once in the text and once in _meta; empty for a
// success and for an error that does not say it in both places.
func (r result) code() string {
	code, _, _ := strings.Cut(r.text(), ":")
	if meta, _ := r.Meta["code"].(string); !r.IsError || meta != code {
		return ""
	}
	return code
}

// execOut is the structured result of the tools that run commands.
type execOut struct {
	ExecID          string `json:"exec_id"`
	SessionID       string `json:"session_id"`
	SessionCreated  bool   `json:"session_created"`
	Status          string `json:"status"`
	ExitCode        *int   `json:"exit_code"`
	CommandExitCode *int   `json:"command_exit_code"`
	OutputHeld      bool   `json:"output_held"`
	OutputComplete  bool   `json:"output_complete"`
	Stdout          string `json:"stdout"`
	Stderr          string `json:"stderr"`
	StdoutEncoding  string `json:"stdout_encoding"`
	StderrEncoding  string `json:"stderr_encoding"`
	StdoutBytes     int64  `json:"stdout_bytes"`
	StderrBytes     int64  `json:"stderr_bytes"`
	StdoutNext      int64  `json:"stdout_next"`
	StderrNext      int64  `json:"stderr_next"`
	Truncated       bool   `json:"truncated"`
	Omitted         []struct {
		Stream      string
		Offset      int64
		Bytes       int64
		Recoverable bool
	} `json:"omitted"`
	OOMKilled  *bool  `json:"oom_killed"`
	LostReason string `json:"lost_reason"`
	DurationMS int64  `json:"duration_ms"`
	Killed     bool   `json:"killed"`
	Notes      []struct{ Code, Text string }
}

// exited says whether it has exited with that code.
func (x execOut) exited(code int) bool {
	return x.Status == "exited" && x.ExitCode != nil && *x.ExitCode == code
}

func (x execOut) String() string {
	code := "none"
	if x.ExitCode != nil {
		code = fmt.Sprint(*x.ExitCode)
	}
	return fmt.Sprintf("status %s, code %s, stdout %d bytes %q, stderr %d bytes %q, truncated %v, complete %v, notes %v",
		x.Status, code, x.StdoutBytes, clip(x.Stdout), x.StderrBytes, clip(x.Stderr), x.Truncated, x.OutputComplete, x.Notes)
}

func clip(s string) string {
	if len(s) > 400 {
		return s[:200] + "…" + s[len(s)-200:]
	}
	return s
}

// callLimit bounds every call of a test: one that takes longer hangs.
const callLimit = 2 * time.Minute

// actor is a client with the test that it plays in.
type actor struct {
	t *testing.T
	conn
}

// do makes a call that must be answered with a tool result.
func (a *actor) do(tool string, arguments any) result {
	a.t.Helper()
	ctx, cancel := context.WithTimeout(a.t.Context(), callLimit)
	defer cancel()
	r, err := a.call(ctx, tool, arguments)
	if err != nil {
		a.t.Fatalf("%s: %v", tool, err)
	}
	return r
}

// ok makes a call that must succeed.
func (a *actor) ok(tool string, arguments any) result {
	a.t.Helper()
	r := a.do(tool, arguments)
	if r.IsError {
		a.t.Fatalf("%s %v: %s", tool, clip(fmt.Sprint(arguments)), clip(r.text()))
	}
	if len(r.Structured) == 0 {
		a.t.Fatalf("%s: a success without a structured result", tool)
	}
	return r
}

// fails makes a call that must fail with the code.
func (a *actor) fails(code, tool string, arguments any) result {
	a.t.Helper()
	r := a.do(tool, arguments)
	if r.code() != code {
		a.t.Fatalf("%s %v: want %s, got error %v, %v: %s", tool, clip(fmt.Sprint(arguments)), code, r.IsError, r.Meta, clip(r.text()))
	}
	return r
}

// into reads a structured result.
func into[T any](t testing.TB, r result) T {
	t.Helper()
	var v T
	if err := json.Unmarshal(r.Structured, &v); err != nil {
		t.Fatalf("structured result %s: %v; said: %s", clip(string(r.Structured)), err, clip(r.text()))
	}
	return v
}

// session makes a session that ends with the test.
func (a *actor) session(spec args) string {
	a.t.Helper()
	if spec == nil {
		spec = args{}
	}
	made := into[listed](a.t, a.ok("session_create", spec))
	a.t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute) // the test's own is over
		defer cancel()
		if r, err := a.call(ctx, "session_destroy", args{"session_id": made.SessionID}); err == nil && r.IsError {
			a.t.Errorf("session_destroy: %s", r.text())
		}
	})
	return made.SessionID
}

// exec runs a shell command, whatever becomes of it, and waits for its end.
func (a *actor) exec(session, command string, more ...args) execOut {
	a.t.Helper()
	arguments := args{"session_id": session, "command": command, "shell": "sh", "wait_seconds": 45}
	for _, m := range more {
		for k, v := range m {
			if v == nil {
				delete(arguments, k)
			} else {
				arguments[k] = v
			}
		}
	}
	return into[execOut](a.t, a.do("exec", arguments))
}

// sh runs a shell command that must exit with 0 and returns all that it printed.
func (a *actor) sh(session, command string, more ...args) string {
	a.t.Helper()
	x := a.exec(session, command, more...)
	if !x.exited(0) || x.Truncated {
		a.t.Fatalf("%s: %v", command, x)
	}
	return x.Stdout
}

// processes counts the session's processes whose command line begins with a
// text. Of each only the beginning is printed: the wrappers' lines are long.
func (a *actor) processes(session, text string) int {
	a.t.Helper()
	out := a.sh(session, `for p in /proc/[0-9]*; do head -c 60 $p/cmdline | tr "\0\n" "  "; echo; done 2>/dev/null; true`)
	n := 0
	for line := range strings.Lines(out) {
		if strings.HasPrefix(line, text) {
			n++
		}
	}
	return n
}

// eventually polls until the condition holds.
func eventually(t testing.TB, limit time.Duration, what string, holds func() bool) {
	t.Helper()
	deadline := time.After(patient(limit))
	for !holds() {
		select {
		case <-deadline:
			t.Fatalf("after %v still not: %s", limit, what)
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// patient stretches a limit on a machine that has more to do than it has cores:
// what is promised for a quiet one is not the program's to keep there.
func patient(limit time.Duration) time.Duration {
	text, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return limit
	}
	first, _, _ := strings.Cut(string(text), " ")
	load, err := strconv.ParseFloat(first, 64)
	if err != nil {
		return limit
	}
	return time.Duration(float64(limit) * max(1, load/float64(2*runtime.NumCPU())))
}

// took fails a test whose step lasted longer than it may.
func took(t testing.TB, started time.Time, limit time.Duration, what string) {
	t.Helper()
	if d, limit := time.Since(started), patient(limit); d > limit {
		t.Errorf("%s took %v, %v at most", what, d.Round(time.Millisecond), limit)
	}
}
