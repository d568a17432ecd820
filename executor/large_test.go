package executor_test

import (
	"encoding/json"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"caisson/executor"
	"caisson/executor/wire"
)

// What a client cannot get anyway is not carried to it, whatever the worker says.
func TestAttackT54_AResultIsCutToWhatCanBeHandedOn(t *testing.T) {
	r := newRig(t, tools("t"))
	file := func(name string, size int) executor.File {
		return executor.File{Name: name, MIMEType: "image/png", Data: make([]byte, size)}
	}
	r.play("t", func(run) executor.Result {
		result := good(strings.Repeat("x", 3<<20) + "end")
		result.Images = []executor.File{file("a", 400<<10), file("b", 600<<10), file("c", 200<<10)}
		result.Files = []executor.File{file("d", 200<<10), file("e", 1)}
		result.Error, result.VoiceText = strings.Repeat("e", 200<<10), strings.Repeat("v", 200<<10)
		result.DisplayData = mustJSON(strings.Repeat("d", 200<<10))
		result.Metadata = map[string]json.RawMessage{"long": mustJSON(strings.Repeat("m", 200<<10)), "short": raw("1")}
		return result
	})
	result := r.call("t", "{}")
	var text string
	if err := json.Unmarshal(result.Result, &text); err != nil || len(text) > 1<<20 || !strings.HasPrefix(text, "xxx") || !strings.HasSuffix(text, "xxxend") || !strings.Contains(text, "bytes are left out here") {
		t.Errorf("%v, %d bytes: %.100s", err, len(result.Result), result.Result)
	}
	if len(result.Images) != 2 || result.Images[1].Name != "c" || len(result.Files) != 1 || result.Files[0].Name != "e" {
		t.Errorf("%d images, %d files", len(result.Images), len(result.Files))
	}
	if len(result.Error) > 70<<10 || result.VoiceText != "" || result.DisplayData != nil || result.Metadata["long"] != nil || string(result.Metadata["short"]) != "1" {
		t.Errorf("%d %d %d %d", len(result.Error), len(result.VoiceText), len(result.DisplayData), len(result.Metadata))
	}
	var left []string
	if err := json.Unmarshal(result.Metadata["left_out"], &left); err != nil || len(left) != 6 || !strings.Contains(left[0], `2 images and files with 819200 bytes ("b", "d")`) || !strings.Contains(left[1], "which has 3145733 bytes") {
		t.Errorf("%v %q", err, left)
	}
	r.play("t", func(run) executor.Result { return good(make([]int, 1<<20)) })
	if result := r.call("t", "{}"); !strings.HasPrefix(string(result.Result), `"[0,0,0,`) || !strings.HasSuffix(string(result.Result), `0,0]"`) || len(result.Result) > 1<<20+100 {
		t.Errorf("%d bytes: %.100s", len(result.Result), result.Result)
	}
	r.play("t", func(run) executor.Result { return good(strings.Repeat("\x01", 1<<20)) })
	if result := r.call("t", "{}"); len(result.Result) > 1<<20 {
		t.Errorf("%d bytes", len(result.Result))
	}
	r.play("t", func(run) executor.Result { return good(strings.Repeat("x", 9<<20)) })
	if result := r.call("t", "{}"); result.Success || !strings.Contains(result.Error, "the tool's result is larger than 8 MiB") {
		t.Errorf("%.100s", result.Error)
	}
	whole := plain()
	whole.Metadata, whole.Images = map[string]json.RawMessage{"a": raw("1")}, []executor.File{file("a", 1)}
	if got := wire.Bounded(whole, wire.MostValue); len(got.Metadata) != 1 || len(got.Images) != 1 || string(got.Result) != `"ours"` {
		t.Errorf("%+v", got)
	}
}

// A value of the environment that a cut has halved is found beside it.
func TestTX02_ACutResultTellsNoHalfOfASecret(t *testing.T) {
	r := newRig(t, rule("{name: docker, options: {env: {KEY: abcdefghijklmnop}}}"))
	for at := range 16 {
		r.play("t", func(run) executor.Result {
			result := good(strings.Repeat("x", 256<<10-at) + "abcdefghijklmnop" + strings.Repeat("y", 1<<20))
			return wire.Bounded(result, wire.MostValue)
		})
		if result := r.call("t", "{}"); strings.Contains(string(result.Result), "abcd") || !strings.Contains(string(result.Result), "left out") {
			t.Errorf("%d: a part is told", at)
		}
	}
}

// One owner's results that do not end hold up that owner's alone, and small ones never.
func TestAttackT54_LargeResultsAreReadFewAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, tools("stalls", "large", "small"))
		half := strings.Repeat("x", 200<<10)
		stalls := func(until <-chan struct{}) {
			r.play("stalls", func(c run) executor.Result {
				_, _ = c.Stdout.Write(blockOf(t, good(half), c.Nonce)[:150<<10])
				select {
				case <-until:
				case <-c.Killed:
				}
				return executor.Result{}
			})
		}
		release := make(chan struct{})
		stalls(release)
		r.play("large", func(run) executor.Result { return good(half) })
		results := make(chan executor.Result, 10)
		begin := func(tool string) {
			go func() { results <- r.call(tool, "{}") }()
			synctest.Wait()
		}
		begin("stalls")
		begin("stalls")
		begin("large")
		select {
		case got := <-results:
			t.Fatalf("not held up: %.200s %s", got.Error, got.Status)
		default:
		}
		for _, free := range [][2]string{{"alice", "small"}, {"bob", "large"}} {
			if got := r.callAs(caller(free[0]), free[1], "{}"); !got.Success {
				t.Errorf("%s: %s", free, got.Error)
			}
		}
		close(release) // the two end without a result
		for range 3 {
			got := <-results
			if got.Success == strings.Contains(got.Error, "no end") {
				t.Errorf("%v %.200s", got.Success, got.Error)
			}
		}
		if got := r.call("large", "{}"); !got.Success {
			t.Error(got.Error)
		}
		// One that waits until its time is over says so, and nothing is held afterwards.
		stalls(nil)
		begin("stalls")
		begin("stalls")
		began := time.Now()
		if got := r.call("large", "{}"); got.Success || time.Since(began) > 6*time.Minute {
			t.Errorf("after %v: %.200s", time.Since(began), got.Error)
		}
		<-results
		<-results
		if got := r.call("large", "{}"); !got.Success {
			t.Error(got.Error)
		}
	})
}
