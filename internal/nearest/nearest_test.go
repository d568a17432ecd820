package nearest_test

import (
	"strings"
	"testing"

	"caisson/internal/nearest"
)

func TestLikelyFindsTheSlipAndNothingElse(t *testing.T) {
	known := []string{"timeout_seconds", "wait_seconds", "stdin", "command", "argv", "session_id", "MAX_NETWORK", "DEFAULT_NETWORK"}
	for name, want := range map[string]string{
		"timeout_second": "timeout_seconds",
		"comand":         "command",
		"stdni":          "stdin",
		"MAX_NETWOKR":    "MAX_NETWORK",
		"sessionId":      "session_id",
		"SESSION-ID":     "session_id",
		"argvs":          "argv",
		"stdin":          "stdin",
		"zebra":          "",
		"":               "",
		"___":            "",
	} {
		if got := nearest.Likely(name, known); got != want {
			t.Errorf("Likely(%q) = %q, want %q", name, got, want)
		}
	}
}

func TestOfAlwaysFindsSomething(t *testing.T) {
	if got := nearest.Of("zebra", []string{"argv", "stdin"}); got == "" {
		t.Error("nothing is nearest to zebra")
	}
	if got := nearest.Of("stdin", nil) + nearest.Likely("stdin", nil); got != "" {
		t.Errorf("of no names, %q", got)
	}
	if got := nearest.Of(strings.Repeat("x", 1<<20), []string{"argv"}); got != "argv" {
		t.Errorf("a long name finds %q", got)
	}
}
