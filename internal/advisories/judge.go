package main

import (
	"errors"
	"fmt"
	"go/version"
	"io"
	"maps"
	"regexp"
	"slices"
	"strings"
)

// page is what the page on security says of known advisories.
type page struct {
	reasons map[string]string // by id
	floor   string            // the Go version, as go1.26.10, that a release is built with at least
}

var (
	reasonLine = regexp.MustCompile(`(?m)^\| (GO-\d{4}-\d+) \| [^|]+ \| ([^|]+) \|$`)
	floorLine  = regexp.MustCompile(`(?m)^\| Go standard library \| (go[\d.]+) \| [^|]+ \|$`)
)

func readPage(text string) page {
	p := page{reasons: map[string]string{}}
	for _, m := range reasonLine.FindAllStringSubmatch(text, -1) {
		p.reasons[m[1]] = strings.TrimSpace(m[2])
	}
	if m := floorLine.FindStringSubmatch(text); m != nil {
		p.floor = m[1]
	}
	return p
}

// judge writes a line for each finding and fails for each that nobody has given a
// reason for, each that an upgrade mends, and each reason that has had its day. What
// a newer Go mends is told and passed where the page asks releases for that Go.
func judge(out io.Writer, s scan, p page) error {
	var wrong []error
	fail := func(format string, args ...any) { wrong = append(wrong, fmt.Errorf(format, args...)) }
	newest := ""
	for _, id := range slices.Sorted(maps.Keys(s.findings)) {
		f := s.findings[id]
		reach := "not called"
		if f.called {
			reach = "reachable"
		}
		line := fmt.Sprintf("%s, %s, %s: %s", f.id, f.module, reach, f.summary)
		switch {
		case f.module == "stdlib" && f.fixed != "":
			mended := "go" + strings.TrimPrefix(f.fixed, "v")
			if newest == "" || version.Compare(mended, newest) > 0 {
				newest = mended
			}
			_, _ = fmt.Fprintf(out, "  %s; mended in %s, this is %s\n", line, mended, s.goVersion)
		case f.fixed != "":
			fail("%s: %s mends it, upgrade", line, f.fixed)
		case p.reasons[id] == "":
			fail("%s: nothing mends it, and the page gives no reason why that may be", line)
		default:
			_, _ = fmt.Fprintf(out, "  %s; known: %s\n", line, p.reasons[id])
		}
	}
	if newest != "" && (p.floor == "" || version.Compare(newest, p.floor) > 0) {
		fail("the standard library is mended in %s, and the page asks releases for %q", newest, p.floor)
	}
	for _, id := range slices.Sorted(maps.Keys(p.reasons)) {
		if _, found := s.findings[id]; !found {
			fail("%s is explained on the page and found no more: take its line out", id)
		}
	}
	return errors.Join(wrong...)
}
