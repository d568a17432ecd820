package cli

import (
	"strings"
	"unicode/utf8"
)

// level is how serious a finding is.
type level string

// The levels; one that fails makes doctor fail.
const (
	levelOK   level = "ok"
	levelWarn level = "warn"
	levelFail level = "FAIL"
)

// finding is one line of doctor's report.
type finding struct {
	level  level
	name   string // what was looked at: "engine"
	detail string // what was found
	mend   string // what to do about it; empty where nothing is to be done
}

// colour is the escape that begins a level's colour.
func (l level) colour() string {
	switch l {
	case levelOK:
		return "\x1b[32m"
	case levelWarn:
		return "\x1b[33m"
	default:
		return "\x1b[31m"
	}
}

const colourEnd = "\x1b[0m"

// report lays findings out: level, name and detail in columns, and the mend on
// a line of its own below the detail.
func report(findings []finding, colours bool) string {
	width := 0
	for _, f := range findings {
		width = max(width, utf8.RuneCountInString(f.name))
	}
	indent := strings.Repeat(" ", len("FAIL")+2+width+2)
	var b strings.Builder
	for _, f := range findings {
		word := string(f.level) + strings.Repeat(" ", len("FAIL")-len(f.level))
		if colours {
			word = f.level.colour() + word + colourEnd
		}
		b.WriteString(word + "  " + f.name + strings.Repeat(" ", width-utf8.RuneCountInString(f.name)) + "  ")
		b.WriteString(below(f.detail, indent) + "\n")
		if f.mend != "" {
			b.WriteString(indent + below(f.mend, indent) + "\n")
		}
	}
	return b.String()
}

// below indents the lines of a text after its first.
func below(text, indent string) string {
	return strings.ReplaceAll(strings.TrimSpace(text), "\n", "\n"+indent)
}

// failed says whether anything fails.
func failed(findings []finding) bool {
	for _, f := range findings {
		if f.level == levelFail {
			return true
		}
	}
	return false
}
