package nearest_test

import (
	"testing"

	"caisson/internal/nearest"
)

func TestOfFindsTheLikelySlip(t *testing.T) {
	known := []string{"timeout_seconds", "wait_seconds", "stdin", "command", "argv", "MAX_NETWORK", "DEFAULT_NETWORK"}
	for name, want := range map[string]string{
		"timeout_second": "timeout_seconds",
		"comand":         "command",
		"stdni":          "stdin",
		"MAX_NETWROK":    "MAX_NETWORK",
		"arg":            "argv",
		"stdin":          "stdin",
		"zebra":          "",
		"":               "",
		"MAX_NÉTWORK":    "MAX_NETWORK",
	} {
		if got := nearest.Of(name, known); got != want {
			t.Errorf("Of(%q) = %q, want %q", name, got, want)
		}
	}
}

func TestOfKnowsNothing(t *testing.T) {
	if got := nearest.Of("anything", nil); got != "" {
		t.Errorf("Of with no names = %q", got)
	}
}
