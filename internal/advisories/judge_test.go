package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const (
	config  = `{"config":{"go_version":"go1.26.8"}}` + "\n"
	docker  = `{"osv":{"id":"GO-2026-1","summary":"of the daemon"}}{"finding":{"osv":"GO-2026-1","trace":[{"module":"example.com/docker"}]}}` + "\n"
	library = `{"finding":{"osv":"GO-2026-2","fixed_version":"v1.26.10","trace":[{"module":"stdlib","function":"Verify"}]}}` + "\n"
	old     = `{"finding":{"osv":"GO-2026-3","fixed_version":"v2.0.1","trace":[{"module":"example.com/old","function":"Parse"}]}}` + "\n"
	reason  = "| GO-2026-1 | docker | the daemon's, which is another program |\n"
	floor   = "| Go standard library | go1.26.10 | upgrade |\n"
)

func TestAttackT76_EveryFindingHasAReasonOrAnUpgrade(t *testing.T) {
	for what, c := range map[string]struct{ scan, page, complaint string }{
		"nothing":                        {config, "", ""},
		"known":                          {config + docker, reason, ""},
		"no reason":                      {config + docker, "", "GO-2026-1, example.com/docker, not called: of the daemon: nothing mends it"},
		"a reason of no words":           {config + docker, "| GO-2026-1 | docker |  |\n", "gives no reason"},
		"an upgrade":                     {config + old, "", "v2.0.1 mends it, upgrade"},
		"an upgrade, with a reason":      {config + old, "| GO-2026-3 | old | we are fond of it |\n", "v2.0.1 mends it, upgrade"},
		"the library, floor high enough": {config + library, floor, ""},
		"the library, floor too low":     {config + library, strings.ReplaceAll(floor, "1.26.10", "1.26.9"), `mended in go1.26.10, and the page asks releases for "go1.26.9"`},
		"the library, no floor":          {config + library, "", "mended in go1.26.10"},
		"a reason that has had its day":  {config, reason, "found no more"},
		"nothing ran":                    {"", "", "there is none"},
		"half an output":                 {config + `{"finding":`, "", "govulncheck's output"},
	} {
		name := filepath.Join(t.TempDir(), "security.md")
		if err := os.WriteFile(name, []byte("# Page\n\n"+c.page), 0o600); err != nil {
			t.Fatal(err)
		}
		var out strings.Builder
		err := run([]string{name}, strings.NewReader(c.scan), &out)
		if c.complaint == "" && err != nil || c.complaint != "" && (err == nil || !strings.Contains(err.Error(), c.complaint)) {
			t.Errorf("%s: %v, want %q", what, err, c.complaint)
		}
	}
}

// The page's own table is one that this program reads.
func TestAttackT76_ThePageIsRead(t *testing.T) {
	text, err := os.ReadFile("../../docs/security.md")
	if err != nil {
		t.Fatal(err)
	}
	p := readPage(string(text))
	if p.floor == "" || len(p.reasons) != strings.Count(string(text), "| GO-") {
		t.Errorf("floor %q, %d reasons of %d lines", p.floor, len(p.reasons), strings.Count(string(text), "| GO-"))
	}
}
