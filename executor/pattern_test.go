package executor

import (
	"encoding/json"
	"os"
	"strings"
	"testing"
)

// The cases and their answers come from Python's fnmatch.fnmatchcase.
func TestPOL07_WildcardsMatchAsFnmatchDoes(t *testing.T) {
	text, err := os.ReadFile("testdata/fnmatch.json")
	if err != nil {
		t.Fatal(err)
	}
	var cases [][3]any
	if err := json.Unmarshal(text, &cases); err != nil || len(cases) < 250 {
		t.Fatalf("%d cases: %v", len(cases), err)
	}
	for _, c := range cases {
		pattern, name, want := c[0].(string), c[1].(string), c[2].(bool)
		if got := match(pattern, name); got != want {
			t.Errorf("match(%q, %q) = %v, want %v", pattern, name, got, want)
		}
	}
}

func TestPOL07_APatternOfManyStarsEnds(t *testing.T) {
	// By naive backtracking this takes longer than anybody lives.
	if match(strings.Repeat("*a", 200)+"*b", strings.Repeat("a", 5000)) {
		t.Error("matched")
	}
}

func TestPOL07_WhatIsAWildcard(t *testing.T) {
	for key, want := range map[string]bool{"*": true, "a?": true, "a[": true, "a]": false, "a{b}": false, "plain": false, `\`: false} {
		if isPattern(key) != want {
			t.Errorf("%q: %v", key, !want)
		}
	}
}
