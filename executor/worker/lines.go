package worker

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"strings"
)

const (
	// longestLogged is how much of a line goes to the log, in bytes.
	longestLogged = 4 << 10
	// mostLogged bounds what one program may write to the log of a call, in bytes.
	mostLogged = 1 << 20
)

// readLines calls each with every line, without its end, until the stream ends. A
// line of more than most bytes is given once, cut, with whole false; the rest of it
// is read and thrown away. The slice is each's until it returns.
func readLines(r io.Reader, most int, each func(line []byte, whole bool)) error {
	b := bufio.NewReaderSize(r, 64<<10)
	var line []byte
	whole := true
	for {
		piece, err := b.ReadSlice('\n')
		ended := err == nil
		if ended {
			piece = piece[:len(piece)-1]
		}
		if room := most - len(line); len(piece) > room {
			piece, whole = piece[:max(0, room)], false
		}
		line = append(line, piece...)
		switch {
		case ended:
			each(line, whole)
			line, whole = line[:0], true
			if cap(line) > 1<<20 {
				line = nil // one long line does not cost its memory for ever
			}
		case !errors.Is(err, bufio.ErrBufferFull):
			if len(line) > 0 {
				each(line, whole)
			}
			return err
		}
	}
}

// logLines passes a program's standard error on, line by line and bounded, and keeps
// the end of it in last.
func logLines(r io.Reader, last io.Writer, log func(string)) {
	passed, left := 0, 0
	_ = readLines(r, longestLogged, func(line []byte, _ bool) {
		_, _ = last.Write(append(line, '\n'))
		if passed+len(line) > mostLogged {
			left++
			return
		}
		passed += len(line) + 1
		log(strings.ToValidUTF8(string(line), "\uFFFD"))
	})
	if left > 0 {
		log(fmt.Sprintf("%d more lines are left out", left))
	}
}

// tail keeps the end of what is written to it.
type tail struct {
	most int
	text []byte
	cut  bool
}

func newTail(most int) *tail { return &tail{most: most} }

// Write never fails.
func (t *tail) Write(p []byte) (int, error) {
	t.text = append(t.text, p...)
	if over := len(t.text) - t.most; over > 0 {
		t.text, t.cut = append(t.text[:0], t.text[over:]...), true
	}
	return len(p), nil
}

// String is the end of it, with a mark where something is missing before.
func (t *tail) String() string {
	text := strings.ToValidUTF8(string(t.text), "\uFFFD")
	if t.cut {
		return "…" + text
	}
	return text
}
