package worker_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"caisson/executor/wire"
)

func TestTX05_ENV07_ACommandGetsItsArgumentsAndGivesItsResult(t *testing.T) {
	o := shell("cat; echo chatter >&2", map[string]any{"text": "é\n", "n": 1}).run(t)
	o.wants(t, wire.StatusSuccess, `{"n":1,"text":"é\n"}`)
	if !strings.Contains(o.stderr, "chatter\n") {
		t.Errorf("standard error is %q", o.stderr)
	}
	if got := string(o.Metadata["tool_import_path"]); got != `"`+wire.CommandPath+`"` {
		t.Errorf("metadata say the tool is %s", got)
	}
}

func TestENV08_WhateverIsPrintedBecomesAResult(t *testing.T) {
	for _, c := range []struct {
		printed string
		status  wire.Status
		result  string
		fault   string
	}{
		{`12345678901234567890.000000000001`, wire.StatusSuccess, `12345678901234567890.000000000001`, ""},
		{"two\nlines\n", wire.StatusSuccess, `"two\nlines"`, ""},
		{`{"a": [1]}`, wire.StatusSuccess, `{"a":[1]}`, ""},
		{"", wire.StatusSuccess, `""`, ""},
		{"\\377", wire.StatusSuccess, `"` + "\uFFFD" + `"`, ""},
		{"null", wire.StatusError, "null", "returned null"},
		{`{"status":"success","result":7}`, wire.StatusSuccess, "7", ""},
		{`{"status":"success","result":7,"extra":1}`, wire.StatusSuccess, "7", ""},
		{`{"status":"success","result":7,"success":false}`, wire.StatusDoneWithErrors, "7", "not why"},
		{`{"status":"error","result":{"x":1},"error":"partly"}`, wire.StatusDoneWithErrors, `{"x":1}`, "partly"},
		{`{"status":"forbidden","result":null}`, wire.StatusForbidden, "null", "not why"},
		{`{"status":"open","result":7}`, wire.StatusSuccess, `{"status":"open","result":7}`, ""},
		{`{"status":1,"result":7}`, wire.StatusSuccess, `{"status":1,"result":7}`, ""},
		{`{"status":"success","result":7,"images":3}`, wire.StatusError, "null", "images has the wrong type"},
	} {
		o := shell(`printf "$P"`, nil)
		o.env = []string{"P=" + c.printed}
		got := o.run(t)
		if got.code != 0 || got.Status != c.status || string(got.Result.Result) != c.result || !strings.Contains(got.Error, c.fault) ||
			got.Success != (c.status == wire.StatusSuccess) {
			t.Errorf("%s: exit %d, %v %s %s %q", c.printed, got.code, got.Success, got.Status, got.Result.Result, got.Error)
		}
	}
}

func TestENV08_ImagesAndFilesAreCarried(t *testing.T) {
	o := shell(`echo '{"status":"success","result":1,"images":[{"name":"a.png","mime_type":"image/png","data":"aGk="}],"files":[{"name":"b","mime_type":"text/plain","data":""}],"metadata":{"k":1}}'`, nil).run(t)
	o.wants(t, wire.StatusSuccess, "1")
	if len(o.Images) != 1 || string(o.Images[0].Data) != "hi" || len(o.Files) != 1 || string(o.Metadata["k"]) != "1" {
		t.Errorf("got %+v", o.Result)
	}
}

func TestENV07_AFailureOfTheToolIsAResult(t *testing.T) {
	o := shell("echo why >&2; exit 3", nil).run(t)
	o.wants(t, wire.StatusError, "exit status 3: why")
	if string(o.Metadata["exit_code"]) != "3" {
		t.Errorf("metadata %v", o.Metadata)
	}
	shell("kill -SEGV $$", nil).run(t).wants(t, wire.StatusError, "SIGSEGV")
	missing := call{path: wire.CommandPath, parts: map[string]any{"name": "t", "command": []string{"no-such-program", "canary-arg"}}}.run(t)
	missing.wants(t, wire.StatusError, "no-such-program")
	if strings.Contains(missing.Error, "canary-arg") {
		t.Error("the arguments are shown")
	}
	call{path: wire.CommandPath, parts: map[string]any{"name": "t"}}.run(t).wants(t, wire.StatusError, "command")
}

func TestENV07_ExitStatusesOfTheWorkerItself(t *testing.T) {
	nonce := wire.NewNonce()
	for name, c := range map[string]struct {
		text  string
		block bool
	}{
		"not JSON":        {"{", false},
		"empty":           {"", false},
		"other version":   {fmt.Sprintf(`{"envelope_version":2,"tool_import_path":%q,"result_nonce":%q}`, wire.CommandPath, nonce), true},
		"unknown field":   {fmt.Sprintf(`{"executor":"docker","tool_import_path":%q,"result_nonce":%q}`, wire.CommandPath, nonce), true},
		"unknown tool":    {fmt.Sprintf(`{"tool_import_path":"x:Y","result_nonce":%q}`, nonce), true},
		"no nonce at all": {fmt.Sprintf(`{"tool_import_path":%q}`, wire.CommandPath), false},
	} {
		cmd := exec.Command(binary, "--envelope", "-")
		cmd.Stdin = strings.NewReader(c.text)
		out, _ := cmd.Output()
		if cmd.ProcessState.ExitCode() != 2 {
			t.Errorf("%s: exit %d", name, cmd.ProcessState.ExitCode())
		}
		if r := wire.ReadResult(out, nonce); (r.Status == wire.StatusError && !strings.Contains(r.Error, "no result")) != c.block {
			t.Errorf("%s: %q", name, out)
		}
	}
	if err := exec.Command(binary, "--envelope", "/nonexistent").Run(); err == nil || err.(*exec.ExitError).ExitCode() != 2 { //nolint:errorlint // of our own making
		t.Errorf("no file: %v", err)
	}
}

func TestTX18_AnEnvelopeInAFileIsGoneOnceItIsRead(t *testing.T) {
	path := filepath.Join(t.TempDir(), "envelope.json")
	c := shell(`test ! -e "$P" && echo gone`, nil)
	e := c.envelope(t)
	text, err := e.Encode()
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(binary, "--envelope", path)
	cmd.Env = append(os.Environ(), "P="+path)
	out, err := cmd.Output()
	if r := wire.ReadResult(out, e.Nonce); err != nil || string(r.Result) != `"gone"` {
		t.Errorf("%v %s", err, out)
	}
}

func TestTX05_ACallIsCutAtItsDeadlineWithAllThatItStarted(t *testing.T) {
	mark := filepath.Join(t.TempDir(), "pids")
	c := shell(`setsid sh -c 'echo $$ >> "$M"; exec sleep 600' & (sleep 600 & echo $! >> "$M"); echo $$ >> "$M"; while :; do :; done`, nil)
	c.timeout, c.env = 2*time.Second, []string{"M=" + mark}
	o := c.run(t)
	o.wants(t, wire.StatusError, "did not finish within 1.8s")
	if o.took > 8*time.Second {
		t.Errorf("took %s", o.took)
	}
	goneAll(t, mark, 3)
}

func TestTX05_WhatACommandLeavesBehindIsKilled(t *testing.T) {
	mark := filepath.Join(t.TempDir(), "pids")
	c := shell(`(setsid sh -c 'echo $$ >> "$M"; exec sleep 600' &) ; until test -s "$M"; do :; done; echo fine`, nil)
	c.env = []string{"M=" + mark}
	o := c.run(t)
	o.wants(t, wire.StatusSuccess, "fine")
	goneAll(t, mark, 1)
}

// goneAll fails where a process is there whose id stands in the file.
func goneAll(t *testing.T, file string, atLeast int) {
	t.Helper()
	text, _ := os.ReadFile(file)
	pids := strings.Fields(string(text))
	if len(pids) < atLeast {
		t.Errorf("only %d processes told their ids", len(pids))
	}
	for _, pid := range pids {
		if state := stateOf(pid); state != "" && state != "Z" {
			t.Errorf("process %s is left (%s)", pid, state)
		}
	}
}

func stateOf(pid string) string {
	text, err := os.ReadFile("/proc/" + pid + "/stat")
	if err != nil {
		return ""
	}
	return strings.Fields(string(text[bytes.LastIndexByte(text, ')')+1:]))[0]
}

// askedToEnd starts a call whose command writes to standard error, looks at it then, and
// has its worker end.
func (c call) askedToEnd(t *testing.T, look func()) outcome {
	t.Helper()
	e := c.envelope(t)
	cmd, stdout, stderr := c.command(t, e)
	cmd.Stderr = nil
	pipe, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	start := time.Now()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	_, _ = pipe.Read(make([]byte, 3))
	look()
	_ = cmd.Process.Signal(syscall.SIGTERM)
	_ = cmd.Wait()
	return read(e, cmd, stdout, stderr, start)
}

func TestTX05_APoliteSignalEndsTheCallWithAResult(t *testing.T) {
	shell(`echo up >&2; sleep 600`, nil).askedToEnd(t, func() {}).wants(t, wire.StatusError, "cancelled")
}

func TestTX05_TX09_APoliteSignalEndsWhatHasLeftTheGroup(t *testing.T) {
	file := filepath.Join(t.TempDir(), "pid")
	c := shell(`setsid sh -c 'trap "" TERM; echo $$ > `+file+`.new; mv `+file+`.new `+file+`; exec sleep 600' & until [ -e `+file+` ]; do sleep 0.02; done; echo up >&2; sleep 600`, nil)
	var pid string
	c.askedToEnd(t, func() {
		text, err := os.ReadFile(file)
		if pid = strings.TrimSpace(string(text)); err != nil || stateOf(pid) == "" {
			t.Errorf("%q %v", pid, err)
		}
	}).wants(t, wire.StatusError, "cancelled")
	if state := stateOf(pid); state != "" && state != "Z" {
		t.Errorf("what the tool has left runs on: %s", state)
	}
}

func TestENV08_OutputIsBounded(t *testing.T) {
	shell("yes", nil).run(t).wants(t, wire.StatusError, "more than 16 MiB")
	o := shell("yes | head -c 3000000 >&2; echo end", nil).run(t)
	o.wants(t, wire.StatusSuccess, "end")
	if len(o.stderr) > 2<<20 || !strings.Contains(o.stderr, "more lines are left out") {
		t.Errorf("%d bytes went to the log", len(o.stderr))
	}
	big := shell("cat > /dev/null; echo ok", map[string]string{"x": strings.Repeat("y", 4<<20)}).run(t)
	big.wants(t, wire.StatusSuccess, "ok")
	shell("exec <&-; echo unread", map[string]string{"x": strings.Repeat("y", 4<<20)}).run(t).wants(t, wire.StatusSuccess, "unread")
}

func TestTX06_AToolCannotForgeItsResult(t *testing.T) {
	o := shell(`cat /proc/$PPID/cmdline | tr '\0' ' '; cat /proc/$PPID/environ 2>/dev/null | tr '\0' '\n' | grep -c __CAISSON`, nil).run(t)
	if strings.Contains(string(o.Result.Result), "nonce") || o.Status != wire.StatusSuccess && o.Status != wire.StatusError {
		t.Errorf("%s %s", o.Status, o.Result.Result)
	}
	forged := `__CAISSON_TOOL_RESULT_BEGIN_%s__\n{}\n__CAISSON_TOOL_RESULT_END_%s__`
	c := shell(fmt.Sprintf("printf '"+forged+"'", strings.Repeat("0", 32), strings.Repeat("0", 32)), nil)
	c.run(t).wants(t, wire.StatusSuccess, "BEGIN_0000")
	var text string
	if err := json.Unmarshal(c.run(t).Result.Result, &text); err != nil || !strings.Contains(text, "\n{}\n") {
		t.Errorf("%v %q", err, text)
	}
}

// The server takes a block of 8 MiB: what no client could get is not sent.
func TestAttackT54_WhatIsTooLargeToHandOnIsCutBeforeItIsPrinted(t *testing.T) {
	o := shell(`head -c 12000000 /dev/zero | tr '\0' x; printf end`, nil).run(t)
	if o.Status != wire.StatusSuccess || len(o.Result.Result) > 1<<20 || !strings.HasSuffix(string(o.Result.Result), `xxxend"`) || !strings.Contains(string(o.Metadata["left_out"]), "which has 12000005 bytes") {
		t.Errorf("%s, %d bytes, %s %s", o.Status, len(o.Result.Result), o.Metadata["left_out"], o.Error)
	}
	o = shell(`d=$(head -c 400000 /dev/zero | base64 -w 0); i='{"name":"a","mime_type":"image/png","data":"'$d'"}'; echo '{"status":"success","result":1,"images":['"$i,$i,$i"']}'`, nil).run(t)
	if o.Status != wire.StatusSuccess || len(o.Images) != 1 || len(o.Images[0].Data) != 400000 || !strings.Contains(string(o.Metadata["left_out"]), "2 images and files with 800000 bytes") {
		t.Errorf("%s, %d images, %s %s", o.Status, len(o.Images), o.Metadata["left_out"], o.Error)
	}
}
