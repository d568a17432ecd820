package enginetest

import (
	"strings"
	"testing"
	"time"
)

func TestARuleSaysWhatIsDoneToWhichCall(t *testing.T) {
	r, err := ParseRule("POST /containers/*/start 1*error(503)->2*delay(20-40)->1*off->3*drop")
	if err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]bool{"/containers/a/start": true, "/containers/a/b/start": false, "/containers/a/start/x": false} {
		if r.matches("POST", path) != want || r.matches("GET", path) {
			t.Errorf("%s: wrongly matched", path)
		}
	}
	var got []string
	for range 9 {
		f, text := r.next()
		if text == "delay(20-40)" && (f.Delay < 20*time.Millisecond || f.Delay >= 40*time.Millisecond) {
			t.Errorf("a delay of %v", f.Delay)
		}
		got = append(got, text)
	}
	if want := "error(503) delay(20-40) delay(20-40) off drop drop drop  "; strings.Join(got, " ") != want {
		t.Errorf("%q", got)
	}
}

func TestRulesAreReadALineEach(t *testing.T) {
	rules, err := ParseRules(strings.NewReader("# all of it\n\n* ** slice\nGET /_ping 1*hang\n"))
	if err != nil || len(rules) != 2 || !rules[0].matches("PUT", "/containers/x/archive") || rules[1].matches("GET", "/_ping/x") {
		t.Errorf("%v %v", rules, err)
	}
}

func TestAWrongRuleIsRefused(t *testing.T) {
	for _, line := range []string{
		"", "POST /x", "post /x off", "POST x off", "POST /x off more", "POST /x error", "POST /x error()", "POST /x error(200)", "POST /x error(x)",
		"POST /x delay(0)", "POST /x delay(5-x)", "POST /x off(1)", "POST /x slice(1)", "POST /x panic(1)", "POST /x 1*", "POST /x off->", "POST /x -1*off",
		"POST /x cut(3-4)", "POST /x 99999999999999999999*off",
	} {
		if _, err := ParseRule(line); err == nil {
			t.Errorf("%q was taken", line)
		}
	}
}
