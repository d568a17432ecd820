package mcp_test

import (
	"strings"
	"testing"

	"caisson/mcp"
	"caisson/sandbox"
)

// A search over output of which the middle is no longer kept must not look like one
// over all of it.
func TestBugST05_ASearchSaysWhatItCouldNotLookAt(t *testing.T) {
	c := newRig(t).dial("inprocess", legacy)
	id := c.ok("exec", args{"command": "echo begin; fill 2500000; echo; echo NEEDLE; fill 2500000; echo; echo END"}).str("exec_id")
	plain := c.ok("exec_output", args{"exec_id": id, "stdout_offset": 0, "max_output_chars": 200_000})
	var gone args
	for _, o := range plain.list("omitted") {
		if o := o.(args); o["recoverable"] == false {
			gone = o
		}
	}
	for _, pattern := range []string{"NEEDLE|END", "NEEDLE", "begin|NEEDLE"} {
		got := c.ok("exec_output", args{"exec_id": id, "stdout_offset": 0, "grep": pattern})
		left := got.list("omitted")
		if len(left) != 1 || mustJSON(t, left[0]) != mustJSON(t, gone) || got.fields["truncated"] != true {
			t.Errorf("%s: omitted %v, not %v; truncated %v", pattern, left, gone, got.fields["truncated"])
		}
		if got.noteCodes() != "output_truncated" || !strings.Contains(got.text, "are no longer kept and were not searched") || got.num("stdout_next") != got.num("stdout_bytes") {
			t.Errorf("%s: %v\n%s", pattern, got.fields, got.text)
		}
	}
	// Behind the gap nothing is missing.
	if got := c.ok("exec_output", args{"exec_id": id, "stdout_offset": -100, "grep": "END"}); got.fields["truncated"] != false || got.noteCodes() != "" || got.str("stdout") != "END\n" {
		t.Errorf("%v", got.fields)
	}
}

// What was dropped lies before a match, between two and behind the last that fits: each
// read tells its own part, so that reads in order account for every byte once.
func TestBugST05_SearchesInOrderTellAGapOnce(t *testing.T) {
	spools, err := sandbox.NewSpools(sandbox.SpoolLimits{Memory: 4000, Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	spool := spools.New()
	t.Cleanup(func() { _ = spool.Close() })
	spool.Append(sandbox.Stdout, []byte(strings.Repeat("match\n", 2000)))
	kept := spool.Kept(sandbox.Stdout)
	if len(kept) != 2 {
		t.Fatalf("kept: %v", kept)
	}
	var gaps, gone int64
	for at, reads := int64(0), 0; at < spool.Total(sandbox.Stdout); reads++ {
		next, before := mcp.GrepGap(spool, "match", at, 100)
		if next <= at || reads > 1000 {
			t.Fatalf("from %d to %d", at, next)
		}
		if before > 0 {
			gaps++
			gone += before
		}
		at = next
	}
	if gaps != 1 || gone != kept[1].Start-kept[0].End {
		t.Errorf("%d gaps with %d bytes, kept %v", gaps, gone, kept)
	}
	if err := spool.Close(); err != nil {
		t.Fatal(err)
	}
	if next, before := mcp.GrepGap(spool, "match", 0, 100); next != 12_000 || before != 12_000 {
		t.Errorf("all dropped: next %d, %d bytes told", next, before)
	}
}

// A wait that skips what is no longer kept says so.
func TestBugST05_AWaitSaysWhatItCouldNotLookAt(t *testing.T) {
	c := newRig(t).dial("inprocess", legacy)
	id := c.ok("exec", args{"command": "fill 5000000; echo; echo END; await never", "wait_seconds": 0}).str("exec_id")
	eventually(t, "the output", func() bool {
		return c.ok("exec_output", args{"exec_id": id}).num("stdout_bytes") == 5_000_005
	})
	got := c.ok("exec_output", args{"exec_id": id, "stdout_offset": 0, "wait_for": "END", "wait_seconds": 40})
	if !strings.Contains(got.noteCodes(), "wait_gap") || !strings.Contains(got.text, "are no longer kept and were not searched for wait_for") || got.str("status") != "running" {
		t.Errorf("%v\n%.600s", got.fields["notes"], got.text)
	}
	got = c.ok("exec_output", args{"exec_id": id, "stdout_offset": -100, "wait_for": "END", "wait_seconds": 40})
	if got.noteCodes() != "" {
		t.Errorf("behind the gap: %v", got.fields["notes"])
	}
	c.ok("kill", args{"exec_id": id})
}
