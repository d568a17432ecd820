package docker

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"

	"caisson/sandbox"
)

// frame collects the output of a script that prints a header, a content and a
// trailer: "F SIZE MODE START OFFSET" or "D" on a line, the content, and on a
// line of its own the transfer's id, a status and a sum.
type frame struct {
	id   string
	max  int
	hold *holdOpen
	buf  []byte
}

// errFrameFull ends a transfer that brings more than was asked for.
var errFrameFull = errors.New("more output than was asked for")

const (
	frameSlack   = 4 << 10 // header and trailer
	trailerBytes = 200
)

// Write keeps p, and lets the script end once its trailer or its report is there.
func (f *frame) Write(p []byte) (int, error) {
	if len(f.buf)+len(p) > f.max+frameSlack {
		return 0, errFrameFull
	}
	f.buf = append(f.buf, p...)
	if _, ok := f.trailer(); ok || bytes.HasPrefix(f.buf, []byte("E ")) {
		f.hold.release()
	}
	return len(p), nil
}

// trailer returns where the trailer begins.
func (f *frame) trailer() (int, bool) {
	if !bytes.HasSuffix(f.buf, []byte("\n")) {
		return 0, false
	}
	from := max(0, len(f.buf)-trailerBytes)
	at := bytes.LastIndex(f.buf[from:], []byte("\n"+f.id+" "))
	return from + at, at >= 0
}

// framed is a frame that is whole.
type framed struct {
	dir         bool
	size        int64
	mode        string
	start, off  int64 // where content begins, and where what was asked for does
	content     []byte
	status      int
	sum, stderr string
}

func (f *frame) parse() (framed, error) {
	at, ok := f.trailer()
	if !ok {
		return framed{}, errors.New("no trailer")
	}
	var out framed
	var sum string
	if _, err := fmt.Sscanf(string(f.buf[at+1+len(f.id):]), "%d %s", &out.status, &sum); err != nil {
		return framed{}, err
	}
	if len(sum) == 64 {
		out.sum = sum
	}
	header, rest, _ := bytes.Cut(f.buf[:at+1], []byte("\n"))
	out.content = rest[:max(0, len(rest)-1)] // without the line end in front of the trailer
	if string(header) == "D" {
		out.dir = true
		return out, nil
	}
	_, err := fmt.Sscanf(string(header), "F %d %s %d %d", &out.size, &out.mode, &out.start, &out.off)
	return out, err
}

// fetch runs a script that prints a frame with a content of at most most bytes.
// One that brings more gives errFrameFull as the cause of KindTooLarge.
func (t fileTools) fetch(ctx context.Context, op, id, script string, args []string, most int) (framed, error) {
	hold := newHoldOpen()
	out := &frame{id: id, max: most, hold: hold}
	words := &bounded{max: wordsMax}
	code, err := t.run.pipe(ctx, fileArgv(script, args...), hold, out, words)
	switch {
	case errors.Is(err, errFrameFull):
		return framed{}, sandbox.Errorf(op, sandbox.KindTooLarge, "larger than the %d bytes that one call carries", sandbox.FilePieceLimit).Because(err)
	case err != nil:
		return framed{}, err
	case code != 0 || strings.HasPrefix(string(out.buf[:min(2, len(out.buf))]), "E "):
		return framed{}, scriptFailure(op, string(out.buf[:min(len(out.buf), reportMax)]), words.String(), code)
	}
	got, err := out.parse()
	if err != nil {
		return framed{}, errCut(op).Because(err)
	}
	got.stderr = words.String()
	return got, nil
}
