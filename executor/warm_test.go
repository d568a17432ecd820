package executor_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"caisson/executor"
	"caisson/sandbox"
)

// hang answers nothing until the command is ended from outside.
func hang(c run) executor.Result {
	<-c.Killed
	return executor.Result{}
}

func TestTX07_TX10_CallsShareOneContainer(t *testing.T) {
	r := newRig(t, tools("t"))
	if a, b := r.value("t"), r.value("t"); a != b {
		t.Errorf("in %s and %s", a, b)
	}
}

func TestTX08_AWarmContainerIsRemovedWhenItIsIdle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, rule("{name: docker, options: {idle_ttl_seconds: 2}}"))
		first := r.value("t")
		<-time.After(1900 * time.Millisecond)
		if r.value("t") != first {
			t.Error("gone before its time")
		}
		<-time.After(1900 * time.Millisecond)
		synctest.Wait()
		if len(r.fake.Sessions()) != 1 {
			t.Error("a call did not renew the idle time")
		}
		<-time.After(200 * time.Millisecond)
		synctest.Wait()
		if n := len(r.fake.Sessions()); n != 0 {
			t.Errorf("%d containers after the idle time", n)
		}
		if r.value("t") == first {
			t.Error("the next call got a container that was gone")
		}
	})
}

func TestTX23_NoContainerIsRemovedUnderACall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, rule("{name: docker, options: {idle_ttl_seconds: 1}}"))
		r.play("t", func(c run) executor.Result {
			<-time.After(2 * time.Minute) // more than the manager's sweep takes
			return good(c.Session)
		})
		if a, b := r.value("t"), r.value("t"); a != b {
			t.Error("the container was replaced between two calls that followed at once")
		}
	})
}

func TestTX09_TX20_ACallThatTimesOutResetsItsContainer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, tools("t", "other")+`execution_policy: {rules: {t: {name: shared, remote_timeout_seconds: 1.5}, other: shared}}
executors: {shared: {name: docker}}`)
		first := r.value("t")
		r.play("t", hang)
		r.play("other", hang)
		var other executor.Result
		var both sync.WaitGroup
		both.Go(func() { other = r.call("other", "{}") })
		synctest.Wait()
		began := time.Now()
		result := r.call("t", "{}")
		if took := time.Since(began); took != 1500*time.Millisecond {
			t.Errorf("cut after %v", took)
		}
		both.Wait()
		if result.Success || result.Status != executor.StatusError || !strings.Contains(result.Error, "did not finish within 1.5 s") || meta(result, "failure") != "timeout" {
			t.Errorf("%+v", result)
		}
		if other.Success || !strings.Contains(other.Error, "another call in it did not finish within 1.5 s") || !strings.Contains(other.Error, "is not repeated") {
			t.Errorf("the call beside it: %+v", other)
		}
		r.play("t", nil)
		if r.value("t") == first {
			t.Error("the next call is in the same container")
		}
		synctest.Wait() // no call waits for the removal
		if len(r.fake.Sessions()) != 1 {
			t.Error("the old container is left")
		}
	})
}

func TestTX22_TheBudgetCoversTheCreate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, rule("{name: docker, remote_timeout_seconds: 3}"))
		defer r.fake.Hold("create")()
		began := time.Now()
		result := r.call("t", "{}")
		if took := time.Since(began); took != 3*time.Second || !strings.Contains(result.Error, "did not finish within 3 s: it had not begun") || string(result.Metadata["started"]) != "false" {
			t.Errorf("after %v: %s", took, result.Error)
		}
		synctest.Wait()
	})
}

func TestTX22_TheWorkerIsToldWhatIsLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, rule("{name: docker, remote_timeout_seconds: 10}"))
		release := r.fake.Hold("create")
		time.AfterFunc(4*time.Second, release)
		r.value("t")
		if got := r.ran()[0].Timeout; got != 11*time.Second { // its own deadline comes after the server's
			t.Errorf("%v", got)
		}
	})
}

func TestTX07_AContainerThatDiedBetweenCallsIsReplaced(t *testing.T) {
	r := newRig(t, tools("t"))
	first := r.value("t")
	r.fake.Vanish(first)
	if second := r.value("t"); second == first {
		t.Error("the same")
	}
	if n := len(r.ran()); n != 2 {
		t.Errorf("%d runs of 2 calls", n)
	}
}

func TestTX20_AContainerThatDiesUnderACallIsSaidAndNotRepeated(t *testing.T) {
	r := newRig(t, tools("t"))
	r.play("t", func(c run) executor.Result {
		go r.fake.Vanish(c.Session)
		return hang(c)
	})
	result := r.call("t", "{}")
	if result.Success || !strings.Contains(result.Error, "its container ended while the call ran") || !strings.Contains(result.Error, "is not repeated") || meta(result, "failure") != "container_lost" {
		t.Errorf("%+v", result)
	}
	if n := len(r.ran()); n != 1 {
		t.Errorf("run %d times", n)
	}
	r.play("t", nil)
	r.value("t")
}

func TestTX09_ACancelledCallIsStoppedAndItsContainerStays(t *testing.T) {
	r := newRig(t, tools("t"))
	first := r.value("t")
	began := make(chan struct{})
	ended := make(chan struct{})
	r.play("t", func(c run) executor.Result {
		close(began)
		defer close(ended)
		return hang(c)
	})
	ctx, cancel := context.WithCancelCause(t.Context())
	go func() { <-began; cancel(errors.New("the client went away")) }()
	result, err := r.Call(ctx, caller("alice"), "t", nil, nil)
	if err != nil || result.Success || !strings.Contains(result.Error, "was cancelled") || meta(result, "failure") != "cancelled" {
		t.Errorf("%+v %v", result, err)
	}
	<-ended
	r.play("t", nil)
	if r.value("t") != first {
		t.Error("the container was reset")
	}
}

func TestTX09_ACancelledCallThatCannotBeStoppedResetsTheContainer(t *testing.T) {
	r := newRig(t, tools("t"))
	first := r.value("t")
	began := make(chan struct{})
	r.play("t", func(c run) executor.Result { close(began); return hang(c) })
	r.fake.Fail("stop", errors.New("broken"))
	ctx, cancel := context.WithCancel(t.Context())
	go func() { <-began; cancel() }()
	if _, err := r.Call(ctx, caller("alice"), "t", nil, nil); err != nil {
		t.Fatal(err)
	}
	r.fake.Fail("stop", nil)
	r.play("t", nil)
	if r.value("t") == first {
		t.Error("the call may still run in the container of the next one")
	}
}

func TestTX20_ACreateThatFailsIsAResultAndTheNextCallTriesAgain(t *testing.T) {
	r := newRig(t, tools("t"))
	r.fake.Fail("create", sandbox.Errorf("create session", sandbox.KindImageNotFound, "the engine has no image x"))
	result := r.call("t", "{}")
	if result.Success || !strings.Contains(result.Error, "the tool was not run: the engine has no image x") || string(result.Metadata["started"]) != "false" {
		t.Errorf("%+v", result)
	}
	r.fake.Fail("create", nil)
	r.value("t")
}

func TestTX20_WordsForSessionsDoNotReachCallersOfTools(t *testing.T) {
	r := startRig(t, func(l *sandbox.Limits) { l.PerOwner = 2 })
	r.open(tools("a", "b", "c") + `execution_policy: {rules: {a: {name: docker}, b: {name: docker}, c: {name: docker}}}`)
	for _, name := range []string{"a", "b"} {
		r.play(name, hang)
		go func() { _, _ = r.Call(t.Context(), caller("alice"), name, nil, nil) }() // ended by the toolbox's end
	}
	r.eventually("two calls run", func() bool { return len(r.ran()) == 2 })
	if result := r.call("c", "{}"); result.Success || strings.Contains(result.Error, "session") || !strings.Contains(result.Error, "as many tools run as may") {
		t.Errorf("%+v", result)
	}
}

func TestTX07_AContainerThatNobodyUsesMakesRoomForAnother(t *testing.T) {
	r := startRig(t, func(l *sandbox.Limits) { l.PerOwner = 2 })
	names := []string{"a", "b", "c", "d"}
	manifest := tools(names...) + "execution_policy:\n  rules:\n"
	for _, name := range names {
		manifest += fmt.Sprintf("    %s: {name: docker}\n", name)
	}
	r.open(manifest)
	for _, name := range append(names, names...) {
		r.value(name)
		if n := len(r.fake.Sessions()); n > 2 {
			t.Fatalf("%d containers", n)
		}
	}
}

func TestTX23_ClosingEndsCallsAndTwiceIsHarmless(t *testing.T) {
	for _, mode := range []string{"warm", "ephemeral"} {
		r := newRig(t, rule("{name: docker, options: {mode: "+mode+"}}"))
		r.play("t", hang)
		got := make(chan executor.Result, 1)
		go func() {
			result, err := r.Call(t.Context(), caller("alice"), "t", nil, nil)
			if err != nil {
				t.Error(err)
			}
			got <- result
		}()
		r.eventually("the call runs", func() bool { return len(r.ran()) == 1 })
		var both sync.WaitGroup
		for range 2 {
			both.Go(func() {
				if err := r.Close(t.Context()); err != nil {
					t.Error(err)
				}
			})
		}
		both.Wait()
		if result := <-got; result.Success || !strings.Contains(result.Error, "closed") {
			t.Errorf("%s: %+v", mode, result)
		}
		if n := len(r.fake.Sessions()); n != 0 {
			t.Errorf("%s: %d containers after Close", mode, n)
		}
		if e := r.refusal(caller("alice"), "t", "{}"); e.Kind != sandbox.KindUnavailable {
			t.Error(e)
		}
	}
}

func TestTX07_ManyCallsLeaveNoRecords(t *testing.T) {
	r := newRig(t, tools("t"))
	for range 20 {
		r.value("t")
	}
	execs, err := r.manager.Execs(sandbox.Owner{Name: "alice", Tools: true}, "")
	if err != nil || len(execs) != 0 {
		t.Errorf("%d records: %v", len(execs), err)
	}
}
