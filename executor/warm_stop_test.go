package executor_test

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"caisson/executor"
)

// cancelled calls t as alice, and cancels the call as soon as it runs.
func (r *rig) cancelled(began <-chan struct{}) executor.Result {
	r.t.Helper()
	ctx, cancel := context.WithCancel(r.t.Context())
	defer cancel()
	go func() { <-began; cancel() }()
	result, err := r.Call(ctx, caller("alice"), "t", nil, nil)
	if err != nil {
		r.t.Fatal(err)
	}
	if meta(result, "failure") != "cancelled" {
		r.t.Errorf("%+v", result)
	}
	return result
}

func TestTX09_ACancelledCallsWorkerHasTimeToEndWhatItHasStarted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, tools("t"))
		first := r.value("t")
		began, swept := make(chan struct{}), make(chan string, 1)
		r.play("t", func(c run) executor.Result {
			close(began)
			<-c.Killed
			cause := c.Cause()
			<-time.After(3 * time.Second) // it looks for what has left its group
			swept <- cause
			return executor.Result{}
		})
		r.cancelled(began)
		select {
		case cause := <-swept:
			if cause != "TERM" {
				t.Errorf("ended by %s", cause)
			}
		default:
			t.Error("the call is told to be over while its worker still ends what it has started")
		}
		r.play("t", nil)
		if r.value("t") != first {
			t.Error("the container was reset")
		}
	})
}

func TestTX09_AWorkerThatDoesNotEndWhenAskedResetsItsContainer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, tools("t"))
		first := r.value("t")
		began := make(chan struct{})
		r.play("t", func(run) executor.Result {
			close(began)
			<-time.After(20 * time.Second) // deaf to signals
			return executor.Result{}
		})
		r.cancelled(began)
		r.play("t", nil)
		if r.value("t") == first {
			t.Error("what the call has started may run on in the container of the next one")
		}
	})
}

func TestTX09_ACancelledCallOnARealEngineLeavesNothing(t *testing.T) {
	r := newReal(t, "tools:\n"+
		sh("leave", `cat >/dev/null; setsid sh -c 'trap "" TERM; while :; do sleep 0.1; echo >> /tmp/alive; done' & until [ -s /tmp/alive ]; do sleep 0.1; done; echo up >&2; sleep 300`)+
		sh("look", `cat >/dev/null; a=$(wc -c < /tmp/alive); sleep 1; b=$(wc -c < /tmp/alive); hostname; [ "$a" = "$b" ] && echo ended || echo "runs on"`)+
		`execution_policy: {rules: {"*": {name: docker, options: {network_mode: none}}}}`)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	result := make(chan executor.Result, 1)
	go func() {
		got, err := r.Call(ctx, caller("alice"), "leave", nil, nil)
		if err != nil {
			t.Error(err)
		}
		result <- got
	}()
	r.eventually("the call runs", func() bool { return strings.Contains(r.log.String(), "line=up") })
	cancel()
	if got := <-result; meta(got, "failure") != "cancelled" {
		t.Errorf("%+v", got)
	}
	look := r.call("look", "{}")
	if got := strings.Fields(output(look)); len(got) < 2 || got[1] != "ended" {
		t.Errorf("%q %s", output(look), look.Error)
	}
	if all := r.containers(t.Context()); len(all) != 1 {
		t.Errorf("%d containers: it was reset", len(all))
	}
}
