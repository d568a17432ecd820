package executor

import (
	"bytes"
	"fmt"
	"time"
	"unicode/utf8"

	"caisson/executor/wire"
	"caisson/sandbox"
)

// The bounds of what is taken of a worker's output, whatever it prints.
const (
	mostResult  = 8 << 20  // the result's block, in bytes
	mostSmall   = 64 << 10 // a block that is read without a place among the large ones
	mostLine    = 64 << 10 // a line outside the block that may be a marker or progress
	mostStderr  = 4 << 10  // a line of standard error that is told
	mostLines   = 1000     // lines of standard error that are told of one call
	tailShown   = 4 << 10  // of an output without a result
	progressGap = 20 * time.Millisecond
)

// output reads what a worker prints, as it comes: progress, the block of the
// result, chatter, of which it keeps the end, and the lines of standard error. It
// keeps no more than its bounds. One goroutine uses it at a time.
type output struct {
	nonce string
	watch Watch
	scrub *scrubber
	whose sandbox.Owner
	large *largeResults
	holds bool               // a place among the large results, until close
	ends  [2]<-chan struct{} // end the wait for one
	list  bool               // the result is a toolkit's list of tools, which is taken whole

	line   []byte // the line that has not ended
	long   bool   // and is too long to be anything but chatter
	inside bool   // between the markers
	whole  bool   // the end marker has come
	kept   bytes.Buffer
	over   bool // the block is larger than its bound
	late   bool // the call ended before there was a place for it
	gap    bool // something in between is missing
	tail   []byte
	cut    bool // there was more chatter than the tail has

	done float64   // of the last progress
	told time.Time // when it was

	errLine []byte
	lines   int
}

// newOutput makes one for a call on a site. close gives back what it holds; a closed
// ends channel means that nobody waits for the result any more.
func newOutput(e Envelope, w Watch, p *site, ends ...<-chan struct{}) *output {
	o := &output{nonce: e.Nonce, watch: w, scrub: p.scrub, whose: p.owner, large: p.large, list: e.ToolPath == ToolkitListPath, done: -1}
	copy(o.ends[:], ends)
	return o
}

// close gives the place among the large results back. Closing again is harmless.
func (o *output) close() {
	if o.holds {
		o.holds = false
		o.kept, o.line = bytes.Buffer{}, nil
		o.large.leave(o.whose)
	}
}

// admit says whether a block may grow to a size, for which it may have to wait.
func (o *output) admit(size int) bool {
	if size > mostSmall && !o.holds && !o.late {
		o.holds = o.large.enter(o.whose, o.ends)
		o.late = !o.holds
	}
	return !o.late
}

// stdout takes the next bytes of standard output.
func (o *output) stdout(p []byte) {
	for len(p) > 0 {
		i := bytes.IndexByte(p, '\n')
		if i < 0 {
			o.part(p)
			return
		}
		o.part(p[:i])
		o.lineEnd()
		p = p[i+1:]
	}
}

// part takes a piece of a line.
func (o *output) part(p []byte) {
	limit := mostLine
	if o.inside {
		limit = mostResult
	}
	if o.long || len(o.line)+len(p) > limit {
		o.chatter(o.line)
		o.chatter(p)
		o.line, o.long = o.line[:0], true
		o.over = o.over || o.inside
		return
	}
	if !o.inside || o.admit(o.kept.Len()+len(o.line)+len(p)) {
		o.line = append(o.line, p...)
	}
}

// lineEnd takes the end of a line.
func (o *output) lineEnd() {
	line := o.line
	if o.line = o.line[:0]; cap(line) > mostLine {
		o.line = nil // one long line does not cost its memory until the end
	}
	begin, end := wire.Marker(line, o.nonce)
	switch {
	case o.long:
		o.long = false
		o.chatter([]byte("\n"))
	case begin, end:
		o.inside = begin
		o.whole = o.whole || end
		o.keep(line)
	case o.inside:
		o.keep(line)
	default:
		if p, ok := wire.ReadProgress(line, o.nonce); ok {
			o.tell(p)
			return
		}
		o.chatter(line)
		o.chatter([]byte("\n"))
	}
}

// keep keeps a line of the block.
func (o *output) keep(line []byte) {
	if o.kept.Len()+len(line) > mostResult+mostLine {
		o.over = true
		return
	}
	if !o.admit(o.kept.Len() + len(line)) {
		return
	}
	o.kept.Write(line)
	o.kept.WriteByte('\n')
}

// chatter keeps the end of what is no part of a result: as much as is shown, and
// a value of the environment more, so that none is cut in two before it is found.
func (o *output) chatter(p []byte) {
	most := tailShown + o.scrub.longest
	if extra := len(p) - most; extra > 0 {
		o.tail, p, o.cut = o.tail[:0], p[extra:], true
	}
	o.tail = append(o.tail, p...)
	if extra := len(o.tail) - most; extra > most { // now and then, not for each piece
		o.tail, o.cut = append(o.tail[:0], o.tail[extra:]...), true
	}
}

// lastWords is the end of the chatter as it may be shown.
func (o *output) lastWords() string {
	tail := o.scrub.bytes(o.tail)
	if o.cut {
		tail = tail[min(o.scrub.longest, len(tail)):] // it may begin in the middle of a value
	}
	return cutText(tail[max(0, len(tail)-tailShown):])
}

// tell passes progress on: rising, and not faster than anybody reads.
func (o *output) tell(p Progress) {
	if o.scrub.number(p.Done) || o.scrub.number(p.Total) {
		return
	}
	if o.watch.Progress == nil || p.Done <= o.done || time.Since(o.told) < progressGap {
		return
	}
	o.done, o.told = p.Done, time.Now()
	p.Total, p.Text = max(p.Total, 0), o.scrub.text(clean(p.Text))
	o.watch.Progress(p)
}

// stderr takes the next bytes of standard error.
func (o *output) stderr(p []byte) {
	if o.watch.Stderr == nil {
		return
	}
	for len(p) > 0 {
		i := bytes.IndexByte(p, '\n')
		piece := p
		if i >= 0 {
			piece = p[:i]
		}
		if room := mostStderr + o.scrub.longest - len(o.errLine); room > 0 {
			o.errLine = append(o.errLine, piece[:min(room, len(piece))]...)
		}
		if i < 0 {
			return
		}
		o.errLineEnd()
		p = p[i+1:]
	}
}

func (o *output) errLineEnd() {
	line := o.errLine
	o.errLine = o.errLine[:0]
	if o.lines++; o.lines > mostLines || len(bytes.TrimSpace(line)) == 0 {
		return
	}
	o.watch.Stderr(cutAt(o.scrub.text(cutText(line)), mostStderr))
}

// finish takes what has no line end.
func (o *output) finish() {
	if len(o.line) > 0 {
		o.lineEnd()
	}
	if len(o.errLine) > 0 {
		o.errLineEnd()
	}
	if left := o.lines - mostLines; left > 0 {
		o.watch.Stderr(fmt.Sprintf("(%d lines more)", left))
	}
}

// result is what was found, scrubbed; found says that it is the tool's own result.
// Without one the failure says why, after what is given of the worker's end.
func (o *output) result(ending string) (r Result, found bool) {
	var fault string
	switch {
	case o.over:
		fault = fmt.Sprintf("the tool's result is larger than %d MiB", mostResult>>20)
	case o.late:
		fault = "the tool's result is large, and too many such were read at that time; call again when other calls have ended"
	case o.gap:
		fault = "the tool printed more than could be kept, and its result was not whole"
	default:
		r, fault = wire.FindResult(o.kept.Bytes(), o.nonce)
		switch fault {
		case "":
			r = o.scrub.result(r)
			if !o.list {
				r = wire.Bounded(r, wire.MostValue)
			}
			return r, true
		case wire.Unreadable: // said with a part of it
			return ReadResult(o.scrub.bytes(o.kept.Bytes()), o.nonce), false
		}
	}
	if ending != "" {
		fault += ": " + ending
	}
	if words := o.lastWords(); words != "" {
		fault += "; its output ends: " + words
	}
	return Failure(StatusError, fault), false
}

// cutText makes a piece of an output fit for a text: cut characters and bytes that
// are none are replaced.
func cutText(piece []byte) string {
	for len(piece) > 0 && !utf8.RuneStart(piece[0]) {
		piece = piece[1:]
	}
	return string(bytes.ToValidUTF8(piece, []byte("\uFFFD")))
}

// cutAt cuts a text at a bound in bytes, before a character.
func cutAt(text string, most int) string {
	if len(text) <= most {
		return text
	}
	for most > 0 && !utf8.RuneStart(text[most]) {
		most--
	}
	return text[:most] + "…"
}
