package executor_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"caisson/executor"
	"caisson/sandbox"
)

// python answers as the worker's REPL does.
func python(note string) func(run) executor.Result {
	return func(run) executor.Result {
		result := good(map[string]string{"stdout": "<out>", "stderr": "", "note": note})
		result.Metadata = map[string]json.RawMessage{"repl_fresh": raw("true")}
		return result
	}
}

// note runs code in the REPL py of a client session, and gives the note of its result.
func (r *rig) note(client string) string {
	r.t.Helper()
	c := caller("alice")
	c.Client = client
	result := r.callAs(c, "py", `{"code":"1"}`)
	var s map[string]string
	if err := json.Unmarshal(result.Result, &s); err != nil || s["stdout"] != "<out>" {
		r.t.Errorf("%s %v", result.Result, err)
	}
	return s["note"]
}

const replTool = "  - {name: py, description: x, repl: python}\n"

func TestD26_TX08_AREPLThatHasLostItsContainerIsTold(t *testing.T) {
	for why, lose := range map[string]func(*rig){
		"nobody had used it for 2 s": func(*rig) { <-time.After(3 * time.Second) },
		"did not finish within 1 s": func(r *rig) {
			r.play("t", hang)
			r.call("t", "{}")
		},
		"another container needed its room": func(r *rig) { r.value("other") },
		"it was gone":                       func(r *rig) { r.fake.Vanish(r.fake.Sessions()[0]) },
	} {
		synctest.Test(t, func(t *testing.T) {
			r := startRig(t, func(l *sandbox.Limits) { l.PerOwner = 1 })
			r.open(tools("t", "other") + replTool + `execution_policy: {rules: {py: one, t: {name: one, remote_timeout_seconds: 1}, other: {name: docker}}}
executors: {one: {name: docker, options: {idle_ttl_seconds: 2}}}`)
			r.play("py", python("its own"))
			for range 2 {
				if got := r.note("one"); got != "its own" {
					t.Errorf("%s: before: %q", why, got)
				}
			}
			lose(r)
			synctest.Wait()
			if got := r.note("two"); got != "its own" {
				t.Errorf("%s: another client's: %q", why, got)
			}
			if got := r.note("one"); !strings.Contains(got, why) || !strings.Contains(got, "is lost") || !strings.HasSuffix(got, "; its own") {
				t.Errorf("%s: %q", why, got)
			}
			if got := r.note("one"); got != "its own" {
				t.Errorf("%s: told twice: %q", why, got)
			}
		})
	}
}

func TestD26_AREPLThatHasSaidWhatIsLostIsNotToldAgain(t *testing.T) {
	r := startRig(t)
	r.open(tools() + replTool)
	r.play("py", python(""))
	r.note("one")
	r.play("py", func(c run) executor.Result {
		result := python("")(c)
		result.Metadata["repl_death"] = raw(`"timeout"`)
		return result
	})
	r.note("one")
	r.play("py", python(""))
	r.fake.Vanish(r.fake.Sessions()[0])
	if got := r.note("one"); got != "" {
		t.Error(got)
	}
}

func TestD26_ItIsRememberedForSoManyREPLs(t *testing.T) {
	r := startRig(t)
	r.open(tools() + replTool)
	r.play("py", python(""))
	for i := range 1001 {
		r.note(fmt.Sprint(i))
	}
	r.fake.Vanish(r.fake.Sessions()[0])
	if first, last := r.note("0"), r.note("1000"); first != "" || last == "" {
		t.Errorf("%q %q", first, last)
	}
}
