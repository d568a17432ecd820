package cli

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"caisson/settings"
)

// serveTLS starts an endpoint that asks for certificates of the authority; serial is of the
// one that it shows.
func (a *authority) serveTLS(t *testing.T) (p *program, url string, serial int64) {
	t.Helper()
	cert, key, serial := a.issue(t, "server")
	p = start(t, []string{
		deadEngine, "SANDBOX_MCP_PRINCIPALS_FILE=" + principalsFile(t, ""), "SANDBOX_MCP_TLS_CERT_PATH=" + cert, "SANDBOX_MCP_TLS_KEY_PATH=" + key,
		"SANDBOX_MCP_TLS_CLIENT_CA_PATH=" + filepath.Join(a.dir, "ca.pem"),
	}, "serve", "--transport", "http", "--addr", "127.0.0.1:0")
	m := regexp.MustCompile(`listening on (https://\S+)`).FindStringSubmatch(p.says("(/mcp"))
	if m == nil {
		t.Fatalf("%s", p.stderr)
	}
	return p, m[1], serial
}

// keeping is a client that keeps its connections; its certificate ends at end.
func (a *authority) keeping(t *testing.T, cn string, end time.Time) *http.Client {
	t.Helper()
	pool := x509.NewCertPool()
	pool.AddCert(a.cert)
	cert, key, _ := a.issueUntil(t, cn, end)
	pair, err := tls.LoadX509KeyPair(cert, key)
	if err != nil {
		t.Fatal(err)
	}
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool, Certificates: []tls.Certificate{pair}}}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport}
}

// streaming opens a stream; the channel is closed when it has ended.
func streaming(t *testing.T, c *http.Client, url, token string) <-chan struct{} {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	t.Cleanup(cancel)
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url+"/sse", nil)
	if err != nil {
		t.Fatal(err)
	}
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	resp, err := c.Do(req)
	if err != nil || resp.StatusCode != http.StatusOK {
		t.Fatalf("a stream: %v %v", resp, err)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		defer resp.Body.Close()
		_, _ = io.Copy(io.Discard, resp.Body)
	}()
	t.Cleanup(func() {
		cancel()
		<-ended
	})
	return ended
}

// shut sees that kept connections are refused and closed, and that no new one is let in.
func shut(t *testing.T, c *http.Client, url, token string, stream <-chan struct{}) {
	t.Helper()
	eventually(t, "the kept connection is refused", func() bool {
		resp, err := initializeWith(t, c, url, token)
		if err != nil {
			t.Fatalf("the connection was not kept: %v", err)
		}
		refused := resp.StatusCode == http.StatusForbidden && resp.Close
		if !refused && resp.StatusCode != http.StatusOK {
			t.Fatalf("%s, and closed: %v", resp.Status, resp.Close)
		}
		return refused
	})
	eventually(t, "no new connection is let in", func() bool {
		resp, err := initializeWith(t, c, url, token)
		if err == nil && (resp.StatusCode != http.StatusForbidden || !resp.Close) {
			t.Fatalf("%s, and closed: %v", resp.Status, resp.Close)
		}
		return err != nil
	})
	select {
	case <-stream:
	case <-time.After(limit):
		t.Error("the stream goes on")
	}
}

// A connection that is kept does not outlive the certificate that it was let in with, nor
// its authority, whoever is told by the certificate and whoever by a token.
func TestAttackT46_AKeptConnectionEndsWithItsCertificate(t *testing.T) {
	for name, row := range map[string]struct{ cn, token string }{
		"its own principal":       {cn: "cn-a"},
		"a token beside it":       {cn: "cn-a", token: aToken},
		"nobody's beside a token": {cn: "cn-b", token: aToken},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := newAuthority(t)
			_, url, _ := a.serveTLS(t)
			long, short := a.keeping(t, row.cn, time.Now().Add(time.Hour)), a.keeping(t, row.cn, time.Now().Add(5*time.Second))
			for _, c := range []*http.Client{long, short} {
				if resp, err := initializeWith(t, c, url, row.token); err != nil || resp.StatusCode != http.StatusOK {
					t.Fatalf("%v %v", resp, err)
				}
			}
			shut(t, short, url, row.token, streaming(t, short, url, row.token))
			stream := streaming(t, long, url, row.token)
			if resp, err := initializeWith(t, long, url, row.token); err != nil || resp.StatusCode != http.StatusOK {
				t.Fatalf("%v %v", resp, err)
			}
			other, err := os.ReadFile(filepath.Join(newAuthority(t).dir, "ca.pem"))
			if err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(a.dir, "ca.pem"), other, 0o600); err != nil {
				t.Fatal(err)
			}
			shut(t, long, url, row.token, stream)
		})
	}
}

// An authority that is joined by another, or renewed under its key, goes on.
func TestAKeptConnectionGoesOnWithItsAuthority(t *testing.T) {
	a := newAuthority(t)
	p, url, _ := a.serveTLS(t)
	c := a.keeping(t, "cn-a", time.Now().Add(time.Hour))
	if resp, err := initializeWith(t, c, url, ""); err != nil || resp.StatusCode != http.StatusOK {
		t.Fatalf("%v %v", resp, err)
	}
	name := filepath.Join(a.dir, "ca.pem")
	mine, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	other, err := os.ReadFile(filepath.Join(newAuthority(t).dir, "ca.pem"))
	if err != nil {
		t.Fatal(err)
	}
	renewed := *a.cert
	renewed.NotAfter = a.cert.NotAfter.Add(time.Hour)
	raw, err := x509.CreateCertificate(rand.Reader, &renewed, &renewed, a.key.Public(), a.key)
	if err != nil {
		t.Fatal(err)
	}
	for i, change := range []func(){
		func() { _ = os.WriteFile(name, append(other, mine...), 0o600) },
		func() { a.write(t, "ca.pem", "CERTIFICATE", raw) },
	} {
		change()
		eventually(t, "the change has been seen", func() bool {
			if resp, err := initializeWith(t, c, url, ""); err != nil || resp.StatusCode != http.StatusOK {
				t.Fatalf("%d: %v %v", i, resp, err)
			}
			return strings.Count(p.stderr.String(), "has been read again") > i
		})
		if resp, err := initializeWith(t, c, url, ""); err != nil || resp.StatusCode != http.StatusOK {
			t.Errorf("%d: %v %v", i, resp, err)
		}
	}
}

// A file that was read, touched or written anew with what it held is not said to be a new
// one; one of another content is, however much else is as it was.
func TestCertificateFilesThatAreOnlyReadHaveNotChanged(t *testing.T) {
	a := newAuthority(t)
	cert, key, _ := a.issue(t, "server")
	log := &buffer{grew: make(chan struct{}, 1)}
	c, err := openCertificate(settings.MCP{TLSCertPath: cert, TLSKeyPath: key, TLSClientCAPath: filepath.Join(a.dir, "ca.pem")}, slog.New(slog.NewTextHandler(log, nil)))
	if err != nil {
		t.Fatal(err)
	}
	first := c.current()
	look := func() *tls.Config {
		c.looked = time.Time{}
		return c.current()
	}
	for _, name := range []string{cert, key, c.clientCA} {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for what, change := range map[string]func() error{
			"read":          func() error { return os.Chtimes(name, time.Now().Add(time.Minute), time.Time{}) },
			"touched":       func() error { return os.Chtimes(name, time.Now(), time.Now()) },
			"written again": func() error { return os.WriteFile(name, text, 0o600) },
		} {
			if err := change(); err != nil {
				t.Fatal(err)
			}
			if look() != first || log.String() != "" {
				t.Errorf("%s was %s: %s", filepath.Base(name), what, log)
			}
		}
	}
	info, err := os.Stat(c.clientCA)
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(c.clientCA)
	if err != nil {
		t.Fatal(err)
	}
	text[len(text)/2] ^= 1 // of the same length
	if err := os.WriteFile(c.clientCA, text, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chtimes(c.clientCA, info.ModTime(), info.ModTime()); err != nil {
		t.Fatal(err)
	}
	look()
	if log.String() == "" {
		t.Error("a file of another content and the same length and time is not looked at")
	}
}
