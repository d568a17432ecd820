package cli

import (
	"cmp"
	"errors"
	"os"
	"os/exec"
	"strings"
	"testing"

	"caisson/sandbox"
	"caisson/settings"
)

// realEngine is the environment of a server on the tests' engine, and fails the
// test where there is none. A short run goes without.
func realEngine(t *testing.T) []string {
	t.Helper()
	if testing.Short() {
		t.Skip("needs an engine, and the run is a short one")
	}
	file := os.Getenv("CAISSON_TEST_ENGINE")
	if file == "" {
		t.Fatal("needs an engine: run make test, or set CAISSON_TEST_ENGINE")
	}
	out, err := exec.Command("env", "-i", "sh", "-c", `. "$1" && env`, "sh", file).Output()
	if err != nil {
		t.Fatal(err)
	}
	environ := []string{"SANDBOX_DOCKER_PULL_POLICY=never"}
	for line := range strings.Lines(string(out)) {
		if strings.HasPrefix(line, settings.DockerPrefix) {
			environ = append(environ, strings.TrimSuffix(line, "\n"))
		}
	}
	return environ
}

func TestDoctorFindsTheEngineInOrder(t *testing.T) {
	out, p := run(t, realEngine(t), "doctor")
	if p.status != exitOK || strings.Contains(out, "FAIL") {
		t.Errorf("status %d:\n%s%s", p.status, out, p.stderr)
	}
	for _, want := range []string{"settings", "connection", "mTLS", "client certificate", "API 1.", "cap on memory", "network egress", "image caisson-session:latest", "firewall probe"} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q in\n%s", want, out)
		}
	}
	if strings.Contains(out, "\x1b") {
		t.Error("colours in a pipe")
	}
}

func TestDoctorFailsWithTheMend(t *testing.T) {
	for name, c := range map[string]struct {
		environ []string
		want    string
	}{
		"dead engine": {[]string{deadEngine, "SANDBOX_DOCKER_TLS_VERIFY=false"}, "127.0.0.1:1"},
		"no files":    {[]string{deadEngine, "SANDBOX_DOCKER_TLS_CERT_PATH=/nowhere/cert.pem"}, "/nowhere/cert.pem"},
	} {
		out, p := run(t, c.environ, "doctor")
		if p.status != exitFailed || !strings.Contains(out, "FAIL  engine") || !strings.Contains(out, c.want) || !strings.Contains(out, "SANDBOX_DOCKER_HOST") {
			t.Errorf("%s: status %d:\n%s%s", name, p.status, out, p.stderr)
		}
	}
}

// TestDoctorReadsTheFilesThatServeReads gives doctor what serve refuses to start with.
func TestDoctorReadsTheFilesThatServeReads(t *testing.T) {
	a := newAuthority(t)
	cert, key, _ := a.issue(t, "localhost")
	endpoint := []string{"SANDBOX_MCP_TRANSPORT=http", "SANDBOX_MCP_TLS_CERT_PATH=" + cert, "SANDBOX_MCP_TLS_KEY_PATH=" + key}
	right, loose := principalsFile(t, ""), principalsFile(t, "")
	if err := os.Chmod(loose, 0o644); err != nil {
		t.Fatal(err)
	}
	strict := manifestFile(t, twoTools+"execution_policies: {strict: {rules: {\"*\": docker}}}\n")
	for name, c := range map[string]struct {
		environ []string
		want    []string
	}{
		"all right": {
			append(endpoint, "SANDBOX_MCP_PRINCIPALS_FILE="+right, "SANDBOX_MCP_MANIFEST="+strict),
			[]string{"ok    principals", "ok    manifest", ": 2 tools", "warn endpoint's certificate", "valid until"},
		},
		"principals at fault":  {append(endpoint, "SANDBOX_MCP_PRINCIPALS_FILE="+principalsFile(t, "  - name: a\n")), []string{"FAIL  principals", "principals.yml:5:", "docs/principals.md"}},
		"no such policy":       {append(endpoint, "SANDBOX_MCP_PRINCIPALS_FILE="+principalsFile(t, "    policy: lax\n"), "SANDBOX_MCP_MANIFEST="+strict), []string{"FAIL  principals", `no execution policy "lax"`}},
		"principals not there": {append(endpoint, "SANDBOX_MCP_PRINCIPALS_FILE=/nowhere/p.yml"), []string{"FAIL  principals", "/nowhere/p.yml"}},
		"principals open":      {append(endpoint, "SANDBOX_MCP_PRINCIPALS_FILE="+loose), []string{"warn principals", "mode 0644"}},
		"manifest at fault":    {[]string{"SANDBOX_MCP_MANIFEST=" + manifestFile(t, "tols: []\n")}, []string{"FAIL  manifest", ":1:1:", "did you mean tools?"}},
		"a rule is refused":    {[]string{"SANDBOX_DOCKER_MAX_NETWORK=none", "SANDBOX_MCP_MANIFEST=" + strict}, []string{"ok    manifest", "warn manifest", "looser than none"}},
		"no certificate":       {[]string{"SANDBOX_MCP_TRANSPORT=http", "SANDBOX_MCP_TLS_CERT_PATH=/nowhere/c.pem", "SANDBOX_MCP_TLS_KEY_PATH=" + key}, []string{"FAIL  endpoint's certificate", "/nowhere/c.pem"}},
	} {
		out, p := run(t, append(c.environ, deadEngine, "SANDBOX_DOCKER_TLS_VERIFY=false"), "doctor")
		for _, want := range c.want {
			if !strings.Contains(squeezed(out), squeezed(want)) {
				t.Errorf("%s: no %q, status %d, in\n%s%s", name, want, p.status, out, p.stderr)
			}
		}
		if strings.Contains(out, "tool image") {
			t.Errorf("%s: an image on an engine that does not answer:\n%s", name, out)
		}
	}
}

// squeezed is a text with its runs of spaces as one.
func squeezed(text string) string { return strings.Join(strings.Fields(text), " ") }

func TestDoctorLooksForTheImagesOfTools(t *testing.T) {
	manifest := manifestFile(t, twoTools+`execution_policy:
  rules:
    fetch: {name: docker, options: {image: nobody-has-this, pull_policy: never}}
    page: {name: docker, options: {image: nobody-has-this-too, pull_policy: missing}}
    "*": {name: docker, options: {image: "busybox:latest"}}
`)
	out, p := run(t, append(realEngine(t), "SANDBOX_MCP_MANIFEST="+manifest), "doctor")
	for _, want := range []string{"FAIL tool image nobody-has-this the engine does not have it, and", "warn tool image nobody-has-this-too", "ok tool image busybox:latest there"} {
		if !strings.Contains(squeezed(out), want) {
			t.Errorf("no %q in\n%s%s", want, out, p.stderr)
		}
	}
	if p.status != exitFailed {
		t.Errorf("status %d", p.status)
	}
}

func TestEXW01_DoctorNamesWhatAnImageLacks(t *testing.T) {
	out, p := run(t, append(realEngine(t), "SANDBOX_DOCKER_DEFAULT_IMAGE=caisson-test-no-mkfifo"), "doctor")
	if p.status != exitFailed || !strings.Contains(out, "mkfifo") {
		t.Errorf("status %d:\n%s", p.status, out)
	}
}

func TestAnAbsentRuntimeIsRefusedAtStart(t *testing.T) {
	environ := append(realEngine(t), "SANDBOX_DOCKER_RUNTIME=runsc-nowhere")
	_, p := run(t, environ, "serve", "--transport=http", "--addr=127.0.0.1:0")
	if p.status != exitSetting || !strings.Contains(p.stderr.String(), "SANDBOX_DOCKER_RUNTIME names the runtime runsc-nowhere") {
		t.Errorf("status %d: %s", p.status, p.stderr)
	}
	p = start(t, environ, "serve")
	p.initialize()
	if text, failed := p.tool("session_list", nil); !failed || !strings.Contains(text, "SANDBOX_DOCKER_RUNTIME") {
		t.Errorf("session_list: %s", text)
	}
}

func TestProbeFindingWarnsWhileNothingProvesTheFirewall(t *testing.T) {
	for environ, want := range map[string]level{"": levelWarn, "SANDBOX_DOCKER_MAX_NETWORK=none": levelOK, "SANDBOX_DOCKER_READINESS_PROBE_ENABLED=true": levelOK} {
		s, err := settings.Load([]string{deadEngine, cmp.Or(environ, "NOTHING=1")})
		if err != nil {
			t.Fatal(err)
		}
		proved := func() error { return nil }
		if got := probeFinding(s.Docker, proved); got.level != want || strings.Contains(got.mend, "docs/firewall.md") != (want == levelWarn) {
			t.Errorf("%q: %+v", environ, got)
		}
	}
	s, err := settings.Load([]string{deadEngine, "SANDBOX_DOCKER_READINESS_PROBE_ENABLED=true", "SANDBOX_DOCKER_MAX_NETWORK=none"})
	if err != nil {
		t.Fatal(err)
	}
	refused := func() error {
		return sandbox.Errorf("prove", sandbox.KindFirewall, "it is reached").Because(errors.New("cause"))
	}
	if got := probeFinding(s.Docker, refused); got.level != levelFail || got.detail != "it is reached" || !strings.Contains(got.mend, "docs/firewall.md") {
		t.Errorf("refused: %+v", got)
	}
}
