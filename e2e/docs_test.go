package e2e_test

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

func page(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", name))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// block is a page's code block of that heading.
func block(t *testing.T, name, heading string) string {
	t.Helper()
	_, after, found := strings.Cut(page(t, name), "```"+heading+"\n")
	text, _, closed := strings.Cut(after, "```")
	if !found || !closed {
		t.Fatalf("%s has no block %q", name, heading)
	}
	return text
}

var pageLink = regexp.MustCompile(`\]\(([^)#:]+\.md)[^):]*\)`)

// The pages that a deployment needs are there, tell what they must, and lead to one another.
func TestDOC01_DOC02_ThePagesOfADeploymentTellWhatTheyMust(t *testing.T) {
	t.Parallel()
	for name, words := range map[string][]string{
		"docs/security.md": {
			"mutual TLS", "no privilege", "No capabilities", "One mount", "`none`", "`internal`", "**open**", "throwaway, unprivileged container",
			"tai-sbx-<workspace_key>", "workspace_delete", "never forced", // durability
			"2 s", "1 MiB", "no other command of that session", "never stopped, only reported", "marker file", "126", // limits
		},
		"docs/images.md":   {"setsid", "mkfifo", "mv", "rm", "cat", "kill", "readlink", "ls", "sleep", "/proc", "/tmp"},
		"docs/settings.md": {"READINESS_PROBE_TIMEOUT_SECONDS", "EGRESS_NETWORK"},
		"docs/firewall.md": {"egress_firewall_not_in_force", "169.254.169.254", "DOCKER-USER", "EXTRA_BRIDGES"},
		"docs/deploy.md":   {"firewall.md", "settings.md", "images.md", "caisson doctor", "caisson.env", "daemon.json"},
		"README.md":        {"docs/deploy.md", "docs/firewall.md", "docs/security.md"},
	} {
		text := page(t, name)
		for _, word := range words {
			if !strings.Contains(text, word) {
				t.Errorf("%s does not tell of %q", name, word)
			}
		}
		for _, m := range pageLink.FindAllStringSubmatch(text, -1) {
			if _, err := os.Stat(filepath.Join("..", filepath.Dir(name), m[1])); err != nil {
				t.Errorf("%s leads nowhere: %v", name, err)
			}
		}
	}
	// Every message of a refused create has its line.
	for _, message := range []string{
		"reaches the engine's control port at", "it blocks too much", "has no nameserver", "did not complete within", "could not tell",
		"is a local socket", "is a loopback address", "cannot be resolved here", "addresses on its networks",
	} {
		source := page(t, "sandbox/docker/probe.go") + page(t, "sandbox/docker/probe_targets.go")
		if !strings.Contains(source, message) || !strings.Contains(page(t, "docs/firewall.md"), message) {
			t.Errorf("docs/firewall.md and the probe differ about %q", message)
		}
	}
}

// The pages of the tools' executors and of the REPL's own layer tell what they must, and
// lead to one another; the settings they name are there.
func TestDOC03_DOC04_DUR10_ThePagesOfToolsTellWhatTheyMust(t *testing.T) {
	t.Parallel()
	for name, words := range map[string][]string{
		"docs/executors.md": {"somebody else's", "To start", "warm (default)", "ephemeral", "300 s by default", "`local`", "policy.md", "repl.md", "images.md"},
		"docs/policy.md": {
			"1. the exact name", "2. the toolkit's name", "3. a wildcard", "4. a wildcard", "5. `\"*\"`", "6. no rule", "reserved", "webhook_callback_url",
			"TOOL_IMAGE", "EXECUTOR_MODE", "IDLE_TTL_SECONDS", "NETWORK_MODE", "beats the setting, which beats the default",
		},
		"docs/settings.md": {"TOOL_IMAGE", "EXECUTOR_MODE", "IDLE_TTL_SECONDS", "NETWORK_MODE", "ALLOW_LOCAL", "ALLOW_WEAKER_TOOLS"},
		"docs/images.md":   {"BASE_IMAGE", "PYTHON_VERSION", "EXTRA_PACKAGES", "EXTRA_PIP_PACKAGES", "EXTRA_NPM_PACKAGES", "images/tools/wheels/", "/etc/caisson/agents/"},
		"docs/repl.md":     {"address space", "killed with all that is below it, from outside", "no fallback", "executors.md", "policy.md"},
		"docs/security.md": {"the durable store is the deployment's to provide"},
	} {
		text := page(t, name)
		for _, word := range words {
			if !strings.Contains(text, word) {
				t.Errorf("%s does not tell of %q", name, word)
			}
		}
	}
}

// The commands of docs/deploy.md make certificates with which the two sides take each other
// for what they are, and nobody else.
func TestDOC01_TheCertificatesOfThePageWork(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	cmd := exec.Command("bash", "-ec", block(t, "docs/deploy.md", "sh certificates"))
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "ENGINE=engine.test")
	if text, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	var daemon map[string]any
	if err := json.Unmarshal([]byte(block(t, "docs/deploy.md", "json daemon")), &daemon); err != nil || daemon["tlsverify"] != true {
		t.Errorf("daemon.json: %v, %v", daemon, err)
	}
	for _, key := range []string{"ca-key.pem", "server-key.pem", "key.pem", "alice-key.pem"} {
		if info, err := os.Stat(filepath.Join(dir, key)); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v, %v", key, info, err)
		}
	}
	shake := func(authority, serverCert, serverKey, clientCert, clientKey, name string) error {
		pool := x509.NewCertPool()
		trusted, err := os.ReadFile(filepath.Join(dir, authority))
		if err != nil || !pool.AppendCertsFromPEM(trusted) {
			t.Fatal(err)
		}
		serving, err := tls.LoadX509KeyPair(filepath.Join(dir, serverCert), filepath.Join(dir, serverKey))
		if err != nil {
			t.Fatal(err)
		}
		calling, err := tls.LoadX509KeyPair(filepath.Join(dir, clientCert), filepath.Join(dir, clientKey))
		if err != nil {
			t.Fatal(err)
		}
		near, far := net.Pipe()
		defer near.Close()
		defer far.Close()
		_ = near.SetDeadline(time.Now().Add(10 * time.Second))
		_ = far.SetDeadline(time.Now().Add(10 * time.Second))
		server := tls.Server(far, &tls.Config{Certificates: []tls.Certificate{serving}, ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: pool, MinVersion: tls.VersionTLS12, MaxVersion: tls.VersionTLS12})
		ended := make(chan error, 1)
		go func() { ended <- server.Handshake() }()
		err = tls.Client(near, &tls.Config{Certificates: []tls.Certificate{calling}, RootCAs: pool, ServerName: name, MinVersion: tls.VersionTLS12}).Handshake()
		near.Close()
		if served := <-ended; err == nil {
			err = served
		}
		return err
	}
	if err := shake("ca.pem", "server-cert.pem", "server-key.pem", "cert.pem", "key.pem", "engine.test"); err != nil {
		t.Error(err)
	}
	for why, err := range map[string]error{
		"another name":                shake("ca.pem", "server-cert.pem", "server-key.pem", "cert.pem", "key.pem", "other.test"),
		"a client of the endpoint's":  shake("ca.pem", "server-cert.pem", "server-key.pem", "alice.pem", "alice-key.pem", "engine.test"),
		"the engine's as a client's":  shake("ca.pem", "server-cert.pem", "server-key.pem", "server-cert.pem", "server-key.pem", "engine.test"),
		"the server's as an engine's": shake("ca.pem", "cert.pem", "key.pem", "cert.pem", "key.pem", "caisson-1"),
	} {
		if err == nil {
			t.Errorf("%s is taken", why)
		}
	}
}
