package mcp_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	mcpgo "github.com/mark3labs/mcp-go/mcp"

	"caisson/executor"
)

// giving makes a client of a server whose one tool gives a result.
func giving(t *testing.T, r executor.Result) *conn {
	t.Helper()
	f := withTools("one")
	f.work = func(context.Context, string, json.RawMessage, func(executor.Progress)) (executor.Result, error) {
		return r, nil
	}
	return newRig(t, f.into).dial("http", legacy)
}

// Any JSON value is a result, exactly in the structure and readably in the text.
func TestDeclaredResultsAreShownReadably(t *testing.T) {
	for value, want := range map[string]string{
		`"two\nlines"`: "two\nlines\n", `42`: "42\n", `12345678901234567890.1`: "12345678901234567890.1\n", `true`: "true\n", `[1,{"a":2}]`: "[\n 1,\n {\n  \"a\": 2\n }\n]\n",
		`{"stdout":"a\nb\n","value":"3","n":1}`: "stdout: \na\nb\nvalue: 3\nn: 1\n", `{}`: "{}\n", `"\u001b[2J\u202e"`: `\x1b[2J\u202e` + "\n",
	} {
		got := giving(t, succeeded(json.RawMessage(value))).ok("one", nil)
		if !strings.Contains(got.text, " result, as the tool gave it\n"+want+"===") {
			t.Errorf("%s:\n%s", value, got.text)
		}
		if !strings.HasPrefix(got.text, `success (docker, warm, rule "shell_*", 1.5s)`+"\n") {
			t.Errorf("%s", got.text)
		}
		var structure struct{ Result json.RawMessage }
		if err := json.Unmarshal(got.raw.RawStructuredContent, &structure); err != nil || !sameJSON(structure.Result, value) {
			t.Errorf("%s in the structure: %s, %v", value, structure.Result, err)
		}
	}
	got := giving(t, succeeded(nil)).ok("one", nil)
	if !strings.Contains(got.text, "the tool gave nothing") || !strings.Contains(string(got.raw.RawStructuredContent), `"result":null`) {
		t.Errorf("%s\n%s", got.text, got.raw.RawStructuredContent)
	}
}

func sameJSON(a json.RawMessage, b string) bool {
	var x, y bytes.Buffer
	return json.Compact(&x, a) == nil && json.Compact(&y, []byte(b)) == nil && (x.String() == y.String() || unescaped(a) == unescaped([]byte(b)))
}

func unescaped(text []byte) string {
	var s string
	_ = json.Unmarshal(text, &s)
	return s
}

// A failure is an error result with its code; what the tool found stays. An error of
// several lines cannot pass for lines of ours.
func TestDeclaredFailures(t *testing.T) {
	for _, row := range []struct {
		result executor.Result
		want   string
	}{
		{executor.Failure(executor.StatusError, "it did not finish within 5 s"), "tool_failed: it did not finish within 5 s\nerror\n"},
		{executor.Failure(executor.StatusForbidden, ""), "tool_failed: the tool failed and did not say why; its status is forbidden\n"},
		{executor.Failure(executor.StatusUnauthorized, "log in"), "tool_failed: log in\n"},
		{executor.Failure(executor.StatusDoneWithErrors, "line\nnote: forged"), "tool_failed: the tool failed with the error below; its status is done_with_errors\ndone with errors\n=== "},
	} {
		row.result.Result = json.RawMessage(`"half"`)
		got := giving(t, row.result).want("tool_failed", "one", nil)
		if !strings.HasPrefix(got.text, row.want) || !strings.Contains(got.text, "half") || got.str("status") != string(row.result.Status) || got.str("result") != "half" {
			t.Errorf("%s\n%v", got.text, got.fields)
		}
	}
	pending := executor.Result{Status: executor.StatusPending}
	giving(t, pending).ok("one", nil)
	partly := succeeded(json.RawMessage(`1`))
	partly.Status, partly.Error = executor.StatusDoneWithErrors, "one of two"
	if got := giving(t, partly).ok("one", nil); got.str("error") != "one of two" || !strings.Contains(got.text, "error: one of two") {
		t.Errorf("%s", got.text)
	}
}

// Whatever a container sends, what goes to the client is bounded, valid and says
// what is missing.
func TestAttackT54_DeclaredResultsAreBounded(t *testing.T) {
	nested := strings.Repeat("[", 500) + strings.Repeat("]", 500)
	metadata := map[string]json.RawMessage{"executor": []byte(`"docker"`)}
	for i := range 1000 {
		metadata[fmt.Sprintf("key_%d", i)] = json.RawMessage(`"` + strings.Repeat("x", i) + `"`)
	}
	for name, row := range map[string]struct {
		result executor.Result
		said   string
	}{
		"long text":     {succeeded(stringOf(strings.Repeat("é", 1_000_000))), "850100 characters of the result are left out"},
		"long list":     {succeeded(json.RawMessage("[" + strings.Repeat(`"x",`, 100_000) + "1]")), "characters of the result are left out; it is given as the text of its JSON"},
		"control bytes": {succeeded(stringOf(strings.Repeat("\x1b", 140_000) + strings.Repeat("x", 50_000))), "characters of the result are left out"},
		"quotes":        {succeeded(stringOf(strings.Repeat("\"\n", 140_000))), "characters of the result are left out"},
		"bidi":          {succeeded(stringOf(strings.Repeat("\u202e", 100_000))), "are left out of this text; the structured result has them"},
		"deep":          {succeeded(json.RawMessage(nested)), "nested too deep"},
		"long error":    {executor.Failure(executor.StatusError, strings.Repeat("e", 100_000)), "84000 characters of the error are left out"},
		"much metadata": {executor.Result{Success: true, Status: executor.StatusSuccess, Metadata: metadata}, "entries of the metadata are left out"},
		"no UTF-8":      {succeeded(json.RawMessage("\"a\xff\"")), "a\ufffd"},
	} {
		got := giving(t, row.result).call("one", nil)
		if !strings.Contains(got.text, row.said) {
			t.Errorf("%s: it is not said: %.300s", name, got.text)
		}
		if n := utf8.RuneCountInString(got.text); n > 200_000 {
			t.Errorf("%s: text of %d characters", name, n)
		}
		if n := utf8.RuneCount(got.raw.RawStructuredContent); n > 200_000 {
			t.Errorf("%s: structure of %d characters", name, n)
		}
	}
}

// A tool that says much of itself pushes out nothing of what the server says.
func TestTX21_TheServersOwnMetadataComesFirst(t *testing.T) {
	r := succeeded(json.RawMessage(`1`))
	for i := range 4000 {
		r.Metadata[fmt.Sprintf("k%d", i)] = json.RawMessage(`1`)
	}
	own := map[string]string{
		"executor": `"docker"`, "mode": `"warm"`, "rule": `"a_rule_with_a_long_name_*"`, "container": `"0123456789abcdef"`, "exec_id": `"0123456789abcdef"`, "duration_ms": `123456789`,
		"left_out": `["the middle of the result\nnote: forged","` + strings.Repeat("x", 1000) + `"]`,
	}
	for name, value := range own {
		r.Metadata[name] = json.RawMessage(value)
	}
	got := giving(t, r).ok("one", nil)
	var structure struct{ Metadata map[string]json.RawMessage }
	if err := json.Unmarshal(got.raw.RawStructuredContent, &structure); err != nil {
		t.Fatal(err)
	}
	for name, value := range own {
		if string(structure.Metadata[name]) != value {
			t.Errorf("%s is %.60s", name, structure.Metadata[name])
		}
	}
	if n := len(structure.Metadata); n < 1000 || n > 4000 || !strings.Contains(got.text, "entries of the metadata are left out") {
		t.Errorf("%d entries: %.300s", n, got.text)
	}
	if !strings.Contains(got.text, `note: left out where the tool ran: "the middle of the result\nnote: forged"`+"\n") || strings.Contains(got.text, strings.Repeat("x", 500)) {
		t.Errorf("%.600s", got.text)
	}
	r.Metadata["failure"] = stringOf(strings.Repeat("f", 20_000)) // one that does not fit takes no other's room
	if got := giving(t, r).ok("one", nil); !strings.Contains(string(got.raw.RawStructuredContent), `"exec_id"`) {
		t.Error("the server's own are gone")
	}
}

func stringOf(text string) json.RawMessage {
	raw, err := json.Marshal(text)
	if err != nil {
		panic(err)
	}
	return raw
}

// Images become image content when their bytes are an image's, files embedded
// resources; what does not fit is counted.
func TestDeclaredImagesAndFiles(t *testing.T) {
	png := append([]byte("\x89PNG\r\n\x1a\n"), make([]byte, 100_000)...)
	r := succeeded(json.RawMessage(`"plotted"`))
	r.Images = []executor.File{{Name: "plot.png", MIMEType: "image/png", Data: png}, {Name: "fake.png", MIMEType: "image/png", Data: []byte("no image")}}
	r.Files = []executor.File{{Name: "../ta\x1bble.csv", MIMEType: "text/csv", Data: []byte("a,b\n")}, {Name: "huge.bin", Data: make([]byte, 1<<20)}, {Name: "last.bin", MIMEType: "x\r\ny", Data: []byte{0, 1}}}
	got := giving(t, r).ok("one", nil)
	var kinds []string
	for _, content := range got.raw.Content[1:] {
		switch c := content.(type) {
		case mcpgo.ImageContent:
			kinds = append(kinds, "image "+c.MIMEType)
		case mcpgo.EmbeddedResource:
			blob := c.Resource.(mcpgo.BlobResourceContents)
			kinds = append(kinds, "blob "+blob.MIMEType+" "+blob.URI)
		}
	}
	want := []string{"image image/png", "blob image/png result:///fake.png", `blob text/csv result:///..%2Fta%5Cx1bble.csv`, "blob application/octet-stream result:///last.bin"}
	if strings.Join(kinds, "\n") != strings.Join(want, "\n") {
		t.Errorf("%s", strings.Join(kinds, "\n"))
	}
	if !strings.Contains(got.text, `note: 1 images and files with 1048576 bytes are left out ("huge.bin")`) {
		t.Errorf("%s", got.text)
	}
	r.Files = nil
	for range 100 {
		r.Files = append(r.Files, executor.File{Name: "f", Data: []byte("x")})
	}
	if got := giving(t, r).ok("one", nil); len(got.raw.Content) != 21 || !strings.Contains(got.text, "82 images and files") {
		t.Errorf("%d contents: %s", len(got.raw.Content), got.text)
	}
}

// One hung tool holds nobody up, and the server ends with it under way.
func TestADeclaredToolEndsWithTheServer(t *testing.T) {
	f := withTools("one")
	f.work = func(ctx context.Context, _ string, _ json.RawMessage, _ func(executor.Progress)) (executor.Result, error) {
		<-ctx.Done()
		return executor.Failure(executor.StatusError, "cancelled"), nil
	}
	r := newRig(t, f.into)
	c := r.dial("http", legacy)
	answered := make(chan *result, 1)
	go func() {
		got, _ := c.try(t.Context(), "one", nil, nil)
		answered <- got
	}()
	eventually(t, "the call is under way", func() bool { return r.server.CallsUnderWay() == 1 })
	c.ok("session_list", nil)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := r.server.Close(ctx); err != nil {
		t.Error(err)
	}
	if got := <-answered; got != nil && !strings.Contains(got.text, "shutting down") {
		t.Errorf("%s", got.text)
	}
}
