package executor_test

import (
	"context"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"caisson/executor"
	"caisson/sandbox"
)

const ephemeral = "{name: docker, remote_timeout_seconds: 2, options: {mode: ephemeral}}"

func TestTX11_AnEphemeralCallLeavesNoContainerHoweverItEnds(t *testing.T) {
	for name, ends := range map[string]func(run) executor.Result{
		"success": func(c run) executor.Result { return good(c.Session) },
		"error":   func(run) executor.Result { return executor.Failure(executor.StatusError, "no") },
		"crash":   func(run) executor.Result { return executor.Result{} },
		"timeout": hang,
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t, rule(ephemeral))
				r.play("t", ends)
				result := r.call("t", "{}")
				if result.Success != (name == "success") {
					t.Errorf("%+v", result)
				}
				if n := len(r.fake.Sessions()); n != 0 {
					t.Errorf("%d containers are left", n)
				}
				if name == "timeout" && !strings.Contains(result.Error, "did not finish within 2 s") {
					t.Error(result.Error)
				}
			})
		})
	}
}

func TestTX11_ACancelledOrPanickingCallLeavesNoContainer(t *testing.T) {
	r := newRig(t, rule("{name: docker, options: {mode: ephemeral}}"))
	began := make(chan struct{})
	r.play("t", func(c run) executor.Result { close(began); return hang(c) })
	ctx, cancel := context.WithCancel(t.Context())
	go func() { <-began; cancel() }()
	result, err := r.Call(ctx, caller("alice"), "t", nil, nil)
	if err != nil || !strings.Contains(result.Error, "was cancelled") || len(r.fake.Sessions()) != 0 {
		t.Errorf("%+v %v, %d containers", result, err, len(r.fake.Sessions()))
	}
	r.play("t", func(c run) executor.Result {
		_, _ = c.Stdout.Write([]byte("__CAISSON_TOOL_PROGRESS_" + c.Nonce + `__ {"progress":1}` + "\n"))
		return hang(c)
	})
	func() {
		defer func() {
			if recover() == nil {
				t.Error("no panic")
			}
		}()
		_, _ = r.Call(t.Context(), caller("alice"), "t", nil, func(executor.Progress) { panic("a bug") })
	}()
	if n := len(r.fake.Sessions()); n != 0 {
		t.Errorf("%d containers after a panic", n)
	}
}

func TestTX03_TX17_TX18_TX19_TheEnvelopeIsThereBeforeTheStartUnderANameThatCannotBeGuessed(t *testing.T) {
	r := newRig(t, rule("{name: docker, options: {mode: ephemeral}}"))
	form := regexp.MustCompile(`^/tmp/caisson-envelope-[0-9a-f]{32}\.json$`)
	seen := map[string]bool{}
	r.play("t", func(c run) executor.Result {
		if len(c.Args) != 2 || c.Args[0] != "--envelope" || !form.MatchString(c.Args[1]) || seen[c.Args[1]] {
			t.Errorf("%q", c.Args)
		}
		seen[c.Args[1]] = true
		if spec, _ := r.fake.SpecOf(c.Session); spec.Owner != (sandbox.Owner{Name: "alice", Tools: true}) {
			t.Errorf("%+v", spec.Owner)
		}
		return good(string(c.Arguments))
	})
	a, b := r.call("t", `{"key":"`+canary+`"}`), r.call("t", "{}")
	if !strings.Contains(string(a.Result), canary) || !b.Success || len(seen) != 2 {
		t.Errorf("%+v %+v", a, b)
	}
	if meta(a, "mode") != "ephemeral" || meta(a, "container") == meta(b, "container") {
		t.Errorf("%s %s", a.Metadata, b.Metadata)
	}
}

func TestTX11_ACallIsNotHeldUpByASlowRemoval(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, rule("{name: docker, options: {mode: ephemeral}}"))
		release := r.fake.Hold("destroy")
		began := time.Now()
		if result := r.call("t", "{}"); !result.Success || time.Since(began) > 10*time.Second {
			t.Errorf("%v: %+v", time.Since(began), result)
		}
		release()
		synctest.Wait()
		if n := len(r.fake.Sessions()); n != 0 {
			t.Errorf("%d containers are left", n)
		}
	})
}
