package cli

import (
	"io"

	"caisson/settings"
)

// showProgress writes one line on a terminal while long work goes on, and
// returns what takes it away again. On anything but a terminal it shows nothing:
// there it would be noise between the lines that matter.
func showProgress(out io.Writer, text string) (clear func()) {
	if !settings.IsTerminal(out) {
		return func() {}
	}
	// Decoration: a terminal that is gone misses it.
	_, _ = io.WriteString(out, text)
	return func() { _, _ = io.WriteString(out, "\r\x1b[K") }
}
