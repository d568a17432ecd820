package mcp_test

import (
	"regexp/syntax"
	"strings"
	"testing"
	"time"

	"caisson/mcp"
	"caisson/sandbox"
)

// dearest is about the most costly pattern that is let in.
var dearest = strings.Repeat("a?", 990) + "b"

// TestAttackT53_CostlyPatternsAreRefused sends patterns whose program is large, by
// their length or by their repetitions, to both arguments that take one.
func TestAttackT53_CostlyPatternsAreRefused(t *testing.T) {
	c := newRig(t).dial("inprocess", legacy)
	id := c.ok("exec", args{"command": "echo one"}).str("exec_id")
	for _, pattern := range []string{
		strings.Repeat("a?", 20_000) + "b", strings.Repeat("a", 2049), strings.Repeat("x{1000}", 3), "(a{40}){25}(b{40}){25}(c?){100}", `(?i)(\pL{10}|x{9,30}){30}y{999}`,
	} {
		for _, field := range []string{"grep", "wait_for"} {
			if got := c.want("invalid_argument", "exec_output", args{"exec_id": id, field: pattern}); !strings.Contains(got.text, field) || !strings.Contains(got.text, "may have 20") {
				t.Errorf("%s: %.200s", field, got.text)
			}
		}
	}
	if got := c.ok("exec_output", args{"exec_id": id, "stdout_offset": 0, "grep": dearest + "|one", "wait_for": dearest}); got.str("stdout") != "one\n" {
		t.Errorf("%v", got.fields)
	}
}

// TestAttackT53_PatternsCostNoMoreThanCounted holds the count against the library's.
func TestAttackT53_PatternsCostNoMoreThanCounted(t *testing.T) {
	for _, pattern := range []string{
		"a", "abc|abd|x", "(a|b)*c+?", `^\s*(error|warning):\s+.{0,80}$`, "a{3,}", "a{0,40}", "a{2}", "(?i)straße", "[[:alpha:]]{1,20}", dearest, "((a{10}){10}){10}", "(a{2,9}){3,}", "(|a|)", `\bx\B`, "(?:)", "[^a]",
	} {
		tree, err := syntax.Parse("(?m)"+pattern, syntax.Perl)
		if err != nil {
			t.Fatal(err)
		}
		program, err := syntax.Compile(tree.Simplify())
		if err != nil {
			t.Fatal(err)
		}
		size, part, err := mcp.PatternCost(pattern)
		if err != nil || size < len(program.Inst) || size > 3*len(program.Inst)+4 || part > 64<<10 || part*size > 8<<20 {
			t.Errorf("%.30s: counted %d, has %d; %d bytes at once; %v", pattern, size, len(program.Inst), part, err)
		}
	}
}

// TestAttackT53_SearchesEndWhenNobodyWaits searches a long line with a costly pattern for
// a client that goes away.
func TestAttackT53_SearchesEndWhenNobodyWaits(t *testing.T) {
	spool := numbers(t, 1)
	spool.Append(sandbox.Stdout, []byte(strings.Repeat("a", 3_000_000)))
	gone := time.Now().Add(100 * time.Millisecond)
	_, next, cut := mcp.Grep(spool, dearest, 0, 1000, func() bool { return time.Now().After(gone) })
	// The part under way is searched to its end: seconds under the race detector on a busy
	// machine, where the whole line takes many minutes.
	if late := time.Since(gone); late > 30*time.Second || !cut || next >= spool.Total(sandbox.Stdout) {
		t.Errorf("%v late, next %d, cut %v", late, next, cut)
	}
	t.Logf("late by %v", time.Since(gone))
}
