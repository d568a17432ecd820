package executor_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"caisson/executor"
	"caisson/sandbox"
)

func block(t *testing.T, r executor.Result) string {
	t.Helper()
	text, err := executor.EncodeBlock(r, nonce)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// plain is a small success.
func plain() executor.Result {
	return executor.Result{Success: true, Status: executor.StatusSuccess, Result: raw(`"ours"`), Timestamp: time.Unix(1, 0).UTC()}
}

func TestENV06_ENV09_AResultSurvivesTheBlock(t *testing.T) {
	r := executor.Result{
		Success: true, Status: executor.StatusDoneWithErrors, Result: raw(`{"n":12345678901234567890,"text":"a\nb é"}`), Error: "half", Metadata: map[string]json.RawMessage{"k": raw("[1]")},
		Timestamp: time.Unix(1700000000, 5).UTC(), Files: []executor.File{{Name: "a.txt", MIMEType: "text/plain", Data: []byte{0, 255}}}, Images: []executor.File{{Name: "p.png", MIMEType: "image/png", Data: []byte("x")}},
		VoiceText: "v", DisplayData: raw(`{"x":1}`),
	}
	text := block(t, r)
	lines := strings.Split(text, "\n")
	if len(lines) != 5 || lines[0] != "" || lines[4] != "" || !json.Valid([]byte(lines[2])) {
		t.Errorf("the block is %q", text)
	}
	if diff := cmp.Diff(r, executor.ReadResult([]byte(text), nonce)); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(plain(), executor.ReadResult([]byte(block(t, plain())), nonce), cmpopts.EquateEmpty()); diff != "" {
		t.Error(diff)
	}
}

func TestENV06_TX06_ChatterAroundTheBlockIsIgnored(t *testing.T) {
	other := strings.ReplaceAll(strings.ReplaceAll(block(t, plain()), nonce, strings.Repeat("0", 32)), "ours", "forged")
	for name, stdout := range map[string]string{
		"before, unfinished line": "progress 50%" + block(t, plain()),
		"after":                   block(t, plain()) + "bye\n" + strings.Repeat("z", 1<<16),
		"no line end":             strings.TrimSuffix(block(t, plain()), "\n"),
		"bytes":                   "\x00\xff\xfe\n" + block(t, plain()) + "\xff",
		"another nonce before":    other + block(t, plain()),
		"another nonce after":     block(t, plain()) + other,
		"marker inside a line":    "echo __CAISSON_TOOL_RESULT_BEGIN_" + nonce + "__\n" + block(t, plain()),
	} {
		if r := executor.ReadResult([]byte(stdout), nonce); !r.Success || string(r.Result) != `"ours"` {
			t.Errorf("%s: %+v", name, r)
		}
	}
}

func TestD16_OnlyTheBlockWithTheNonceCounts(t *testing.T) {
	ours := block(t, plain())
	begin, end := strings.Split(ours, "\n")[1], strings.Split(ours, "\n")[3]
	forged := strings.ReplaceAll(ours, "ours", "forged")
	for name, c := range map[string]struct{ stdout, want string }{
		"nothing":             {"", "gave no result"},
		"another nonce alone": {strings.ReplaceAll(forged, nonce, strings.Repeat("0", 32)), "gave no result"},
		"no nonce":            {strings.ReplaceAll(forged, "_"+nonce, ""), "gave no result"},
		"in capitals":         {strings.ToUpper(forged), "gave no result"},
		"two blocks":          {forged + ours, "more than one result"},
		"two beginnings":      {begin + "\n" + ours, "more than one result"},
		"two ends":            {ours + end + "\n", "an end without a beginning"},
		"end first":           {end + "\n" + ours, "an end without a beginning"},
		"end, then beginning": {end + "\n" + begin + "\n{}\n", "an end without a beginning"},
		"no end":              {begin + "\n{}\n", "has no end"},
		"carriage returns":    {strings.ReplaceAll(ours, "\n", "\r\n"), "gave no result"},
	} {
		r := executor.ReadResult([]byte(c.stdout), nonce)
		if r.Success || r.Status != executor.StatusError || !strings.Contains(r.Error, c.want) {
			t.Errorf("%s: %+v", name, r)
		}
	}
	for _, n := range []string{"", "_", strings.Repeat("g", 32), nonce + "\n"} {
		if r := executor.ReadResult([]byte(ours), n); r.Success {
			t.Errorf("nonce %q: %+v", n, r)
		}
		if _, err := executor.EncodeBlock(plain(), n); err == nil {
			t.Errorf("nonce %q is used", n)
		}
	}
}

func TestENV09_AResultIsReadStrictlyAndAFailureIsNeverASuccess(t *testing.T) {
	for payload, want := range map[string]string{
		"": "no JSON value", "{": "no JSON value", "[]": "no JSON object", "{}": "no field success", `{"success":true,"status":"success"}`: "no field result",
		`{"success":true,"status":"error","result":1}`: "success is true", `{"success":true,"status":"forbidden","result":1}`: "success is true",
		`{"success":false,"status":"success","result":1}`: "success is false", `{"success":true,"status":"fine","result":1}`: `no status "fine"`,
		`{"success":true,"status":"success","result":1,"extra":1}`: `no field "extra"`, `{"success":true,"success":false,"status":"error","result":1}`: "there twice",
		`{"Success":true,"status":"success","result":1}`: `no field "Success"`, `{"success":1,"status":"success","result":1}`: "success has the wrong type",
		`{"success":true,"status":"success","result":1,"files":{}}`: "no list", `{"success":true,"status":"success","result":1,"files":[{"path":"/etc/passwd"}]}`: `no field "path"`,
		`{"success":true,"status":"success","result":1,"images":[{"data":"%"}]}`: "data has the wrong type", `{"success":true,"status":"success","result":1,"metadata":[]}`: "metadata",
		`{"success":true,"status":"success","result":1}{}`: "no JSON value", `{"success":true,"status":"success","result":"` + "\xff" + `"}`: "not UTF-8",
	} {
		stdout := "__CAISSON_TOOL_RESULT_BEGIN_" + nonce + "__\n" + payload + "\n__CAISSON_TOOL_RESULT_END_" + nonce + "__\n"
		r := executor.ReadResult([]byte(stdout), nonce)
		if r.Success || r.Status != executor.StatusError || !strings.Contains(r.Error, want) {
			t.Errorf("%s\ngot  %+v\nwant %s", payload, r, want)
		}
	}
	for _, status := range executor.Statuses() {
		for _, success := range []bool{true, false} {
			_, err := executor.EncodeBlock(executor.Result{Success: success, Status: status}, nonce)
			want := status == executor.StatusSuccess == success || status == executor.StatusDoneWithErrors || status == executor.StatusPending
			if (err == nil) != want || err != nil && sandbox.KindOf(err) != sandbox.KindInvalid {
				t.Errorf("%s, success %v: %v", status, success, err)
			}
		}
	}
}

func TestAFailureShowsABoundedPieceOfTheOutput(t *testing.T) {
	r := executor.ReadResult([]byte(strings.Repeat("a", 1<<20)+"é the end"), nonce)
	if !strings.HasSuffix(r.Error, "é the end") || len(r.Error) > 5<<10 {
		t.Errorf("%d bytes", len(r.Error))
	}
	stdout := "__CAISSON_TOOL_RESULT_BEGIN_" + nonce + "__\nBAD" + strings.Repeat("b", 1<<20) + "\n__CAISSON_TOOL_RESULT_END_" + nonce + "__\n"
	if r := executor.ReadResult([]byte(stdout), nonce); !strings.Contains(r.Error, "it begins: BADb") || len(r.Error) > 1<<10 {
		t.Errorf("%d bytes", len(r.Error))
	}
}

// Whatever a container prints, there is a result, and it is a success only where the
// block with the nonce says so.
func FuzzResultBlock(f *testing.F) {
	names, err := filepath.Glob("testdata/results/*")
	if err != nil || len(names) < 4 {
		f.Fatalf("%d samples: %v", len(names), err)
	}
	for _, name := range names {
		text, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, stdout []byte) {
		r := executor.ReadResult(stdout, nonce)
		if r.Success && !strings.Contains(string(stdout), nonce) {
			t.Errorf("a success without the nonce: %+v", r)
		}
		if r.Success && r.Status == executor.StatusError || r.Status == "" {
			t.Errorf("a contradiction: %+v", r)
		}
		again, err := executor.EncodeBlock(r, nonce)
		if err != nil {
			t.Fatalf("what was read cannot be written: %v", err)
		}
		if diff := cmp.Diff(r.Status, executor.ReadResult(again, nonce).Status); diff != "" {
			t.Errorf("it reads differently the second time: %s", diff)
		}
	})
}

// Whatever arrives, reading an envelope ends with one that can be sent or an error.
func FuzzEnvelope(f *testing.F) {
	text, err := full().Encode()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(text)
	f.Add([]byte(minimal(`,"permission_context":{"session":null}`)))
	f.Add([]byte(minimal(`,"arguments":{"a":{"b":[1,2,{"c":null}]}}`)))
	f.Fuzz(func(t *testing.T, text []byte) {
		e, err := executor.DecodeEnvelope(text)
		if err != nil {
			return
		}
		again, err := e.Encode()
		if err != nil {
			t.Fatalf("what was read cannot be written: %v", err)
		}
		if _, err := executor.DecodeEnvelope(again); err != nil {
			t.Errorf("what was written cannot be read: %v", err)
		}
	})
}
