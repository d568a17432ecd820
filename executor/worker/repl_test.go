package worker_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"caisson/executor/wire"
)

// python runs code in the REPL of an instance.
func python(instance, code string, args ...string) call {
	return call{
		path: wire.REPLPath, parts: map[string]any{"name": "python_repl", "instance": instance},
		arguments: map[string]any{"code": code}, args: args,
	}
}

// said is what a REPL's call gave.
type said struct {
	Stdout, Stderr, Value, Error, Note string
}

func saidBy(t *testing.T, o outcome) said {
	t.Helper()
	var s said
	if err := json.Unmarshal(o.Result.Result, &s); err != nil {
		t.Fatalf("%v: %s %s %s", err, o.Status, o.Error, o.stderr)
	}
	return s
}

func TestTX27_AREPLKeepsItsStateBetweenCalls(t *testing.T) {
	warm := residence(t)
	python("a", "import math\nn = 1\ndef double(x): return 2 * x", warm...).run(t).wants(t, wire.StatusSuccess, "")
	for i := 1; i <= 20; i++ {
		s := saidBy(t, python("a", "n = double(n); print('call'); n", warm...).run(t))
		if s.Value != fmt.Sprint(1<<i) || s.Stdout != "call\n" || s.Stderr != "" || s.Error != "" {
			t.Fatalf("call %d gives %+v", i, s)
		}
	}
	other := python("b", "n", warm...).run(t)
	other.wants(t, wire.StatusDoneWithErrors, "NameError: name 'n' is not defined") // D26
	python("a", "n", warm...).run(t).wants(t, wire.StatusSuccess, "1048576")
}

func TestTX27_AREPLEchoesPrintsAndTellsErrors(t *testing.T) {
	warm := residence(t)
	for _, c := range []struct {
		code string
		want said
	}{
		{"1 + 1", said{Value: "2"}},
		{"x = 5", said{}},
		{"x", said{Value: "5"}},
		{"None", said{}},
		{"'é'", said{Value: "'é'"}},
		{"", said{}},
		{"print('a'); print('b', end='')", said{Stdout: "a\nb"}},
		{"import sys; print('e', file=sys.stderr)", said{Stderr: "e\n"}},
		{"import os; _ = os.system('echo sub')", said{Stdout: "sub\n"}},
		{"input()", said{Error: "EOFError: EOF when reading a line"}},
		{"1 +", said{Error: "SyntaxError: invalid syntax"}},
		{"exit(3)", said{Error: "SystemExit: 3"}},
		{"def f():\n  1/0\nf()", said{Error: "    1/0\n    ~^~\nZeroDivisionError: division by zero"}},
		{"class A:\n  def __repr__(self): raise ValueError('no')\nA()", said{Error: "ValueError: no"}},
		{"'y' * 100000", said{Value: "… (34466 more bytes)"}},
		{"if __name__ == '__main__': print('main')", said{Stdout: "main\n"}},
		{"import os; os.close(3) if os.path.exists('/proc/self/fd/3') else None; os.closerange(3, 100)", said{}},
		{"import os; os.dup2(os.open('/dev/null', os.O_WRONLY), 1); print('lost')", said{}},
	} {
		code, want := c.code, c.want
		got := saidBy(t, python("a", code, warm...).run(t))
		if got.Stdout != want.Stdout || got.Stderr != want.Stderr || !strings.HasSuffix(got.Value, want.Value) || !strings.HasSuffix(got.Error, want.Error) ||
			(got.Value == "") != (want.Value == "") || (got.Error == "") != (want.Error == "") || strings.Contains(got.Error, "<caisson>") {
			t.Errorf("%q gives %+v", code, got)
		}
	}
	python("c", "import sys; sys.stdout.close(); sys.stdin = None", warm...).run(t).wants(t, wire.StatusSuccess, "sys.stdout was closed")
	python("c", "print('there')", warm...).run(t).wants(t, wire.StatusSuccess, `"stdout":"there\n"`)
	o := call{path: wire.REPLPath, parts: map[string]any{"name": "python_repl"}, arguments: map[string]any{"source": "1"}}.run(t)
	o.wants(t, wire.StatusError, "needs code")
}

func TestTX27_AnEndlessLoopIsCutAndTheNextCallWorks(t *testing.T) {
	warm := residence(t)
	python("a", "kept, also = 1, 2", warm...).run(t).wants(t, wire.StatusSuccess, "")
	c := python("a", "", warm...)
	c.arguments = map[string]any{"code": "print('before', flush=True)\nwhile True: pass", "timeout_seconds": 1}
	o := c.run(t)
	o.wants(t, wire.StatusError, "ran longer than its 1s")
	o.wants(t, wire.StatusError, "its variables are lost: also, kept")
	if s := saidBy(t, o); s.Stdout != "before\n" || string(o.Metadata["repl_death"]) != `"timeout"` || o.took > 20*time.Second {
		t.Errorf("%+v after %s, metadata %s", s, o.took, o.Metadata)
	}
	python("a", "kept", warm...).run(t).wants(t, wire.StatusDoneWithErrors, "NameError")
	// The call's own time counts as well, and ends all that the code has started.
	c = python("b", "import subprocess, time; print(subprocess.Popen(['sleep', '600']).pid, flush=True); time.sleep(600)")
	c.timeout = 4 * time.Second
	o = c.run(t)
	o.wants(t, wire.StatusError, "timeout_seconds")
	if pid := strings.TrimSpace(saidBy(t, o).Stdout); pid == "" || stateOf(pid) != "" && stateOf(pid) != "Z" {
		t.Errorf("process %q is left", pid)
	}
}

func TestTX27_ADeathIsToldWithItsCause(t *testing.T) {
	warm := residence(t)
	for code, want := range map[string]string{
		"import os, signal; os.kill(os.getpid(), signal.SIGSEGV)":              "it crashed with SIGSEGV",
		"import os; os._exit(3)":                                               "it ended by itself with exit status 3",
		"import os; os.closerange(200, 204)":                                   "it ended by itself",
		"import os, signal; os.kill(os.getpid(), signal.SIGXCPU)":              "used up its processor time",
		"import os; os.write(201, b'\\xff' * 8); import time; time.sleep(600)": "closed its line",
		"import os; os.write(201, b'\\x00\\x00\\x00\\x02[]')":                  "closed its line",
	} {
		python("a", "v = 1", warm...).run(t).wants(t, wire.StatusSuccess, "")
		o := python("a", code, warm...).run(t)
		o.wants(t, wire.StatusError, want)
		o.wants(t, wire.StatusError, "its variables are lost: v")
	}
	python("a", "6 * 7", warm...).run(t).wants(t, wire.StatusSuccess, "42")
}

func TestTX27_AProcessThatDiedBetweenCallsIsMissed(t *testing.T) {
	warm := residence(t)
	python("a", "import os, threading; v = 1; threading.Timer(0.2, os._exit, [4]).start(); os.getpid()", warm...).run(t).wants(t, wire.StatusSuccess, "")
	o := python("a", "os.getpid()", warm...).run(t)
	for until := time.Now().Add(20 * time.Second); o.Status == wire.StatusSuccess && saidBy(t, o).Note == "" && time.Now().Before(until); {
		o = python("a", "1", warm...).run(t)
	}
	if s := saidBy(t, o); !strings.Contains(s.Note+s.Error, "exit status 4") || !strings.Contains(s.Note+s.Error, "lost: os, threading, v") {
		t.Errorf("%s %+v", o.Error, s)
	}
}

func TestTX27_ACancelledCallsLossIsToldToTheNext(t *testing.T) {
	warm := residence(t)
	python("a", "v = 1", warm...).run(t).wants(t, wire.StatusSuccess, "")
	mark := filepath.Join(t.TempDir(), "mark")
	c := python("a", "import time; open('"+mark+"', 'w').close(); time.sleep(600)", warm...)
	cmd, _, _ := c.command(t, c.envelope(t))
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	eventually(t, func() bool { _, err := os.Stat(mark); return err == nil })
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	o := python("a", "6 * 7", warm...).run(t)
	if s := saidBy(t, o); s.Value != "42" || !strings.Contains(s.Note, "cancelled; its variables are lost: v") {
		t.Errorf("%+v", s)
	}
}

func TestTX27_LimitsAreInForceBeforeAnyCodeRuns(t *testing.T) {
	o := python("", "import resource as r; print([r.getrlimit(x)[1] for x in (r.RLIMIT_NOFILE, r.RLIMIT_CORE)], r.getrlimit(r.RLIMIT_AS)[1] < 1 << 45, r.getrlimit(r.RLIMIT_CPU)[0] < 4000)").run(t)
	if s := saidBy(t, o); s.Stdout != "[256, 0] True True\n" {
		t.Errorf("%+v %s", s, o.Error)
	}
	o = python("", "x = bytearray(1 << 45)").run(t)
	o.wants(t, wire.StatusDoneWithErrors, "ran out of memory")
}

func TestTX27_OutputIsBoundedAndCopiesOfTheProcessDoNotAnswer(t *testing.T) {
	o := python("", "for i in range(300): print('z' * 9999)").run(t)
	if s := saidBy(t, o); len(s.Stdout) != 1<<20 || !strings.Contains(s.Note, "stdout: 1951424 more bytes are left out") {
		t.Errorf("%d bytes, %q %s", len(s.Stdout), s.Note, o.Error)
	}
	o = python("", "import os\npid = os.fork()\nif pid: os.waitpid(pid, 0)\npid > 0").run(t)
	if s := saidBy(t, o); s.Value != "True" {
		t.Errorf("%+v %s", s, o.Error)
	}
}

func TestTX27_CallsOfOneREPLWaitForEachOther(t *testing.T) {
	warm := residence(t)
	python("a", "n = 0", warm...).run(t).wants(t, wire.StatusSuccess, "")
	done := make(chan outcome, 4)
	for range 4 {
		c := python("a", "import time; m = n; time.sleep(0.05); n = m + 1", warm...)
		e := c.envelope(t)
		cmd, stdout, stderr := c.command(t, e)
		go func() {
			_ = cmd.Run()
			done <- read(e, cmd, stdout, stderr, time.Now())
		}()
	}
	for range 4 {
		o := <-done
		o.wants(t, wire.StatusSuccess, "")
	}
	python("a", "n", warm...).run(t).wants(t, wire.StatusSuccess, `"value":"4"`)
}

func TestTX27_AtMostSixteenREPLs(t *testing.T) {
	warm := residence(t)
	for i := range 16 {
		python(fmt.Sprint(i), "1", warm...).run(t).wants(t, wire.StatusSuccess, "")
	}
	python("0", "2", warm...).run(t).wants(t, wire.StatusSuccess, "2")
	python("17", "1", warm...).run(t).wants(t, wire.StatusSuccess, "1") // the ended sessions of clients tell nobody
	python("0", "3", warm...).run(t).wants(t, wire.StatusSuccess, "3")
}

func TestTX27_TheProgramStandsInNoListOfProcesses(t *testing.T) {
	o := python("", "canary = 'canary-77aa'; open('/proc/self/cmdline').read().replace('\\0', ' ')").run(t)
	if s := saidBy(t, o); strings.Contains(s.Value, "canary") || len(s.Value) > 200 {
		t.Errorf("%+v", s)
	}
}

// A module that stands for matplotlib where it is not installed; the image's test has
// the real one.
const plot = `class _F:
    def savefig(self, out, format): out.write(b"\x89PNG" + b"x" * SIZE)
_f = {}
SIZE = 4
def figure(n=None):
    if n is None: _f[len(_f) + 1] = _F()
    return _f.get(n)
def get_fignums(): return list(_f)
def close(what): _f.clear()
`

func TestTX27_OpenFiguresAreGivenAndClosed(t *testing.T) {
	dir := t.TempDir()
	if err := os.MkdirAll(filepath.Join(dir, "matplotlib"), 0o700); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{"__init__.py": "", "pyplot.py": plot} {
		if err := os.WriteFile(filepath.Join(dir, "matplotlib", name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	warm := residence(t)
	run := func(code string) outcome {
		c := python("a", code, warm...)
		c.env = []string{"PYTHONPATH=" + dir}
		return c.run(t)
	}
	o := run("import matplotlib.pyplot as plt; f = plt.figure(); f = plt.figure()")
	if len(o.Images) != 2 || o.Images[0].MIMEType != "image/png" || string(o.Images[1].Data) != "\x89PNGxxxx" {
		t.Errorf("images %+v, %s", o.Images, o.Error)
	}
	if o := run("1"); len(o.Images) != 0 {
		t.Errorf("%d figures are still open", len(o.Images))
	}
	o = run("plt.SIZE = 5 << 20; f = plt.figure()")
	if s := saidBy(t, o); len(o.Images) != 0 || !strings.Contains(s.Note, "figure 1 has more than 4 MiB") {
		t.Errorf("%d images, %+v", len(o.Images), s)
	}
	if o := run("plt.SIZE = 4\nfor i in range(9): f = plt.figure()\n1/0"); len(o.Images) != 8 || o.Status != wire.StatusDoneWithErrors {
		t.Errorf("%d images, %s", len(o.Images), o.Status)
	}
}
