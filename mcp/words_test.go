package mcp_test

import (
	"encoding/base64"
	"strings"
	"testing"

	"caisson/sandbox"
	"caisson/sandbox/sandboxtest"
)

// TestBugMS02_FieldNamesAreShort: the name of an unknown argument is its
// sender's, of any length.
func TestBugMS02_FieldNamesAreShort(t *testing.T) {
	c := newRig(t).dial("inprocess", legacy)
	for _, name := range []string{strings.Repeat("x", 100_000), strings.Repeat("é", 1000)} {
		got := c.want("invalid_argument", "session_list", args{name: 1})
		if n := len(got.field()); n == 0 || n > 64+len("…") || len(got.text) > 1000 {
			t.Errorf("field of %d bytes, text of %d", n, len(got.text))
		}
	}
}

// TestFaultsOfACommandNameCommand: the client has sent no argv.
func TestFaultsOfACommandNameCommand(t *testing.T) {
	r := newRig(t)
	c := r.dial("inprocess", legacy)
	r.fake.Fail(sandboxtest.OpStart, sandbox.Invalid("argv", "word 2 of the command has 200000 bytes"))
	for _, tool := range []string{"exec", "run"} {
		got := c.want("invalid_argument", tool, args{"command": "true"})
		if got.field() != "command" || !strings.Contains(got.text, ": the command has 200000") {
			t.Errorf("%s: %s: %s", tool, got.field(), got.text)
		}
		if got = c.want("invalid_argument", tool, args{"argv": []string{"true"}}); got.field() != "argv" {
			t.Errorf("%s: %s: %s", tool, got.field(), got.text)
		}
	}
}

// TestExtractSaysWhatIsNoArchive for text, for other archives and for compressed
// text.
func TestExtractSaysWhatIsNoArchive(t *testing.T) {
	c := newRig(t).dial("inprocess", legacy)
	for name, content := range map[string]string{
		"text": "hello", "nothing": "", "long text": strings.Repeat("hello ", 1000),
		"zip":            "PK\x03\x04" + strings.Repeat("\x01\x00x", 500),
		"gzip of no tar": "\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\x03\xcbH\xcd\xc9\xc9\x07\x00\x86\xa6\x106\x05\x00\x00\x00",
	} {
		got := c.want("invalid_argument", "upload", args{"path": "d", "content": base64.StdEncoding.EncodeToString([]byte(content)), "encoding": "base64", "extract": true})
		if got.field() != "content" || !strings.Contains(got.text, "no tar or tar.gz") {
			t.Errorf("%s: %s: %s", name, got.field(), got.text)
		}
	}
	empty := base64.StdEncoding.EncodeToString(make([]byte, 1024))
	c.ok("upload", args{"path": "d", "content": empty, "encoding": "base64", "extract": true})
}

// TestUploadedFilesAreReadable refuses modes under which the promise of an
// upload could not hold.
func TestUploadedFilesAreReadable(t *testing.T) {
	c := newRig(t).dial("inprocess", legacy)
	for _, mode := range []string{"0", "0000", "0377", "222"} {
		got := c.want("invalid_argument", "upload", args{"path": "f", "content": "x", "mode": mode})
		if got.field() != "mode" || !strings.Contains(got.text, "let the owner read") {
			t.Errorf("%s: %s", mode, got.text)
		}
	}
	c.ok("upload", args{"path": "f", "content": "x", "mode": "0400"})
}

// TestRunSaysWhatIsWrongWithAnOutput in words that name the argument.
func TestRunSaysWhatIsWrongWithAnOutput(t *testing.T) {
	r := newRig(t)
	c := r.dial("inprocess", legacy)
	r.fake.Fail(sandboxtest.OpRead, sandbox.Invalid("path", `"/dev/zero": not a regular file`))
	got := c.ok("run", args{"command": "true", "outputs": []string{"/dev/zero"}})
	if !strings.Contains(got.text, `outputs that are not returned: "/dev/zero": not a regular file`) {
		t.Errorf("%s", got.text)
	}
}
