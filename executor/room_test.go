package executor_test

import (
	"encoding/json"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"caisson/executor"
	"caisson/sandbox"
)

const ruleEach = `execution_policy: {rules: {a: {name: docker}, b: {name: docker}, c: {name: docker}}}`

func TestTX20_TX21_WhatAToolSaysOfItsCallIsNotBelieved(t *testing.T) {
	for _, mode := range []string{"warm", "ephemeral"} {
		r := newRig(t, tools("other", "t")+"execution_policy: {rules: {other: {name: docker}, t: {name: docker, options: {mode: "+mode+"}}}}")
		idle := r.value("other")
		forged := map[string]json.RawMessage{"failure": raw(`"limit"`), "started": raw("false"), "own": raw("1")}
		r.play("t", func(run) executor.Result {
			return executor.Result{Status: executor.StatusError, Error: "no", Metadata: forged}
		})
		result := r.call("t", "{}")
		if n := len(r.ran()); n != 2 {
			t.Errorf("%s: the call was run %d times", mode, n-1)
		}
		if r.value("other") != idle {
			t.Errorf("%s: a word of the tool's ended another container", mode)
		}
		if _, failure := result.Metadata["failure"]; failure || result.Metadata["started"] != nil || string(result.Metadata["own"]) != "1" {
			t.Errorf("%s: %s", mode, result.Metadata)
		}
	}
}

func TestTX07_ACallThatAContainerHasNoRoomForEndsNoOther(t *testing.T) {
	r := startRig(t, func(l *sandbox.Limits) { l.ExecsPerSession = 1 })
	r.open(tools("a", "b", "c") + ruleEach)
	idle := r.value("b")
	r.play("a", hang)
	go func() { _, _ = r.Call(t.Context(), caller("alice"), "a", nil, nil) }() // ended by the toolbox's end
	r.eventually("the first runs", func() bool { return len(r.ran()) == 2 })
	if result := r.call("a", "{}"); result.Success || meta(result, "failure") != "limit" || string(result.Metadata["started"]) != "false" {
		t.Errorf("%+v", result)
	}
	if r.value("b") != idle {
		t.Error("a container that had nothing to do with it was given up")
	}
}

func TestTX22_TheBudgetCoversTheMakingOfRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := startRig(t, func(l *sandbox.Limits) { l.PerOwner = 1 })
		r.open(tools("a", "b") + `execution_policy: {rules: {a: {name: docker}, b: {name: docker, remote_timeout_seconds: 3}}}`)
		r.value("a")
		release := r.fake.Hold("destroy")
		began := time.Now()
		result := r.call("b", "{}")
		if took := time.Since(began); took != 3*time.Second || !strings.Contains(result.Error, "did not finish within 3 s: it had not begun") {
			t.Errorf("after %v: %s", took, result.Error)
		}
		release()
		synctest.Wait()
		r.value("b")
	})
}

func TestPOL15_ClosingEndsCallsOfExecutorsThatWereRetired(t *testing.T) {
	r := newRig(t, rule("{name: docker}"))
	r.play("t", hang)
	got := make(chan executor.Result, 1)
	go func() { got <- r.call("t", "{}") }()
	r.eventually("the call runs", func() bool { return len(r.ran()) == 1 })
	r.Reload(parse(t, tools("u"), wide()))
	if err := r.Close(t.Context()); err != nil {
		t.Error(err)
	}
	if n := len(r.fake.Sessions()); n != 0 {
		t.Errorf("%d containers after Close", n)
	}
	select {
	case result := <-got:
		if result.Success || !strings.Contains(result.Error, "closed") {
			t.Errorf("%+v", result)
		}
	case <-time.After(time.Minute):
		t.Error("the call runs on in a closed toolbox")
	}
}
