package wrapper

import (
	"bytes"
	"strconv"
	"strings"
)

// Stream is one of the two streams of a command's output.
type Stream int

// The streams.
const (
	Stdout Stream = iota
	Stderr
)

// EventKind says what the wrapper told in the middle of a stream.
type EventKind int

// The kinds of events.
const (
	// Exited: the command's own process has ended with Code, and another process still
	// holds the output. The command counts as running until the exec ends (EXW-11).
	Exited EventKind = iota
	// EndOfStream: Stream has ended whole. Bytes that follow take it back.
	EndOfStream
	// Refused: the wrapper ran nothing, for Reason; the exec ends with 126. It tells
	// that 126 from the command's own and from the engine's.
	Refused
)

// Event is one thing that the wrapper told.
type Event struct {
	Kind   EventKind
	Stream Stream
	// Code is the exit code of an Exited event, 0 to 255.
	Code int
	// Reason is the text of a Refused event, without a line end.
	Reason string
}

// maxMarker bounds what is held back while a marker's line end is awaited. A refusal
// names a few files; everything else is shorter.
const maxMarker = 4096

// Filter tells what a command wrote from what the wrapper wrote between. There is one
// for each exec; it must not be used concurrently.
//
// A command can read its own id and write markers itself. What it gains is a false word
// about itself: an end is believed only as the last thing of a stream, a refusal only as
// the first, and neither ever removes a byte of what another process wrote.
type Filter struct {
	prefix  []byte
	streams [2]side
}

// side is the state of one stream.
type side struct {
	held    []byte // not yet handed out: may be, or is, a marker
	out     []byte // what the last Feed returned
	ended   bool   // held is an end marker
	content bool   // the command wrote something
}

// NewFilter returns the filter for the command id.
func NewFilter(id string) *Filter {
	return &Filter{prefix: []byte("tai-exec:" + id + ":")}
}

// Feed takes the next bytes of stream s, in whatever pieces they arrive, and returns the
// command's own bytes among them and what the wrapper told. The bytes are valid until
// the next call. A refusal's text is part of the content too, as a line for people.
func (f *Filter) Feed(s Stream, p []byte) (content []byte, events []Event) {
	d := &f.streams[s]
	if len(p) == 0 {
		return nil, nil
	}
	buf := p
	if len(d.held) > 0 {
		buf = append(d.held, p...)
	} else if f.next(p) == len(p) {
		d.content = true
		return p, nil
	}
	d.out = d.out[:0]
	if d.ended {
		// More came, so that end was the command's own writing.
		d.ended = false
		d.emit(buf[:len(d.held)])
		buf = buf[len(d.held):]
	}
	for len(buf) > 0 {
		i := f.next(buf)
		d.emit(buf[:i])
		buf = buf[i:]
		if len(buf) == 0 {
			break
		}
		n, ev, state := f.marker(s, d, buf)
		switch state {
		case partial:
			d.held = append(d.held[:0], buf...)
			return d.out, events
		case foreign:
			d.emit(buf[:1])
			buf = buf[1:]
			continue
		case whole:
		}
		if ev.Kind == EndOfStream && n < len(buf) {
			d.emit(buf[:n])
			buf = buf[n:]
			continue
		}
		events = append(events, ev)
		switch ev.Kind {
		case EndOfStream:
			d.ended = true
			d.held = append(d.held[:0], buf...)
			return d.out, events
		case Refused:
			d.emit([]byte("tai-exec: " + ev.Reason + "\n"))
		case Exited:
		}
		buf = buf[n:]
	}
	d.held = d.held[:0]
	return d.out, events
}

// Flush returns what was held back of stream s when it ended. It is empty when the
// stream ended with its marker, whole or cut.
func (f *Filter) Flush(s Stream) []byte {
	d := &f.streams[s]
	if d.ended || bytes.HasPrefix(d.held, f.prefix) {
		return nil
	}
	held := d.held
	d.held = nil
	return held
}

// Complete reports whether both streams have ended with the wrapper's marker, so that
// nothing of the output was lost on its way (D27).
func (f *Filter) Complete() bool {
	return f.streams[Stdout].ended && f.streams[Stderr].ended
}

func (d *side) emit(p []byte) {
	if len(p) > 0 {
		d.content = true
		d.out = append(d.out, p...)
	}
}

// next returns where the first marker in buf may begin, len(buf) where none can.
func (f *Filter) next(buf []byte) int {
	if i := bytes.Index(buf, f.prefix); i >= 0 {
		return i
	}
	for i := max(0, len(buf)-len(f.prefix)+1); i < len(buf); i++ {
		if bytes.HasPrefix(f.prefix, buf[i:]) {
			return i
		}
	}
	return len(buf)
}

// What a text that begins like a marker can be.
const (
	foreign = iota // no marker
	partial        // more bytes are needed to tell
	whole          // a marker
)

// marker reads the marker at the start of buf and returns its length and meaning.
func (f *Filter) marker(s Stream, d *side, buf []byte) (n int, ev Event, state int) {
	if len(buf) < len(f.prefix) {
		return 0, ev, partial
	}
	body := buf[len(f.prefix):]
	i := bytes.IndexByte(body, '\n')
	if i < 0 {
		if len(body) > maxMarker {
			return 0, ev, foreign
		}
		return 0, ev, partial
	}
	n = len(f.prefix) + i + 1
	word, rest, _ := strings.Cut(string(body[:i]), " ")
	ev.Stream = s
	switch {
	case word == "end" && i == len("end"):
		ev.Kind = EndOfStream
		return n, ev, whole
	case word == "exited" && s == Stderr:
		code, ok := exitCode(rest)
		if !ok {
			return 0, ev, foreign
		}
		ev.Kind, ev.Code = Exited, code
		return n, ev, whole
	case word == "refused" && s == Stderr && !d.content && rest != "":
		ev.Kind, ev.Reason = Refused, strings.ToValidUTF8(rest, "?")
		return n, ev, whole
	}
	return 0, ev, foreign
}

// exitCode reads a code the one way that the scripts write it.
func exitCode(s string) (int, bool) {
	n, err := strconv.Atoi(s)
	if err != nil || n < 0 || n > 255 || strconv.Itoa(n) != s {
		return 0, false
	}
	return n, true
}
