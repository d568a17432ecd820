package wrapper

import (
	"bytes"
	"strings"
)

// Report is what a stop found.
type Report struct {
	// Found: there was a process group of the command's, and it was signalled.
	Found bool
	// Status is the command's exit status, 0 to 255, 128+n for a signal n; -1 when it
	// is not known.
	Status int
	// Held: a process that left the group still holds the output (STP-5).
	Held bool
	// Unreadable: the open files of a process that could hold it cannot be read (STP-6).
	Unreadable bool
	// Failed is empty or one of the Failed constants.
	Failed string
	// Marker: the stop left its marker, by which a command that starts later ends with
	// 137 before it runs (STP-11).
	Marker bool
}

// Why a stop failed.
const (
	// FailedStatus: the group was killed, its status did not come within 2 s (STP-9).
	FailedStatus = "status_unknown"
	// FailedUnreadable: see [Report.Unreadable].
	FailedUnreadable = "unreadable"
	// FailedStarting: the wrapper was there but its command had not begun after 2 s.
	// The marker ends it when it does.
	FailedStarting = "starting"
	// FailedFork: the stop could not start a process of its own.
	FailedFork = "fork"
	// FailedSignal: the signal is not one that can be sent.
	FailedSignal = "signal"
)

// ParseReport looks for the report of the stop of command id in the stop's stdout so
// far. It returns false while there is no whole and well-formed report line: other
// lines, an engine's refusal among them, are passed over, and of several reports the
// first counts.
func ParseReport(id string, out []byte) (Report, bool) {
	for {
		line, rest, whole := bytes.Cut(out, []byte{'\n'})
		if !whole {
			return Report{}, false
		}
		if body, ok := bytes.CutPrefix(line, []byte("tai-stop:"+id+":")); ok {
			if r, ok := parseReport(string(body)); ok {
				return r, true
			}
		}
		out = rest
	}
}

// parseReport takes the fields exactly as the script writes them.
func parseReport(body string) (Report, bool) {
	keys := [...]string{"found=", "status=", "held=", "unreadable=", "marker=", "failed="}
	words := strings.Split(body, " ")
	if len(words) != len(keys) {
		return Report{}, false
	}
	for i, key := range keys {
		value, ok := strings.CutPrefix(words[i], key)
		if !ok {
			return Report{}, false
		}
		words[i] = value
	}
	r := Report{Status: -1, Failed: words[5]}
	if words[1] != "-1" {
		code, ok := exitCode(words[1])
		if !ok {
			return Report{}, false
		}
		r.Status = code
	}
	for _, f := range []struct {
		word string
		flag *bool
	}{{words[0], &r.Found}, {words[2], &r.Held}, {words[3], &r.Unreadable}, {words[4], &r.Marker}} {
		switch f.word {
		case "0":
		case "1":
			*f.flag = true
		default:
			return Report{}, false
		}
	}
	switch r.Failed {
	case "", FailedStatus, FailedUnreadable, FailedStarting, FailedFork, FailedSignal:
		return r, true
	}
	return Report{}, false
}
