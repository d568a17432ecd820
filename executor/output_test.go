package executor_test

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"caisson/executor"
)

func blockOf(t *testing.T, r executor.Result, nonce string) []byte {
	t.Helper()
	text, err := executor.EncodeBlock(r, nonce)
	if err != nil {
		t.Error(err)
	}
	return text
}

func TestTX06_TX20_OnlyTheBlockWithTheCallsNonceOnStandardOutputCounts(t *testing.T) {
	for name, c := range map[string]struct {
		play func(c run)
		want string // of the error; empty: success
	}{
		"chatter around": {func(c run) {
			fmt.Fprint(c.Stdout, strings.Repeat("x", 200<<10)) // no line end
			_, _ = c.Stdout.Write(blockOf(t, good("real"), c.Nonce))
			fmt.Fprint(c.Stdout, strings.Repeat("line\n", 100<<10))
		}, ""},
		"in pieces": {func(c run) {
			for _, b := range blockOf(t, good("real"), c.Nonce) {
				_, _ = c.Stdout.Write([]byte{b})
			}
		}, ""},
		"another's nonce": {func(c run) {
			_, _ = c.Stdout.Write(blockOf(t, good("forged"), nonce))
			_, _ = c.Stdout.Write(blockOf(t, good("real"), c.Nonce))
		}, ""},
		"on standard error": {func(c run) { _, _ = c.Stderr.Write(blockOf(t, good("forged"), c.Nonce)) }, "the tool gave no result: its worker ended with exit code 1"},
		"two": {func(c run) {
			_, _ = c.Stdout.Write(append(blockOf(t, good("real"), c.Nonce), blockOf(t, good("forged"), c.Nonce)...))
		}, "more than one result"},
		"cut":     {func(c run) { b := blockOf(t, good("real"), c.Nonce); _, _ = c.Stdout.Write(b[:len(b)-10]) }, "the tool's result has no end"},
		"nothing": {func(c run) { fmt.Fprint(c.Stdout, "last words") }, "its output ends: "},
		"no JSON": {func(c run) {
			fmt.Fprintf(c.Stdout, "\n__CAISSON_TOOL_RESULT_BEGIN_%s__\n{{\n__CAISSON_TOOL_RESULT_END_%s__\n", c.Nonce, c.Nonce)
		}, "the tool's result cannot be read: it is no JSON value; it begins: {{"},
	} {
		r := newRig(t, tools("t"))
		r.play("t", func(call run) executor.Result { c.play(call); return executor.Result{} })
		result := r.call("t", "{}")
		if c.want == "" && (!result.Success || string(result.Result) != `"real"`) || c.want != "" && (result.Success || !strings.Contains(result.Error, c.want)) {
			t.Errorf("%s: %v %.200s %.300q", name, result.Success, result.Result, result.Error)
		}
	}
}

func TestTX06_AProcessThatHoldsTheOutputDoesNotHoldTheResult(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, tools("t"))
		first := r.value("t")
		r.play("t", func(c run) executor.Result {
			_, _ = c.Stdout.Write(blockOf(t, good(c.Session), c.Nonce))
			return hang(c)
		})
		began := time.Now()
		if got := r.value("t"); got != first || time.Since(began) > 6*time.Second {
			t.Errorf("after %v", time.Since(began))
		}
		synctest.Wait()
		if n := r.fake.Running(); n != 0 {
			t.Errorf("%d processes are left", n)
		}
		r.play("t", nil)
		if r.value("t") != first {
			t.Error("the container was reset")
		}
	})
}

func TestAttackT54_ProgressRisesAndStandardErrorIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, tools("t"))
		r.play("t", func(c run) executor.Result {
			for i, done := range []float64{1, 3, 2, 3, 4} {
				fmt.Fprintf(c.Stdout, "__CAISSON_TOOL_PROGRESS_%s__ {\"progress\":%v,\"total\":9,\"message\":\"step %d\\u202e\"}\n", c.Nonce, done, i)
				<-time.After(time.Second)
			}
			fmt.Fprintf(c.Stdout, "__CAISSON_TOOL_PROGRESS_%s__ {\"progress\":100}\n", nonce)
			for range 200 { // faster than anybody reads
				fmt.Fprintf(c.Stdout, "__CAISSON_TOOL_PROGRESS_%s__ {\"progress\":%d}\n", c.Nonce, 5)
			}
			fmt.Fprint(c.Stderr, strings.Repeat("noise\n", 5000)+strings.Repeat("y", 1<<20)+"\n")
			return good(1)
		})
		var got []string
		result, err := r.Call(t.Context(), caller("alice"), "t", nil, func(p executor.Progress) { got = append(got, fmt.Sprint(p.Done, p.Total, p.Text)) })
		if err != nil || !result.Success {
			t.Errorf("%+v %v", result, err)
		}
		if text := strings.Join(got, ","); text != "1 9step 0\uFFFD,3 9step 1\uFFFD,4 9step 4\uFFFD,5 0" {
			t.Errorf("%q", text)
		}
		if log := r.log.String(); strings.Count(log, "line=noise") != 1000 || !strings.Contains(log, "4001 lines more") || strings.Contains(log, strings.Repeat("y", 5000)) {
			t.Errorf("%d lines of noise", strings.Count(log, "line=noise"))
		}
	})
}
