package e2e_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/mark3labs/mcp-go/client/transport"
)

const replManifest = `tools:
  - {name: python_repl, description: Runs Python., repl: python}
  - {name: python_twice, description: Runs Python., repl: python}
execution_policies:
  strict: {rules: {"python_*": {name: docker, options: {mem_limit: 256m}}}}
execution_policy:
  rules:
    "python_*": {name: docker, remote_timeout_seconds: 90}
`

// replOut is what a REPL's call gives.
type replOut struct{ Stdout, Stderr, Value, Error, Note string }

func (a *actor) py(tool, code string, more ...args) (replOut, declared) {
	a.t.Helper()
	arguments := args{"code": code}
	for _, m := range more {
		for k, v := range m {
			arguments[k] = v
		}
	}
	d := into[declared](a.t, a.do(tool, arguments))
	return into[replOut](a.t, result{Structured: d.Result}), d
}

func TestTX27_APythonREPLThroughTheServer(t *testing.T) {
	t.Parallel()
	v := serveTools(t, replManifest)
	a := join(t, v, httpLegacy)
	a.py("python_repl", "import os; total = 0; first = os.getpid()")
	for i := range 20 {
		if out, d := a.py("python_repl", fmt.Sprintf("total += %d\ntotal, os.getpid() == first", i)); !strings.HasSuffix(out.Value, "True)") {
			t.Fatalf("call %d: %+v %s", i, out, d.Error)
		}
	}
	if out, _ := a.py("python_repl", "print(total)"); out.Stdout != "190\n" {
		t.Errorf("after 20 calls: %+v", out)
	}
	if out, _ := a.py("python_twice", "'total' in globals()"); out.Value != "False" {
		t.Errorf("another tool's REPL: %+v", out)
	}
	plot(t, a)

	// A loop without end is cut from outside, and says what was lost.
	began := time.Now()
	out, d := a.py("python_repl", "while True: pass", args{"timeout_seconds": 2})
	took(t, began, 8*time.Second, "an endless loop with 2 s")
	if d.Status != "error" || d.Metadata.Death != "timeout" || !strings.Contains(d.Error, "total") {
		t.Errorf("%+v %s", out, d.Error)
	}
	out, _ = a.py("python_repl", "'total' in globals()")
	if out.Value != "False" {
		t.Errorf("after it: %+v", out)
	}
}

// plot draws with whatever library of figures the image has.
func plot(t *testing.T, a *actor) {
	t.Helper()
	r := a.do("python_repl", args{"code": "import matplotlib.pyplot as plt\nplt.plot([1, 4, 9])\nprint('drawn')"})
	for _, c := range r.Content {
		if c.Type == "image" {
			if data, err := base64.StdEncoding.DecodeString(c.Data); err != nil || c.MIMEType != "image/png" || !bytes.HasPrefix(data, []byte("\x89PNG\r\n\x1a\n")) {
				t.Errorf("%s %v", c.MIMEType, err)
			}
			return
		}
	}
	t.Errorf("no image: %s", clip(r.text()))
}

// What needs more memory than there is dies of it and says so; the next call works.
func TestTX27_AttackT14_AREPLDiesOfItsMemoryAndSaysSo(t *testing.T) {
	t.Parallel()
	v := serveTools(t, replManifest)
	a := join(t, v, httpLegacy)
	a.py("python_repl", "kept = 'here'; chunks = []")
	// In pieces, each written to: what is allocated at once has no room in the address
	// space and is a MemoryError, which loses nothing.
	out, d := a.py("python_repl", "for i in range(256): chunks.append(bytearray(b'x') * (8 << 20))")
	if d.Status == "success" || !strings.Contains(strings.ToLower(d.Error), "memory") {
		t.Errorf("2 GiB in pieces: %+v %+v", out, d)
	}
	if d.Metadata.Death != "" && (d.Metadata.Death != "memory" || !strings.Contains(d.Error, "kept")) {
		t.Errorf("%s", d.Error)
	}
	a.py("python_repl", "chunks = None; kept = 'here'")
	if out, d := a.py("python_repl", "x = bytearray(2 << 30)"); d.Status == "success" || !strings.Contains(d.Error, "memory") {
		t.Errorf("2 GiB at once: %+v %+v", out, d)
	}
	if out, d := a.py("python_repl", "1 + 1"); out.Value != "2" {
		t.Errorf("the next call: %+v %s", out, d.Error)
	}
}

// Two client sessions share a container and no variables; two principals share nothing.
func TestD26_TX27_POL11_ClientsShareNoVariablesAndPrincipalsNoContainer(t *testing.T) {
	t.Parallel()
	principals := filepath.Join(t.TempDir(), "principals.yml")
	text := "principals:\n"
	for name, more := range map[string]string{"a": "", "b": ", policy: strict", "c": ", tools: [session_list]"} {
		sum := sha256.Sum256([]byte("token-of-" + name))
		text += fmt.Sprintf("  - {name: %s, token_sha256: %s%s}\n", name, hex.EncodeToString(sum[:]), more)
	}
	if err := os.WriteFile(principals, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	v := serveTools(t, replManifest, "SANDBOX_MCP_PRINCIPALS_FILE="+principals)
	one, two, other := joinAs(t, v, "token-of-a"), joinAs(t, v, "token-of-a"), joinAs(t, v, "token-of-b")
	one.py("python_repl", "secret = 'of one'; open('/tmp/mark', 'w').write('a')")
	out, second := two.py("python_repl", "'secret' in globals(), __import__('os').path.exists('/tmp/mark')")
	if out.Value != "(False, True)" {
		t.Errorf("another client session of the principal: %+v", out)
	}
	out, third := other.py("python_repl", "'secret' in globals(), __import__('os').path.exists('/tmp/mark')")
	if out.Value != "(False, False)" {
		t.Errorf("another principal: %+v", out)
	}
	if second.Metadata.Container == third.Metadata.Container || len(the.engine.toolBoxes(t, v.instance)) != 2 {
		t.Errorf("containers %s and %s", second.Metadata.Container, third.Metadata.Container)
	}
	small := 0
	for _, box := range the.engine.toolBoxes(t, v.instance) {
		info, err := the.engine.api.ContainerInspect(t.Context(), box.ID)
		if err != nil {
			t.Fatal(err)
		}
		if info.HostConfig.Memory == 256<<20 {
			small++
		}
	}
	if small != 1 {
		t.Errorf("%d containers as the policy of b says", small)
	}
	if out, _ := one.py("python_repl", "secret"); out.Value != "'of one'" {
		t.Errorf("the first client's own: %+v", out)
	}
	none := joinAs(t, v, "token-of-c")
	if names := strings.Join(listedNames(t, none), " "); names != "session_list" {
		t.Errorf("a principal without these tools is shown %s", names)
	}
	if r, err := none.call(t.Context(), "python_repl", args{"code": "1"}); err == nil && !r.IsError {
		t.Errorf("and may call them: %s", r.text())
	}
}

// joinAs connects a client that shows a token.
func joinAs(t *testing.T, v *server, token string) *actor {
	t.Helper()
	link, err := transport.NewStreamableHTTP(v.url+"/mcp", transport.WithHTTPHeaders(map[string]string{"Authorization": "Bearer " + token}))
	if err != nil {
		t.Fatal(err)
	}
	c, err := greet(t.Context(), link, legacyVersion)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.close() })
	return &actor{t: t, conn: c}
}
