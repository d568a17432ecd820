package executor_test

import (
	"encoding/json"
	"strings"
	"testing"

	"caisson/executor"
)

func TestAttackT58_JSONThatReadersDifferOnIsMadePlain(t *testing.T) {
	r := newRig(t, tools("t"))
	for given, want := range map[string][2]string{
		`{"n":1e999,"m":-1E+400,"ok":1.5e300}`:           {`{"m":"-1E+400","n":"1e999","ok":1.5e300}`, "float64"},
		`[{"a":1,"a":{"b":2}},{"a":3}]`:                  {`[{"a":{"b":2}},{"a":3}]`, "same name"},
		`{"a":1,"\u0061":2}`:                             {`{"a":2}`, "same name"},
		`["\ud800","x\udc00y","\ud83d\ude00","\\ud800"]`: {"[\"\uFFFD\",\"x\uFFFDy\",\"😀\",\"\\\\ud800\"]", "halves"},
		`{"\ud800":1,"id":9007199254740993}`:             {"{\"id\":9007199254740993,\"\uFFFD\":1}", "halves"},
		`{"b":{"x":1},"a":{"x":"(\ud83d\ude00)"},"id":123456789012345678901234567890,"s":"a: \"a\": 1e999"}`: {``, ""},
		`[1e-999,0.1,-0,"\\\"","",[],{}]`: {``, ""},
	} {
		r.play("t", func(run) executor.Result {
			return executor.Result{
				Success: true, Status: executor.StatusSuccess, Result: raw(given), DisplayData: raw(given),
				Metadata: map[string]json.RawMessage{"own": raw(given), "json_changed": raw("1")},
			}
		})
		result := r.call("t", "{}")
		if want[0] == "" {
			want[0] = given
		}
		for _, got := range []json.RawMessage{result.Result, result.DisplayData, result.Metadata["own"]} {
			if string(got) != want[0] {
				t.Errorf("%s became %s", given, got)
			}
		}
		if said := string(result.Metadata["json_changed"]); (said == "") != (want[1] == "") || !strings.Contains(said, want[1]) {
			t.Errorf("%s: said %q", given, said)
		}
	}
}
