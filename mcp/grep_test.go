package mcp_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"caisson/mcp"
	"caisson/sandbox"
)

// numbers is a spool with the numbers from 1 on, one a line, like seq.
func numbers(t *testing.T, n int) *sandbox.Spool {
	t.Helper()
	spools, err := sandbox.NewSpools(sandbox.SpoolLimits{Memory: 64 << 10, Disk: 64 << 20, Total: 256 << 20, Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	spool := spools.New()
	t.Cleanup(func() { _ = spool.Close() })
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "%d\n", i+1)
	}
	spool.Append(sandbox.Stdout, []byte(b.String()))
	return spool
}

func never() bool { return false }

// TestBugSZ01_SearchingALongOutputIsLinear searches many short lines, which must
// not be read from the spool one by one.
func TestBugSZ01_SearchingALongOutputIsLinear(t *testing.T) {
	// Line by line from the spool this took most of a minute.
	spool := numbers(t, 100_000)
	started := time.Now()
	found, next, cut := mcp.Grep(spool, "^(7|49999|100000)$", 0, 1000, never)
	if found != "7\n49999\n100000\n" || next != spool.Total(sandbox.Stdout) || cut {
		t.Errorf("%q, next %d, cut %v", found, next, cut)
	}
	if took := time.Since(started); took > 10*time.Second {
		t.Errorf("it took %v", took)
	}
}

// TestBugSZ01_SearchStopsWhenTheTimeIsOver goes on, read by read, from where
// each had to stop, and misses nothing.
func TestBugSZ01_SearchStopsWhenTheTimeIsOver(t *testing.T) {
	spool := numbers(t, 1000)
	var all string
	reads := 0
	for at := int64(0); at < spool.Total(sandbox.Stdout); reads++ {
		left := 300
		found, next, cut := mcp.Grep(spool, "99", at, 1000, func() bool { left--; return left <= 0 })
		if next <= at || cut != (next < spool.Total(sandbox.Stdout)) {
			t.Fatalf("from %d to %d, cut %v", at, next, cut)
		}
		all += found
		at = next
	}
	if reads < 3 || strings.Count(all, "99") != 19 {
		t.Errorf("%d reads: %q", reads, all)
	}
	if found, next, cut := mcp.Grep(spool, "1", 0, 1000, func() bool { return true }); found != "1\n" || next != 2 || !cut {
		t.Errorf("no time at all: %q, next %d, cut %v", found, next, cut)
	}
}

// TestBugSZ01_LongLinesAreSearchedInParts cuts a line that is too long, never
// inside a character.
func TestBugSZ01_LongLinesAreSearchedInParts(t *testing.T) {
	spool := numbers(t, 1)
	line := strings.Repeat("€", 700_000)
	spool.Append(sandbox.Stdout, []byte(line+"\nend"))
	found, next, cut := mcp.Grep(spool, "€|end", 0, 1_000_000, never)
	if found != line+"\nend" || next != spool.Total(sandbox.Stdout) || cut {
		t.Errorf("%d bytes, next %d, cut %v", len(found), next, cut)
	}
}

// TestBugSZ01_SearchSaysWhereItGoesOn lets a call's time run out before it searches.
func TestBugSZ01_SearchSaysWhereItGoesOn(t *testing.T) {
	r := newRig(t)
	c := r.dial("inprocess", legacy)
	id := c.ok("exec", args{"command": "echo one; echo two; echo three"}).str("exec_id")
	r.server.Hurry(time.Nanosecond, time.Second, time.Second)
	got := c.ok("exec_output", args{"exec_id": id, "stdout_offset": 0, "grep": "o"})
	if got.str("stdout") != "one\n" || got.num("stdout_next") != 4 || !strings.Contains(got.noteCodes(), "grep_cut") || !strings.Contains(got.text, "stdout_offset 4") || got.fields["truncated"] != true {
		t.Errorf("%v\n%s", got.fields, got.text)
	}
	r.server.Hurry(45*time.Second, time.Second, time.Second)
	if got = c.ok("exec_output", args{"exec_id": id, "grep": "o"}); got.str("stdout") != "two\n" || got.noteCodes() != "" {
		t.Errorf("%v\n%s", got.fields, got.text)
	}
}

// TestBugSZ01_WaitForStopsLookingWhenTheTimeIsOver does not match a long output
// to its end for a caller that has gone.
func TestBugSZ01_WaitForStopsLookingWhenTheTimeIsOver(t *testing.T) {
	spool := numbers(t, 400_000)
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if looked, found := mcp.LookTwice(t.Context(), ended, spool, "^399999$"); looked != 0 || !found {
		t.Errorf("looked at %d bytes, found %v", looked, found)
	}
}

// TestWrongPatternsAreShownAsTheyWereSent names what is wrong with a
// pattern without what is put before it.
func TestWrongPatternsAreShownAsTheyWereSent(t *testing.T) {
	c := newRig(t).dial("inprocess", legacy)
	for _, pattern := range []string{"(", "a)", "(?=x)", "[", "x{2000}", `\p{No}x**`} {
		got := c.want("invalid_argument", "exec", args{"command": "true", "wait_for": pattern})
		if strings.Contains(got.text, "(?m") || !strings.Contains(got.text, "RE2") {
			t.Errorf("%s: %s", pattern, got.text)
		}
	}
}
