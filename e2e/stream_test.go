package e2e_test

import (
	"encoding/base64"
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode/utf8"
)

// whole reads all output of an exec from its beginning, in pieces as small as
// asked for, and returns stdout as bytes.
func (a *actor) whole(exec string, chars int) []byte {
	a.t.Helper()
	var all []byte
	for offset := int64(0); ; {
		x := into[execOut](a.t, a.ok("exec_output", args{"exec_id": exec, "stdout_offset": offset, "max_output_chars": chars}))
		piece := []byte(x.Stdout)
		if x.StdoutEncoding == "base64" {
			var err error
			if piece, err = base64.StdEncoding.DecodeString(x.Stdout); err != nil {
				a.t.Fatal(err)
			}
		}
		if x.StdoutEncoding == "utf-8" && !utf8.Valid(piece) {
			a.t.Fatalf("a piece from %d is not UTF-8", offset)
		}
		all = append(all, piece...)
		if x.StdoutNext != offset+int64(len(piece)) {
			a.t.Fatalf("a piece of %d bytes from %d ends at %d: %v", len(piece), offset, x.StdoutNext, x)
		}
		offset = x.StdoutNext
		if offset >= x.StdoutBytes {
			return all
		}
		if len(piece) == 0 {
			a.t.Fatalf("no progress at %d of %d", offset, x.StdoutBytes)
		}
	}
}

func TestBugST01_CharactersAreNeverSplit(t *testing.T) {
	t.Parallel()
	a := connect(t, stdioLegacy)
	s := a.session(nil)
	x := a.exec(s, `printf a; yes 語 | head -n 20000 | tr -d '\n'`, args{"max_output_chars": 200000})
	want := "a" + strings.Repeat("語", 20000)
	if x.Stdout != want || x.StdoutBytes != 60001 || x.Truncated {
		t.Errorf("in one piece: %v", x)
	}
	// 1,001 characters do not fall on a boundary of the engine's reads.
	if got := string(a.whole(x.ExecID, 1001)); got != want {
		t.Errorf("in pieces: %d bytes, %d replacement marks", len(got), strings.Count(got, "\uFFFD"))
	}
	if cut := a.exec(s, `printf a; yes 語 | head -n 20000 | tr -d '\n'`, args{"max_output_chars": 999}); !cut.Truncated || strings.Contains(cut.Stdout, "\uFFFD") || !utf8.ValidString(cut.Stdout) {
		t.Errorf("cut: %v", cut)
	}
}

func TestBugST02_BytesThatAreNoTextArriveExactly(t *testing.T) {
	t.Parallel()
	a := connect(t, httpModern)
	s := a.session(nil)
	x := a.exec(s, `printf 'a\000b\377c'`)
	if raw, err := base64.StdEncoding.DecodeString(x.Stdout); x.StdoutEncoding != "base64" || err != nil || string(raw) != "a\x00b\xffc" || x.StdoutBytes != 5 {
		t.Errorf("five bytes: %s %v", x.StdoutEncoding, x)
	}
	x = a.exec(s, `head -c 65536 /dev/urandom | tee r; sha256sum < r >&2`, args{"max_output_chars": 200000})
	raw := a.whole(x.ExecID, 200000)
	if got := sum(raw); x.StdoutBytes != 65536 || len(raw) != 65536 || !strings.HasPrefix(x.Stderr, got) {
		t.Errorf("random bytes: %d, sum %s, want %s", len(raw), got, x.Stderr)
	}
}

// The rule that is documented: exactly as sent in the structure, and no control
// character left unescaped in the text.
func TestBugST03_EscapesAreExactInTheStructureAndVisibleInTheText(t *testing.T) {
	t.Parallel()
	a := connect(t, stdioModern)
	s := a.session(nil)
	for _, shown := range []string{
		"\x1b[31mred\x1b[0m\x1b[2K\rdone\n",
		"\x1b]8;;https://example.invalid/\x1b\\link\x1b]8;;\x1b\\\x1b[1A\n",
		"\u202egnp.exe\u202c \U000E0041\n",
	} {
		r := a.ok("exec", args{"session_id": s, "argv": []string{"printf", "%s", shown}})
		if x := into[execOut](t, r); x.Stdout != shown {
			t.Errorf("structure: %q, want %q", x.Stdout, shown)
		}
		for _, c := range r.text() {
			if c < 0x20 && c != '\n' && c != '\t' || c == 0x7f || c >= 0x202a && c <= 0x202e || c >= 0xe0000 && c <= 0xe007f {
				t.Errorf("%U stands unescaped in the text %q", c, r.text())
				break
			}
		}
	}
}

func TestBugST04_EachStreamKeepsItsOrder(t *testing.T) {
	t.Parallel()
	a := connect(t, sseLegacy)
	s := a.session(nil)
	const loop = `for i in 1 2 3; do echo o$i; echo e$i >&2; done`
	for range 20 {
		if x := a.exec(s, loop); x.Stdout != "o1\no2\no3\n" || x.Stderr != "e1\ne2\ne3\n" {
			t.Errorf("%v", x)
		}
	}
	// One stream, so the order between the two is the command's own.
	if x := a.exec(s, "{ "+loop+"; } 2>&1"); x.Stdout != "o1\ne1\no2\ne2\no3\ne3\n" || x.Stderr != "" {
		t.Errorf("merged: %v", x)
	}
}

func TestBugST05_NothingIsCutInSilence(t *testing.T) {
	t.Parallel()
	a := connect(t, httpLegacy)
	s := a.session(nil)
	const n = 16000
	for _, size := range []int{n - 1, n, n + 1, 2 * n} {
		r := a.ok("exec", args{"session_id": s, "command": fmt.Sprintf(`head -c %d /dev/zero | tr '\0' x`, size)})
		x := into[execOut](t, r)
		if x.Truncated != (size > n) || x.StdoutBytes != int64(size) || !x.exited(0) {
			t.Errorf("%d bytes: %v", size, x)
		}
		var omitted int64
		for _, o := range x.Omitted {
			omitted += o.Bytes
			if !o.Recoverable || o.Stream != "stdout" {
				t.Errorf("%d bytes: omitted %+v", size, o)
			}
		}
		if int64(strings.Count(x.Stdout, "x"))+omitted != int64(size) {
			t.Errorf("%d bytes: %d shown and %d omitted", size, strings.Count(x.Stdout, "x"), omitted)
		}
		if size > n && !strings.Contains(r.text(), "exec_output") {
			t.Errorf("%d bytes: the text does not say how to read on", size)
		}
		if got := a.whole(x.ExecID, 7001); len(got) != size {
			t.Errorf("%d bytes: %d in pieces", size, len(got))
		}
	}
}

// Closing the write side over TLS must reach the process, or whatever reads its
// input to the end waits for ever.
func TestBugIN01_TheEndOfInputArrivesOverTLSAndOverTheSocket(t *testing.T) {
	t.Parallel()
	hosts := map[string]*actor{"mutual TLS": connect(t, stdioLegacy)}
	if socket := onStage(t).engine.socket(); socket != "." {
		own := start(t, launch{env: []string{"SANDBOX_DOCKER_HOST=unix://" + socket}})
		hosts["unix socket"], _ = attach(t, own, stdioModern)
	} else {
		t.Error("the engine names no socket")
	}
	for name, a := range hosts {
		s := a.session(nil)
		began := time.Now()
		x := a.exec(s, "cat > f; wc -c < f", args{"stdin": "abc"})
		took(t, began, 3*time.Second, "over "+name)
		if !x.exited(0) || strings.TrimSpace(x.Stdout) != "3" {
			t.Errorf("over %s: %v", name, x)
		}
	}
}

func TestBugIN02_WithoutInputACommandSeesItsEndAtOnce(t *testing.T) {
	t.Parallel()
	a := connect(t, httpModern)
	s := a.session(nil)
	for _, c := range []struct {
		argv []string
		code int
	}{
		{[]string{"cat"}, 0},
		{[]string{"grep", "x"}, 1},
		{[]string{"python3", "-c", "input()"}, 1},
	} {
		began := time.Now()
		x := a.exec(s, "", args{"command": nil, "shell": nil, "argv": c.argv})
		took(t, began, 3*time.Second, c.argv[0])
		if !x.exited(c.code) {
			t.Errorf("%v: %v", c.argv, x)
		}
	}
}

func TestBugSZ02_AResultStaysSmallAndTheRestCanBeFetched(t *testing.T) {
	t.Parallel()
	a := connect(t, stdioModern)
	s := a.session(nil)
	r := a.ok("exec", args{"session_id": s, "command": `seq 1 70000 | head -c 400000`})
	x := into[execOut](t, r)
	// 16,000 characters stand in the text and in the structure, for clients that
	// show the model only one of them.
	if r.size > 48_000 || !x.Truncated || x.StdoutBytes != 400_000 {
		t.Errorf("a result of %d bytes: %v", r.size, x)
	}
	if !strings.HasPrefix(x.Stdout, "1\n2\n3\n") {
		t.Errorf("the head is missing: %q", clip(x.Stdout))
	}
	var want strings.Builder
	for i := 1; want.Len() < 400_000; i++ {
		fmt.Fprintln(&want, i)
	}
	if got := string(a.whole(x.ExecID, 200_000)); got != want.String()[:400_000] {
		t.Errorf("the rest differs: %d bytes", len(got))
	}
	binary := a.ok("exec", args{"session_id": s, "command": "head -c 400000 /dev/urandom"})
	if binary.size > 48_000 || strings.Contains(binary.text(), into[execOut](t, binary).Stdout) {
		t.Errorf("a binary result of %d bytes, its base64 in the text as well", binary.size)
	}
}
