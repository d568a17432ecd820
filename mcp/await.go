package mcp

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"caisson/sandbox"
)

// scanPause is how long a wait rests between two looks at the output, so that a
// noisy command does not keep a processor busy with matching.
const scanPause = 10 * time.Millisecond

// await waits until the exec has ended, its new output matches, or the time is
// over, the call's own included, also while others' searches have their turn. Only a
// client that went away is an error.
func await(ctx context.Context, e *sandbox.Exec, limit time.Duration, match *matcher) error {
	limited, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	for {
		changed := e.Spool().Changed() // before the look: nothing that comes after it is missed
		if match.look(limited, e.Done(), e.Spool()) {
			return nil
		}
		if match == nil {
			changed = nil
		}
		select {
		case <-e.Done():
			return nil
		case <-limited.Done():
			return clientGone(ctx)
		case <-changed:
		}
		select {
		case <-e.Done():
			return nil
		case <-limited.Done():
			return clientGone(ctx)
		case <-time.After(scanPause):
		}
	}
}

// clientGone is the error of a context that has ended, but for its call's own
// deadline.
func clientGone(ctx context.Context) error {
	if errors.Is(context.Cause(ctx), errCallLimit) {
		return nil
	}
	return ctx.Err()
}

// waitLimit is how long a call may wait for what its client asked: without
// progress only until the call's deadline, which cut tells.
func (c *call) waitLimit(asked time.Duration) (limit time.Duration, cut bool) {
	if c.deadline.IsZero() {
		return asked, false
	}
	left := max(0, time.Until(c.deadline)-answerTime)
	return min(asked, left), asked > left+time.Second // less is not worth a note
}

// answerTime is kept free at a call's end for making its answer.
const answerTime = 100 * time.Millisecond

// cutNote tells that a wait was shorter than asked for.
func cutNote(asked time.Duration) sandbox.Note {
	return sandbox.Note{Code: "wait_cut", Text: fmt.Sprintf("wait_seconds %d was cut short: a call whose client does not ask for progress answers within %d s; exec_output waits on", int64(asked.Seconds()), int64(callLimit.Seconds()))}
}

// matchWindow is how far back a match may reach into what was looked at before.
const matchWindow = 8 << 10

// matcher looks for a pattern in what is new of an exec's output, each stream
// for itself. A nil matcher never matches.
type matcher struct {
	pattern *pattern
	search  *search
	next    positions
	window  [2][]byte // the end of what was looked at
	skipped int64     // bytes that could no longer be read when they were to be looked at
}

// newMatcher compiles a wait_for pattern: ^ and $ stand for the ends of lines.
func newMatcher(text *string, from positions, x *search) (*matcher, error) {
	if text == nil {
		return nil, nil
	}
	p, err := compile("wait_for", *text)
	return &matcher{pattern: p, search: x, next: from}, err
}

// look says whether what is new matches. It stops in between when ctx ends, or the
// exec, whose end needs no match: a long output and a costly pattern can take minutes.
func (m *matcher) look(ctx context.Context, ended <-chan struct{}, spool *sandbox.Spool) bool {
	if m == nil {
		return false
	}
	defer m.search.rest()
	for stream := sandbox.Stdout; stream <= sandbox.Stderr; stream++ {
		if m.lookAt(ctx, ended, spool, stream) {
			return true
		}
	}
	return false
}

func (m *matcher) lookAt(ctx context.Context, ended <-chan struct{}, spool *sandbox.Spool, stream sandbox.Stream) bool {
	if m.next[stream] < 0 {
		m.next[stream] = max(0, spool.Total(stream)+m.next[stream])
	}
	for end := spool.Total(stream); m.next[stream] < end && ctx.Err() == nil; {
		select {
		case <-ended:
			return false
		default:
		}
		if !m.search.on(ctx.Done(), ended) {
			return false
		}
		chunk, err := spool.Read(stream, m.next[stream], m.pattern.part(64<<10))
		if err != nil {
			m.skip(stream, end)
			return false
		}
		m.skip(stream, chunk.Offset) // what lay between was dropped
		if len(chunk.Data) == 0 {
			return false
		}
		window := m.window[stream]
		window = append(window, chunk.Data...)
		if m.pattern.Match(window) {
			return true
		}
		m.window[stream] = keepEnd(window)
		m.next[stream] = chunk.Offset + int64(len(chunk.Data))
	}
	return false
}

// skip goes on to an offset without a look at what lies before it.
func (m *matcher) skip(stream sandbox.Stream, to int64) {
	if to > m.next[stream] {
		m.skipped += to - m.next[stream]
		m.next[stream], m.window[stream] = to, nil
	}
}

// skippedNote tells that a wait has not seen all output; nil when it has.
func (m *matcher) skippedNote() []sandbox.Note {
	if m == nil || m.skipped == 0 {
		return nil
	}
	return []sandbox.Note{{Code: "wait_gap", Text: fmt.Sprintf("%d bytes of output are no longer kept and were not searched for wait_for", m.skipped)}}
}

// keepEnd is the end of the window, from the beginning of a line where it has
// one, so that ^ does not match inside a line.
func keepEnd(window []byte) []byte {
	if len(window) > matchWindow {
		window = window[len(window)-matchWindow:]
		if i := bytes.IndexByte(window, '\n'); i >= 0 {
			window = window[i+1:]
		}
	}
	return bytes.Clone(window)
}

// describeExec is what progress tells of a running exec: for how long, how much
// output, and its last line.
func describeExec(e *sandbox.Exec) func() string {
	return func() string {
		spool := e.Spool()
		text := fmt.Sprintf("%d bytes of output", spool.Total(sandbox.Stdout)+spool.Total(sandbox.Stderr))
		if line := lastLine(spool, sandbox.Stdout); line != "" {
			return text + ": " + line
		}
		if line := lastLine(spool, sandbox.Stderr); line != "" {
			return text + ": " + line
		}
		return text
	}
}

func lastLine(spool *sandbox.Spool, stream sandbox.Stream) string {
	const most = 200
	total := spool.Total(stream)
	chunk, err := spool.Read(stream, max(0, total-most), most)
	if err != nil {
		return ""
	}
	text := bytes.TrimRight(chunk.Data, "\r\n")
	text = text[bytes.LastIndexByte(text, '\n')+1:]
	for len(text) > 0 && !utf8.RuneStart(text[0]) {
		text = text[1:]
	}
	return strings.ToValidUTF8(string(text), "�")
}

// seconds is a client's number of seconds, without overflow.
func seconds(n int64) time.Duration {
	return time.Duration(min(n, 1_000_000_000)) * time.Second
}
