package cli

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"
)

func noDrops(t *testing.T) func(io.Writer, int) {
	return func(_ io.Writer, lines int) { t.Errorf("%d lines were dropped", lines) }
}

func TestStderrKeepsLinesInOrder(t *testing.T) {
	var out bytes.Buffer
	w := newStderr(&out, noDrops(t))
	var want strings.Builder
	for i := range 1000 {
		line := fmt.Sprintf("line %d\n", i)
		want.WriteString(line)
		_, _ = io.WriteString(w, line)
	}
	w.close()
	if out.String() != want.String() {
		t.Errorf("got %d bytes, want %d", out.Len(), want.Len())
	}
	if n, err := io.WriteString(w, "late\n"); n != 5 || err != nil {
		t.Errorf("a late line: %d, %v", n, err)
	}
	w.close() // a second time is harmless
}

// gate is a reader that reads nothing until it is opened.
type gate struct {
	open chan struct{}
	got  bytes.Buffer
}

func (g *gate) Write(p []byte) (int, error) {
	<-g.open
	return g.got.Write(p)
}

func TestBugMT03_AnUnreadStandardErrorHoldsNobodyUp(t *testing.T) {
	g := &gate{open: make(chan struct{})}
	told := 0
	w := newStderr(g, func(out io.Writer, lines int) {
		told += lines
		_, _ = fmt.Fprintf(out, "%d missing\n", lines)
	})
	const lines = stderrLines + 500
	began := time.Now()
	for i := range lines {
		_, _ = fmt.Fprintf(w, "%04d %s\n", i, strings.Repeat("x", 500))
	}
	if took := time.Since(began); took > 5*time.Second {
		t.Errorf("writing took %v", took)
	}
	close(g.open)
	w.close()
	kept := strings.Count(g.got.String(), "x\n")
	if told == 0 || kept+told != lines {
		t.Errorf("%d lines kept and %d told missing, of %d", kept, told, lines)
	}
}

func TestStderrGivesUpOnANobodyAtTheEnd(t *testing.T) {
	g := &gate{open: make(chan struct{})}
	w := newStderr(g, noDrops(t))
	_, _ = io.WriteString(w, "unheard\n")
	began := time.Now()
	w.close()
	if took := time.Since(began); took > 10*stderrFlush {
		t.Errorf("closing took %v", took)
	}
	close(g.open)
	<-w.done
}
