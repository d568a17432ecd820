package cli

import (
	"bytes"
	"strings"
	"testing"
)

func TestReportPutsTheMendBelowItsFinding(t *testing.T) {
	findings := []finding{
		{levelOK, "settings", "65 settings", ""},
		{levelWarn, "network", "open", "close it"},
		{levelFail, "engine", "dead\nquite", "restart it\nnow"},
	}
	want := strings.Join([]string{
		"ok    settings  65 settings",
		"warn  network   open",
		"                close it",
		"FAIL  engine    dead",
		"                quite",
		"                restart it",
		"                now",
		"",
	}, "\n")
	if got := report(findings, false); got != want {
		t.Errorf("report:\n%s\nwant:\n%s", got, want)
	}
	if got := report(findings, true); !strings.Contains(got, "\x1b[31mFAIL\x1b[0m") || strings.Count(got, colourEnd) != 3 {
		t.Errorf("colours: %q", got)
	}
	if !failed(findings) || failed(findings[:2]) {
		t.Error("what fails is not what is marked")
	}
}

// screen is a terminal that keeps what is written.
type screen struct{ bytes.Buffer }

func (*screen) IsTerminal() bool { return true }

func TestProgressIsOneLineOnATerminalAndNothingElsewhere(t *testing.T) {
	var tty screen
	showProgress(&tty, "looking")()
	if got, want := tty.String(), "looking\r\x1b[K"; got != want {
		t.Errorf("terminal: %q, want %q", got, want)
	}
	var file bytes.Buffer
	showProgress(&file, "looking")()
	if file.Len() != 0 {
		t.Errorf("file: %q", file.String())
	}
}
