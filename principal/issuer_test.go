package principal_test

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coreos/go-oidc/v3/oidc/oidctest"

	"caisson/principal"
)

// issuer plays one on loopback.
type issuer struct {
	*httptest.Server
	key   *rsa.PrivateKey
	asked atomic.Int64
	down  atomic.Bool
}

func newIssuer(t *testing.T) *issuer {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	i := &issuer{key: key}
	oidc := &oidctest.Server{PublicKeys: []oidctest.PublicKey{{PublicKey: key.Public(), KeyID: "k1", Algorithm: "RS256"}}}
	i.Server = httptest.NewTLSServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		i.asked.Add(1)
		if i.down.Load() {
			http.Error(rw, "down", http.StatusBadGateway)
			return
		}
		oidc.ServeHTTP(rw, r)
	}))
	oidc.SetIssuer(i.URL)
	t.Cleanup(i.Close)
	return i
}

// claims is a token's, changed by more: the last of a name counts.
func (i *issuer) claims(more string) string {
	now := time.Now().Unix()
	return fmt.Sprintf(`{"iss":%q,"aud":["caisson"],"sub":"sub-b","iat":%d,"exp":%d%s}`, i.URL, now, now+600, more)
}

func (i *issuer) token(claims string) string {
	return oidctest.SignIDToken(i.key, "k1", "RS256", claims)
}

func (i *issuer) door(t *testing.T, k *principal.Keeper) *principal.Door {
	t.Helper()
	d := principal.NewDoor(principal.DoorOptions{Keeper: k, Issuer: principal.NewIssuer(principal.IssuerOptions{URL: i.URL, Audience: "caisson", Client: i.Client()})})
	t.Cleanup(d.Close)
	return d
}

func TestAttackT46_TokensOfAnIssuer(t *testing.T) {
	i := newIssuer(t)
	k, _, _ := kept(t, twoOf())
	d := i.door(t, k)
	if n := i.asked.Load(); n != 0 {
		t.Errorf("the issuer was asked %d times before a token came", n)
	}
	p, err := d.Authenticate(request(t, "/mcp", "Bearer "+i.token(i.claims(""))))
	if err != nil || p.Name != "b" || time.Until(p.Until) <= 0 || time.Until(p.Until) > 11*time.Minute {
		t.Fatalf("%+v %v", p, err)
	}
	if p, err := d.Authenticate(request(t, "/mcp", "Bearer "+tokenA)); err != nil || p.Name != "a" || !p.Until.IsZero() {
		t.Errorf("a token of the file: %+v %v", p, err)
	}
	otherKey, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	raw := func(header, claims string, sign func(string) []byte) string {
		text := base64.RawURLEncoding.EncodeToString([]byte(header)) + "." + base64.RawURLEncoding.EncodeToString([]byte(claims))
		return text + "." + base64.RawURLEncoding.EncodeToString(sign(text))
	}
	public, err := x509.MarshalPKIXPublicKey(i.key.Public())
	if err != nil {
		t.Fatal(err)
	}
	good := i.token(i.claims(""))
	for name, token := range map[string]string{
		"expired":           i.token(i.claims(`,"exp":1000`)),
		"not yet":           i.token(i.claims(fmt.Sprintf(`,"nbf":%d`, time.Now().Add(time.Hour).Unix()))),
		"another audience":  i.token(i.claims(`,"aud":"other"`)),
		"no audience":       i.token(i.claims(`,"aud":[]`)),
		"another issuer":    i.token(i.claims(`,"iss":"https://evil.example"`)),
		"unknown key":       oidctest.SignIDToken(otherKey, "k2", "RS256", i.claims("")),
		"another's key":     oidctest.SignIDToken(otherKey, "k1", "RS256", i.claims("")),
		"no algorithm":      raw(`{"alg":"none"}`, i.claims(""), func(string) []byte { return nil }),
		"no algorithm, kid": raw(`{"alg":"None","kid":"k1"}`, i.claims(""), func(string) []byte { return nil }),
		"a shared secret": raw(`{"alg":"HS256","kid":"k1"}`, i.claims(""), func(text string) []byte {
			mac := hmac.New(sha256.New, public)
			mac.Write([]byte(text))
			return mac.Sum(nil)
		}),
		"changed":    good[:len(good)-5] + "AAAAA",
		"no subject": i.token(i.claims(`,"sub":""`)),
		"no JSON":    raw(`{`, `}`, func(string) []byte { return []byte("x") }),
	} {
		r := request(t, "/mcp", "Bearer "+token)
		r.RemoteAddr = "198.51.100." + fmt.Sprint(len(name)) + ":1" // else the lock-out would be what is seen
		got := refused(t, d, r)
		if got.Status != http.StatusUnauthorized || !strings.Contains(got.Challenge, `error="invalid_token"`) {
			t.Errorf("%s: %d %s %v", name, got.Status, got.Challenge, got)
		}
		if want := `resource_metadata="http://example.com/.well-known/oauth-protected-resource/mcp"`; !strings.Contains(got.Challenge, want) {
			t.Errorf("%s: %s", name, got.Challenge)
		}
		secretless(t, got.Text+got.Challenge, token, "evil.example")
	}
	if got := refused(t, d, request(t, "/mcp", "Bearer "+i.token(i.claims(`,"sub":"stranger"`)))); got.Status != http.StatusForbidden || !strings.Contains(got.Challenge, "insufficient_scope") {
		t.Errorf("no principal's subject: %+v", got)
	}
}

// Made-up keys do not make us ask the issuer again and again.
func TestAnIssuerIsAskedAtAPace(t *testing.T) {
	i := newIssuer(t)
	k, _, _ := kept(t, twoOf())
	d := i.door(t, k)
	other, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	for n := range 60 {
		r := request(t, "/mcp", "Bearer "+oidctest.SignIDToken(other, fmt.Sprint("k", n+2), "RS256", i.claims("")))
		r.RemoteAddr = fmt.Sprintf("198.51.100.%d:1", n)
		if got := refused(t, d, r); got.Status != http.StatusUnauthorized {
			t.Errorf("%d: %+v", n, got)
		}
	}
	if n := i.asked.Load(); n > 8 {
		t.Errorf("the issuer was asked %d times", n)
	}
	if p, err := d.Authenticate(request(t, "/mcp", "Bearer "+i.token(i.claims("")))); err != nil || p.Name != "b" {
		t.Errorf("a right one meanwhile: %v", err)
	}
}

// An issuer that is down is no reason not to start, and is asked again later.
func TestAnIssuerThatIsDown(t *testing.T) {
	i := newIssuer(t)
	i.down.Store(true)
	k, _, _ := kept(t, twoOf())
	d := i.door(t, k)
	for range 20 {
		if got := refused(t, d, request(t, "/mcp", "Bearer "+i.token(i.claims("")))); got.Status != http.StatusServiceUnavailable || got.RetryAfter <= 0 {
			t.Fatalf("%+v", got)
		}
	}
	if n := i.asked.Load(); n > 2 {
		t.Errorf("it was asked %d times", n)
	}
	if p, err := d.Authenticate(request(t, "/mcp", "Bearer "+tokenA)); err != nil || p.Name != "a" {
		t.Errorf("tokens of the file: %v", err)
	}
	i.down.Store(false)
	eventually(t, "it is asked again", func() bool {
		p, err := d.Authenticate(request(t, "/mcp", "Bearer "+i.token(i.claims(""))))
		return err == nil && p.Name == "b"
	})
}

func TestTheEndpointIsDescribedForThoseWhoLookForTheIssuer(t *testing.T) {
	i := newIssuer(t)
	k, _, _ := kept(t, twoOf())
	if principal.NewDoor(principal.DoorOptions{Keeper: k}).Metadata() != nil {
		t.Error("there is a description without an issuer")
	}
	d := principal.NewDoor(principal.DoorOptions{Keeper: k, PublicURL: "https://caisson.example/", Issuer: principal.NewIssuer(principal.IssuerOptions{URL: i.URL, Audience: "caisson", Client: i.Client()})})
	defer d.Close()
	for path, resource := range map[string]string{"": "https://caisson.example/mcp", "/mcp": "https://caisson.example/mcp", "/sse": "https://caisson.example/sse", "/x": ""} {
		answer := httptest.NewRecorder()
		d.Metadata().ServeHTTP(answer, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/.well-known/oauth-protected-resource"+path, nil))
		if resource == "" {
			if answer.Code != http.StatusNotFound {
				t.Errorf("%s: %d", path, answer.Code)
			}
			continue
		}
		if body := answer.Body.String(); !strings.Contains(body, `"resource":"`+resource+`"`) || !strings.Contains(body, i.URL) {
			t.Errorf("%s: %s", path, body)
		}
	}
}
