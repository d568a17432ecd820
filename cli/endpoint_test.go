package cli

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/hex"
	"encoding/pem"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

const aToken = "token-of-a-0123456789abcdef"

// principalsFile writes a file with the principal a, and certs' common name cn-a.
func principalsFile(t *testing.T, more string) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "principals.yml")
	sum := sha256.Sum256([]byte(aToken))
	text := fmt.Sprintf("principals:\n  - name: a\n    token_sha256: %s\n    client_cert_cn: cn-a\n%s", hex.EncodeToString(sum[:]), more)
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

// authority signs certificates for tests.
type authority struct {
	dir  string
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	next int64
}

func newAuthority(t *testing.T) *authority {
	t.Helper()
	a := &authority{dir: t.TempDir(), next: 1}
	var err error
	if a.key, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader); err != nil {
		t.Fatal(err)
	}
	a.cert = &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test authority"}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	raw, err := x509.CreateCertificate(rand.Reader, a.cert, a.cert, a.key.Public(), a.key)
	if err != nil {
		t.Fatal(err)
	}
	if a.cert, err = x509.ParseCertificate(raw); err != nil {
		t.Fatal(err)
	}
	a.write(t, "ca.pem", "CERTIFICATE", raw)
	return a
}

func (a *authority) write(t *testing.T, name, kind string, raw []byte) string {
	t.Helper()
	name = filepath.Join(a.dir, name)
	if err := os.WriteFile(name, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: raw}), 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

// issue writes the certificate and the key of a name, good for an hour.
func (a *authority) issue(t *testing.T, cn string) (cert, key string, serial int64) {
	t.Helper()
	return a.issueUntil(t, cn, time.Now().Add(time.Hour))
}

func (a *authority) issueUntil(t *testing.T, cn string, end time.Time) (cert, key string, serial int64) {
	t.Helper()
	mine, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	a.next++
	raw, err := x509.CreateCertificate(rand.Reader, &x509.Certificate{
		SerialNumber: big.NewInt(a.next), Subject: pkix.Name{CommonName: cn}, NotBefore: time.Now().Add(-time.Hour), NotAfter: end,
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}, a.cert, mine.Public(), a.key)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalPKCS8PrivateKey(mine)
	if err != nil {
		t.Fatal(err)
	}
	return a.write(t, cn+".pem", "CERTIFICATE", raw), a.write(t, cn+"-key.pem", "PRIVATE KEY", der), a.next
}

// client is an HTTPS client with a certificate of the authority, or none.
func (a *authority) client(t *testing.T, cn string) *http.Client {
	t.Helper()
	pool := x509.NewCertPool()
	pool.AddCert(a.cert)
	config := &tls.Config{RootCAs: pool}
	if cn != "" {
		cert, key, _ := a.issue(t, cn)
		pair, err := tls.LoadX509KeyPair(cert, key)
		if err != nil {
			t.Fatal(err)
		}
		config.Certificates = []tls.Certificate{pair}
	}
	return &http.Client{Transport: &http.Transport{TLSClientConfig: config, DisableKeepAlives: true, ForceAttemptHTTP2: true}}
}

func initializeWith(t *testing.T, c *http.Client, url, token string) (*http.Response, error) {
	t.Helper()
	body := `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`
	req, err := http.NewRequestWithContext(soon(t), http.MethodPost, url+"/mcp", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	resp, err := c.Do(req)
	if err == nil {
		_, _ = io.Copy(io.Discard, resp.Body)
		_ = resp.Body.Close()
	}
	return resp, err
}

func TestTheEndpointsOwnTLSAndClientCertificates(t *testing.T) {
	a := newAuthority(t)
	p, url, serial := a.serveTLS(t)
	known := a.client(t, "cn-a")
	resp, err := initializeWith(t, known, url, "")
	if err != nil || resp.StatusCode != http.StatusOK || resp.ProtoMajor != 1 || resp.TLS.NegotiatedProtocol == "h2" || resp.TLS.Version < tls.VersionTLS12 {
		t.Fatalf("%v %v", resp, err)
	}
	if got := resp.TLS.PeerCertificates[0].SerialNumber.Int64(); got != serial {
		t.Errorf("serial %d, not %d", got, serial)
	}
	if resp, err := initializeWith(t, a.client(t, "stranger"), url, ""); err != nil || resp.StatusCode != http.StatusForbidden {
		t.Errorf("a certificate that is nobody's: %v %v", resp, err)
	}
	if resp, err := initializeWith(t, a.client(t, ""), url, aToken); err == nil {
		t.Errorf("without a certificate: %s", resp.Status)
	}
	other := newAuthority(t).client(t, "cn-a")
	other.Transport.(*http.Transport).TLSClientConfig.RootCAs = known.Transport.(*http.Transport).TLSClientConfig.RootCAs
	if resp, err := initializeWith(t, other, url, ""); err == nil {
		t.Errorf("a certificate of another authority: %s", resp.Status)
	}
	// A new certificate is taken up without a restart; one that cannot be used is not.
	cert, _, serial := a.issue(t, "server")
	eventually(t, "the new certificate is taken up", func() bool {
		if resp, err = initializeWith(t, known, url, ""); err != nil {
			t.Fatal(err)
		}
		return resp.TLS.PeerCertificates[0].SerialNumber.Int64() == serial
	})
	if err := os.WriteFile(cert, []byte("no certificate"), 0o600); err != nil {
		t.Fatal(err)
	}
	eventually(t, "one that cannot be used is told of", func() bool {
		if _, err := initializeWith(t, known, url, ""); err != nil {
			t.Fatalf("%v: %s", err, p.stderr)
		}
		return strings.Contains(p.stderr.String(), "cannot be used")
	})
}

func TestPrincipalsAreCheckedAtStart(t *testing.T) {
	manifest := filepath.Join(t.TempDir(), "manifest.yml")
	if err := os.WriteFile(manifest, []byte("sandbox_module: docker\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, row := range []struct {
		environ []string
		text    string
	}{
		{[]string{"SANDBOX_MCP_PRINCIPALS_FILE=" + principalsFile(t, "    policy: lax\n"), "SANDBOX_MCP_MANIFEST=" + manifest}, "no execution policy \"lax\""},
		{[]string{"SANDBOX_MCP_PRINCIPALS_FILE=" + principalsFile(t, "  - name: a\n")}, "principals.yml:5:"},
		{[]string{"SANDBOX_MCP_PRINCIPALS_FILE=/nowhere/principals.yml"}, "SANDBOX_MCP_PRINCIPALS_FILE"},
		{[]string{"SANDBOX_MCP_ADDR=0.0.0.0:0", "SANDBOX_DOCKER_INSTANCE=one"}, "SANDBOX_MCP_ADDR is reachable from other machines"},
		{[]string{"SANDBOX_MCP_TLS_CERT_PATH=/nowhere/c.pem", "SANDBOX_MCP_TLS_KEY_PATH=/nowhere/k.pem"}, "SANDBOX_MCP_TLS_CERT_PATH"},
	} {
		_, p := run(t, append(row.environ, deadEngine), "serve", "--transport=http")
		if p.status != exitSetting || !strings.Contains(p.stderr.String(), row.text) {
			t.Errorf("%q: status %d: %s", row.environ, p.status, p.stderr)
		}
	}
}

func TestPrincipalsAreCheckedAndTokensMadeByCommands(t *testing.T) {
	good := principalsFile(t, "")
	if out, p := run(t, nil, "principals", "check", good); p.status != exitOK || !strings.Contains(out, "1 principals, nothing is wrong") {
		t.Errorf("%d %s %s", p.status, out, p.stderr)
	}
	if _, p := run(t, nil, "principals", "check", principalsFile(t, "  - nam: b\n")); p.status != exitSetting || !strings.Contains(p.stderr.String(), "did you mean name?") {
		t.Errorf("%d %s", p.status, p.stderr)
	}
	out, p := run(t, nil, "principals", "hash", "--new")
	m := regexp.MustCompile(`^token: (\S{43})\ntoken_sha256: ([0-9a-f]{64})\n$`).FindStringSubmatch(out)
	if p.status != exitOK || m == nil {
		t.Fatalf("%d %q %s", p.status, out, p.stderr)
	}
	p = start(t, nil, "principals", "hash")
	_, _ = io.WriteString(p.stdin, m[1]+"\n")
	_ = p.stdin.Close()
	if again, err := io.ReadAll(p.stdout); err != nil || string(again) != "token_sha256: "+m[2]+"\n" || p.end() != exitOK {
		t.Errorf("%q %v", again, err)
	}
	if out, p := run(t, nil, "principals", "hash"); p.status != exitSetting || out != "" || !strings.Contains(p.stderr.String(), "--new") {
		t.Errorf("nothing on standard input: %d %q %s", p.status, out, p.stderr)
	}
	for _, bad := range []string{"short", strings.Repeat("x y", 20)} {
		p := start(t, nil, "principals", "hash")
		_, _ = io.WriteString(p.stdin, bad+"\n")
		_ = p.stdin.Close()
		if p.end() != exitSetting || strings.Contains(p.stderr.String(), bad) {
			t.Errorf("%q: %d %s", bad, p.status, p.stderr)
		}
	}
}

// Connections that say nothing are bounded, of one address and of all; who comes
// from another address is served meanwhile.
func TestAttackT53_IdleConnectionsAreBounded(t *testing.T) {
	p, url := serveHTTP(t, "SANDBOX_MCP_MAX_CONNECTIONS=200", "SANDBOX_MCP_MAX_CONNECTIONS_PER_ADDRESS=100")
	addr := strings.TrimPrefix(url, "http://")
	from := &net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, 2)}}
	open := 0
	for range 1000 {
		conn, err := from.DialContext(soon(t), "tcp", addr)
		if err != nil {
			continue // closed before it was ours
		}
		t.Cleanup(func() { _ = conn.Close() })
		open++
	}
	if open == 0 {
		t.Fatal("nobody gets in")
	}
	began := time.Now()
	if status, body := get(t, url+"/healthz"); status != http.StatusOK || time.Since(began) > 2*time.Second {
		t.Errorf("a good client: %d %s after %v", status, body, time.Since(began))
	}
	files, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", p.cmd.Process.Pid))
	if err != nil || len(files) > 150 {
		t.Errorf("%d files are open: %v", len(files), err)
	}
}
