package strictyaml

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"caisson/internal/nearest"
)

// Position is where something stands in a file, counted from 1.
type Position struct{ Line, Column int }

// Fault is one thing that is wrong with a file. Its text is safe to print: it
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

// Faults is every fault of one file, in its order. It is an error.
type Faults []Fault

// Error gives one line for each fault.
func (f Faults) Error() string {
	lines := make([]string, len(f))
	for i, fault := range f {
		lines[i] = fault.String()
	}
	return strings.Join(lines, "\n")
}

// Collector collects what is wrong while a file is read. It belongs to one
// goroutine.
type Collector struct {
	File string // its name, as faults begin with it
	What string // the subject of sentences about all of it: "a manifest"
	All  Faults
	more int // past the most that are told
}

// mostFaults is how many Collector are told: nobody mends more at once.
const mostFaults = 200

// Add notes a fault.
func (f *Collector) Add(at Position, format string, args ...any) {
	if len(f.All) >= mostFaults {
		f.more++
		return
	}
	f.All = append(f.All, Fault{File: f.File, Position: at, Text: fmt.Sprintf(format, args...)})
}

// Sorted is every fault in the order of the file.
func (f *Collector) Sorted() Faults {
	slices.SortStableFunc(f.All, func(a, b Fault) int {
		return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
	})
	if f.more > 0 {
		f.All = append(f.All, Fault{File: f.File, Text: fmt.Sprintf("%d more", f.more)})
	}
	return f.All
}

// mostShown is how much of a value a fault repeats.
const mostShown = 60

// Shown quotes a value of the file, shortened.
func Shown(value string) string {
	if len(value) > mostShown {
		cut := mostShown
		for cut > 0 && !utf8.RuneStart(value[cut]) {
			cut--
		}
		value = value[:cut] + "…"
	}
	return fmt.Sprintf("%q", value)
}

// Meant is the end of a sentence about a wrong name: the nearest known one, or
// all of them where none is near.
func Meant(name string, known []string) string {
	if likely := nearest.Likely(name, known); likely != "" {
		return fmt.Sprintf("did you mean %s?", likely)
	}
	return "known are " + Join(known)
}

// Join joins names as a sentence does.
func Join(names []string) string {
	switch n := len(names); n {
	case 0:
		return "none"
	case 1:
		return names[0]
	default:
		return strings.Join(names[:n-1], ", ") + " and " + names[n-1]
	}
}

// Printable says whether a text is one line that a terminal shows as it is.
func Printable(text string) bool {
	return utf8.ValidString(text) && !strings.ContainsFunc(text, func(r rune) bool { return !unicode.IsPrint(r) })
}
