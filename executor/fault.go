package executor

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"caisson/internal/nearest"
)

// Position is where something stands in a manifest, counted from 1.
type Position struct{ Line, Column int }

// Fault is one thing that is wrong with a manifest. Its text is safe to print: it
// repeats no value of an environment.
type Fault struct {
	File string
	Position
	Text string
}

func (f Fault) String() string {
	if f.Line == 0 {
		return f.File + ": " + f.Text
	}
	return fmt.Sprintf("%s:%d:%d: %s", f.File, f.Line, f.Column, f.Text)
}

// Faults is every fault of one manifest, in the order of the file. It is the
// error that Parse returns.
type Faults []Fault

// Error gives one line for each fault.
func (f Faults) Error() string {
	lines := make([]string, len(f))
	for i, fault := range f {
		lines[i] = fault.String()
	}
	return strings.Join(lines, "\n")
}

// faults collects while a manifest is read.
type faults struct {
	file string
	all  Faults
	more int // past the most that are told
}

// mostFaults is how many faults are told: nobody mends more at once.
const mostFaults = 200

func (f *faults) add(at Position, format string, args ...any) {
	if len(f.all) >= mostFaults {
		f.more++
		return
	}
	f.all = append(f.all, Fault{File: f.file, Position: at, Text: fmt.Sprintf(format, args...)})
}

func (f *faults) sorted() Faults {
	slices.SortStableFunc(f.all, func(a, b Fault) int {
		return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
	})
	if f.more > 0 {
		f.all = append(f.all, Fault{File: f.file, Text: fmt.Sprintf("%d more", f.more)})
	}
	return f.all
}

// mostShown is how much of a value a fault repeats.
const mostShown = 60

// shown quotes a value of the file, shortened.
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

// meant is the end of a sentence about a wrong name: the nearest known one, or
// all of them where none is near.
func meant(name string, known []string) string {
	if likely := nearest.Likely(name, known); likely != "" {
		return fmt.Sprintf("did you mean %s?", likely)
	}
	return "known are " + list(known)
}

// list joins names as a sentence does.
func list(names []string) string {
	switch n := len(names); n {
	case 0:
		return "none"
	case 1:
		return names[0]
	default:
		return strings.Join(names[:n-1], ", ") + " and " + names[n-1]
	}
}

// printable says whether a text is one line that a terminal shows as it is.
func printable(text string) bool {
	return utf8.ValidString(text) && !strings.ContainsFunc(text, func(r rune) bool { return !unicode.IsPrint(r) })
}
