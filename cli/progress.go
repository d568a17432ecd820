package cli

import (
	"fmt"
	"io"

	"caisson/sandbox"
	"caisson/settings"
)

// progressLine is one line on a terminal that shows how far long work has come.
// On anything but a terminal it shows nothing: there it would be noise between
// the lines that matter. Calls must not overlap.
type progressLine struct {
	out   io.Writer
	shown bool
}

func newProgressLine(out io.Writer) *progressLine { return &progressLine{out: out} }

// stage shows a stage in the place of the last one (sandbox.Progress).
func (l *progressLine) stage(s sandbox.Stage) {
	if !settings.IsTerminal(l.out) {
		return
	}
	text := s.Text
	if s.Total > 0 {
		text += fmt.Sprintf(" %d %%", 100*s.Done/s.Total)
	}
	l.shown = true
	_, _ = fmt.Fprintf(l.out, "\r\x1b[K%s", text) // decoration: a terminal that is gone misses it
}

// clear takes the line away.
func (l *progressLine) clear() {
	if l.shown {
		l.shown = false
		_, _ = io.WriteString(l.out, "\r\x1b[K")
	}
}
