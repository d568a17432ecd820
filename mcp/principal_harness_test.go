package mcp_test

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"log/slog"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"

	"github.com/mark3labs/mcp-go/client"
	"github.com/mark3labs/mcp-go/client/transport"

	"caisson/mcp"
	"caisson/principal"
)

// The tokens of two principals that share an endpoint.
const (
	tokenA = "token-of-a-0123456789abcdef"
	tokenB = "token-of-b-0123456789abcdef"
)

func entryOf(name, token, more string) string {
	sum := sha256.Sum256([]byte(token))
	return fmt.Sprintf("  - {name: %s, token_sha256: %s%s}\n", name, hex.EncodeToString(sum[:]), more)
}

// shared is a server with the principals a and b.
type shared struct {
	*rig
	file   string
	keeper *principal.Keeper
	site   *httptest.Server
}

// newShared makes one; more is added to a's entry.
func newShared(t *testing.T, more string, change ...func(*mcp.Options)) *shared {
	t.Helper()
	s := &shared{file: filepath.Join(t.TempDir(), "principals.yml")}
	s.set(t, entryOf("a", tokenA, more)+entryOf("b", tokenB, ""))
	var err error
	s.keeper, err = principal.Open(principal.KeeperOptions{File: s.file, Log: slog.New(slog.DiscardHandler), OnGone: func(names []string) { s.server.Cut(names) }})
	if err != nil {
		t.Fatal(err)
	}
	door := principal.NewDoor(principal.DoorOptions{Keeper: s.keeper})
	s.rig = newRig(t, append(change, func(o *mcp.Options) { o.Authenticator = door })...)
	s.site = s.web()
	return s
}

func (s *shared) set(t *testing.T, entries string) {
	t.Helper()
	if err := os.WriteFile(s.file, []byte("principals:\n"+entries), 0o600); err != nil {
		t.Fatal(err)
	}
}

// as makes a client of a principal connect.
func (s *shared) as(token, how, version string) *conn {
	s.t.Helper()
	headers := map[string]string{"Authorization": "Bearer " + token}
	option := client.WithProtocolVersion(version)
	if how == "sse" {
		tr, err := transport.NewSSE(s.site.URL+"/sse", transport.WithHTTPClient(s.site.Client()), transport.WithHeaders(headers))
		if err != nil {
			s.t.Fatal(err)
		}
		return s.start(client.NewClient(tr, option))
	}
	tr, err := transport.NewStreamableHTTP(s.site.URL+"/mcp", transport.WithHTTPBasicClient(s.site.Client()), transport.WithHTTPHeaders(headers))
	if err != nil {
		s.t.Fatal(err)
	}
	return s.start(client.NewClient(tr, option))
}

// initialized begins a protocol session of a principal.
func (s *shared) initialized(token string) string {
	s.t.Helper()
	response, body := post(s.t, s.site, "/mcp", initializeBody, "Authorization", "Bearer "+token)
	id := response.Header.Get("Mcp-Session-Id")
	if id == "" {
		s.t.Fatalf("initialize: %s %s", response.Status, body)
	}
	return id
}
