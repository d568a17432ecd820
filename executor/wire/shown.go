package wire

import (
	"errors"
	"fmt"
	"unicode/utf8"

	"caisson/sandbox"
)

// mostShown is how much of a value an error repeats, in bytes.
const mostShown = 60

// shown quotes a value, shortened.
func shown(value string) string {
	if len(value) > mostShown {
		cut := mostShown
		for cut > 0 && !utf8.RuneStart(value[cut]) {
			cut--
		}
		value = value[:cut] + "…"
	}
	return fmt.Sprintf("%q", value)
}

// textOf is the sentence of an error of ours.
func textOf(err error) string {
	var e *sandbox.Error
	if errors.As(err, &e) {
		return e.Text
	}
	return err.Error()
}
