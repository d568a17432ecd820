package e2e_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"
)

// deedLimit bounds every call: 45 s by contract, and what a client on the same
// machine may add to it.
const deedLimit = 50 * time.Second

// ledger keeps what a server has acknowledged, to hold it against what is there.
type ledger struct {
	t testing.TB

	mu       sync.Mutex
	deeds    int
	failures map[string]int // by code
	held     []*held
}

// held is a session that a server has acknowledged.
type held struct {
	id  string
	key string // of a persistent workspace
	ttl time.Duration

	mu       sync.Mutex
	files    map[string]string // paths that were acknowledged, with their content's sum
	tried    map[string]string // the same of those that were not
	said     map[string]bool   // words that commands have written; true: acknowledged
	denied   map[string]bool   // words of commands that may be run again, as their failure said
	leaving  bool              // its end was asked for, and not acknowledged
	touched  time.Time
	uploaded int
}

func newLedger(t testing.TB) *ledger { return &ledger{t: t, failures: map[string]int{}} }

func newHeld(id, key string, ttl time.Duration) *held {
	return &held{id: id, key: key, ttl: ttl, files: map[string]string{}, tried: map[string]string{}, said: map[string]bool{}, denied: map[string]bool{}, touched: time.Now()}
}

// make calls a tool that a fault may fall upon. ok is false for every failure, each of
// which must be told as the contract says, or be the end of the connection where broken
// says that this may be.
func (l *ledger) make(c conn, broken func() bool, tool string, arguments args) (r result, ok bool) {
	l.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), deedLimit+time.Minute) // a hung call is found below
	defer cancel()
	began := time.Now()
	r, err := c.call(ctx, tool, arguments)
	if d := time.Since(began); d > bounded(deedLimit) {
		l.t.Errorf("%s took %v, %v at most", tool, d.Round(time.Millisecond), deedLimit)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.deeds++
	switch {
	case err != nil:
		l.failures["connection"]++
		if !broken() {
			l.t.Errorf("%s: %v, though its server lives", tool, err)
		}
		return r, false
	case !r.IsError:
		return r, true
	}
	code := r.code()
	l.failures[code]++
	if code == "cancelled" && broken() {
		return r, false // a server may still answer a client that is gone
	}
	again, known := retriable[code]
	if told, isTold := r.Meta["retriable"].(bool); !known || !isTold || told != again {
		l.t.Errorf("%s: no failure that a fault may end in: %v %s", tool, r.Meta, clip(r.text()))
	}
	return r, false
}

func never() bool { return false }

// create makes a session, a persistent one where key is not empty.
func (l *ledger) create(c conn, broken func() bool, ttl time.Duration, key string) (*held, bool) {
	l.t.Helper()
	spec := args{"ttl_seconds": int(ttl.Seconds()), "memory_mb": 64}
	if key != "" {
		spec["workspace_key"] = key
	}
	r, ok := l.make(c, broken, "session_create", spec)
	if !ok {
		return nil, false
	}
	var made listed
	if err := unmarshal(r, &made); err != nil || made.SessionID == "" {
		l.t.Errorf("session_create: %v %s", err, r.Structured)
		return nil, false
	}
	h := newHeld(made.SessionID, key, ttl)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.held = append(l.held, h)
	return h, true
}

// exec runs a command that leaves a word behind and says it.
func (l *ledger) exec(c conn, broken func() bool, h *held, random *rand.Rand) {
	l.t.Helper()
	word, code := fmt.Sprintf("word%016x", random.Uint64()), random.IntN(100)
	h.mu.Lock()
	h.said[word] = false
	h.mu.Unlock()
	script := fmt.Sprintf("echo %s >>log; sleep 0.%d; echo %s; exit %d", word, random.IntN(5), word, code)
	r, _ := l.make(c, broken, "exec", args{"session_id": h.id, "argv": []string{"sh", "-c", script}, "timeout_seconds": 20, "wait_seconds": 30})
	if again, _ := r.Meta["retriable"].(bool); again {
		h.mu.Lock()
		h.denied[word] = true
		h.mu.Unlock()
	}
	var x execOut
	if len(r.Structured) == 0 || unmarshal(r, &x) != nil {
		return
	}
	switch x.Status {
	case "exited":
		if !x.exited(code) || x.OutputComplete && x.Stdout != word+"\n" || !strings.HasPrefix(word+"\n", x.Stdout) || x.Stderr != "" {
			l.t.Errorf("a command that says %s and exits with %d: %v", word, code, x)
		}
		h.mu.Lock()
		h.said[word], h.touched = true, time.Now()
		h.mu.Unlock()
	case "lost", "timed_out":
		if x.ExitCode != nil && *x.ExitCode == 0 {
			l.t.Errorf("an invented exit code: %v", x)
		}
	default:
		l.t.Errorf("a command of a second: %v", x)
	}
}

// upload writes a file that nobody has written before.
func (l *ledger) upload(c conn, broken func() bool, h *held, random *rand.Rand) {
	l.t.Helper()
	content := strings.Repeat(fmt.Sprintf("%016x\n", random.Uint64()), 1+random.IntN(20_000))
	sum := sha256.Sum256([]byte(content))
	digest := hex.EncodeToString(sum[:])
	h.mu.Lock()
	h.uploaded++
	name := fmt.Sprintf("f%d", h.uploaded)
	h.tried[name] = digest
	h.mu.Unlock()
	r, ok := l.make(c, broken, "upload", args{"session_id": h.id, "path": name, "content": content})
	if !ok {
		return
	}
	var up uploaded
	if err := unmarshal(r, &up); err != nil || len(up.Files) != 1 || up.Files[0].SHA256 != digest || up.Files[0].Size != int64(len(content)) {
		l.t.Errorf("upload of %d bytes: %v %s", len(content), err, r.Structured)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.files[name], h.touched = digest, time.Now()
	delete(h.tried, name)
}

// destroy ends a session. gone is true once that is acknowledged.
func (l *ledger) destroy(c conn, broken func() bool, h *held) (gone bool) {
	l.t.Helper()
	h.mu.Lock()
	h.leaving = true
	h.mu.Unlock()
	if _, ok := l.make(c, broken, "session_destroy", args{"session_id": h.id}); !ok {
		return false
	}
	l.drop(h)
	return true
}

func (l *ledger) drop(h *held) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for i, other := range l.held {
		if other == h {
			l.held = append(l.held[:i], l.held[i+1:]...)
			return
		}
	}
}

func (l *ledger) all() []*held {
	l.mu.Lock()
	defer l.mu.Unlock()
	return append([]*held(nil), l.held...)
}

// verify holds a session against what was acknowledged. One that is gone must have a
// reason that there was.
func (l *ledger) verify(c conn, h *held) {
	l.t.Helper()
	idle := time.Since(h.touched)
	r, _ := l.make(c, never, "exec", args{"session_id": h.id, "argv": []string{"sh", "-c", `cat log 2>/dev/null; for f in f*; do test -e "$f" && sha256sum "$f"; done; true`}, "max_output_chars": 200_000, "wait_seconds": 40})
	switch code := r.code(); {
	case code == "session_lost" && (idle > h.ttl || h.leaving), code == "session_not_found" && h.leaving:
		l.drop(h)
		return
	case r.IsError:
		l.t.Errorf("session %s, idle for %v, ttl %v: %s", h.id, idle.Round(time.Millisecond), h.ttl, clip(r.text()))
		l.drop(h)
		return
	}
	var x execOut
	if err := unmarshal(r, &x); err != nil || !x.exited(0) || x.Truncated {
		l.t.Errorf("session %s: the look at it: %v %v", h.id, err, x)
		return
	}
	h.touched = time.Now()
	h.hold(l.t, x.Stdout)
}

// hold compares a listing of words and sums with what was acknowledged.
func (h *held) hold(t testing.TB, listing string) {
	t.Helper()
	h.mu.Lock()
	defer h.mu.Unlock()
	words, sums := map[string]int{}, map[string]string{}
	for line := range strings.Lines(listing) {
		f := strings.Fields(line)
		switch {
		case len(f) == 1:
			words[f[0]]++
		case len(f) == 2:
			sums[f[1]] = f[0]
		}
	}
	for word, acknowledged := range h.said {
		if words[word] > 1 || acknowledged && words[word] != 1 {
			t.Errorf("session %s: a command that ran once (acknowledged: %v) has written its word %d times", h.id, acknowledged, words[word])
		}
	}
	for word := range h.denied {
		if words[word] > 0 {
			t.Errorf("session %s: a command that ran was said to have failed so that it may be run again", h.id)
		}
	}
	for name, sum := range h.files {
		if sums[name] != sum {
			t.Errorf("session %s: %s, whose upload was acknowledged, has the sum %q", h.id, name, sums[name])
		}
	}
	for name, sum := range h.tried {
		if got := sums[name]; got != "" && got != sum {
			t.Errorf("session %s: %s is there in part", h.id, name)
		}
	}
}
