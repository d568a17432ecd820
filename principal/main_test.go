package principal_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"caisson/principal"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func hashOf(token string) string {
	sum := sha256.Sum256([]byte(token))
	return hex.EncodeToString(sum[:])
}

const (
	tokenA = "token-of-a-0123456789abcdef"
	tokenB = "token-of-b-0123456789abcdef"
)

// twoOf is a file with a and b.
func twoOf() string {
	return fmt.Sprintf("principals:\n  - name: a\n    token_sha256: %s\n  - name: b\n    token_sha256: %s\n    oidc_subject: sub-b\n    client_cert_cn: cn-b\n", hashOf(tokenA), hashOf(tokenB))
}

type lines struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.Write(p)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.String()
}

// kept opens a file of principals with a text.
func kept(t *testing.T, text string, change ...func(*principal.KeeperOptions)) (*principal.Keeper, string, *lines) {
	t.Helper()
	name := filepath.Join(t.TempDir(), "principals.yml")
	write(t, name, text)
	log := &lines{}
	o := principal.KeeperOptions{File: name, Log: slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{Level: slog.LevelDebug})), Every: 5 * time.Millisecond}
	for _, f := range change {
		f(&o)
	}
	k, err := principal.Open(o)
	if err != nil {
		t.Fatal(err)
	}
	return k, name, log
}

// write puts a file in the place of another, whole.
func write(t *testing.T, name, text string) {
	t.Helper()
	if err := os.WriteFile(name+".new", []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(name+".new", name); err != nil {
		t.Fatal(err)
	}
}

func request(t *testing.T, target string, authorization ...string) *http.Request {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, target, nil)
	r.RemoteAddr = "192.0.2.1:1000"
	for _, value := range authorization {
		r.Header.Add("Authorization", value)
	}
	return r
}

func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	for !ok() {
		if ctx.Err() != nil {
			t.Fatalf("never: %s", what)
		}
		time.Sleep(2 * time.Millisecond)
	}
}

// secretless fails when a text holds what only its owner may know.
func secretless(t *testing.T, text string, secrets ...string) {
	t.Helper()
	for _, secret := range secrets {
		if strings.Contains(text, secret) {
			t.Errorf("%q is in %q", secret, text)
		}
	}
}
