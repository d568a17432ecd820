package principal_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"caisson/principal"
)

func TestTheFileSaysWhoMayDoWhat(t *testing.T) {
	text := fmt.Sprintf(`principals:
  - name: team a, with spaces
    token_sha256: [%s, %s]
    max_sessions: 3
    max_workspaces: 7
    max_network: internal
    max_cpu: 1.5
    max_memory_mb: 512
    max_pids: 300
    max_ttl_seconds: 60
    tools: [exec*, session_list]
    images: ["debian:*"]
    workspaces: team-a-
    policy: strict
    rate_per_minute: 30
`, hashOf(tokenA), strings.ToUpper(hashOf(tokenB)))
	book, err := principal.Parse("p.yml", []byte(text), []string{"strict"})
	if err != nil {
		t.Fatal(err)
	}
	if got := book.Names(); len(got) != 1 || got[0] != "team a, with spaces" {
		t.Errorf("%q", got)
	}
	k, _, _ := kept(t, text)
	for _, token := range []string{tokenA, tokenB} { // the old and the new one while it is changed
		p, err := principal.NewDoor(principal.DoorOptions{Keeper: k}).Authenticate(request(t, "/mcp", "Bearer "+token))
		if err != nil {
			t.Fatal(err)
		}
		c := p.Ceilings
		if c.Sessions != 3 || c.MaxWorkspaces != 7 || c.MaxNetwork != "internal" || c.MaxCPU != 1.5 || c.MaxMemoryMB != 512 || c.MaxPids != 300 || c.MaxTTL.Seconds() != 60 ||
			c.Images[0] != "debian:*" || c.Workspaces != "team-a-" || p.Policy != "strict" || p.RatePerMinute != 30 {
			t.Errorf("%+v %+v", p, c)
		}
		if !p.May("exec") || !p.May("exec_list") || p.May("kill") || !p.Owner().Principal {
			t.Errorf("%+v", p)
		}
	}
}

func TestEveryFaultIsToldAtOnceWithItsLine(t *testing.T) {
	secret := "this-is-a-token-and-no-hash-of-one"
	text := fmt.Sprintf(`principals:
  - name: a
    token_sha256: %[1]s
  - name: a
    token_sha256: %[1]s
  - token_sha256: e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855
  - name: b
    token_sha256: %[2]s
  - name: c
  - name: d
    oidc_subject: s
    max_network: bridge
    max_cpu: 0
    max_sessions: many
    tools: []
    images: ["[a"]
    workspaces: ../x
    policy: lax
    rate_per_minut: 3
  - name: e
    oidc_subject: s
  - name: %[3]s
    client_cert_cn: " x"
`, hashOf(tokenA), secret, strings.Repeat("x", 129))
	_, err := principal.Parse("p.yml", []byte(text), []string{"strict"})
	var faults principal.Faults
	if !errors.As(err, &faults) {
		t.Fatalf("%v", err)
	}
	told := faults.Error()
	secretless(t, told, secret, hashOf(tokenA))
	for _, want := range []string{
		"p.yml:4:", "this name is another's already, in line 2", "p.yml:5:", "there already, in line 2", "p.yml:6:", "needs the key name", "no token at all",
		"p.yml:8:", "64 hexadecimal digits", "p.yml:9:", "to show who it is", "p.yml:12:", "max_network is one of", "p.yml:13:", "p.yml:14:", "p.yml:15:", "leave it out to allow all",
		"p.yml:16:", "is no pattern", "p.yml:17:", "p.yml:18:", "no execution policy", "p.yml:19:", "did you mean rate_per_minute?", "p.yml:21:", "this oidc_subject is another's",
		"p.yml:22:", "at most 128", "p.yml:23:", "begins or ends with a space",
	} {
		if !strings.Contains(told, want) {
			t.Errorf("%q is not in\n%s", want, told)
		}
	}
}

func TestTheExampleIsRight(t *testing.T) {
	book, err := principal.ReadFile("../deploy/principals.yml")
	if err != nil || len(book.Names()) != 3 {
		t.Error(err)
	}
}

func TestFilesThatLetNobodyInAreRefused(t *testing.T) {
	for _, text := range []string{"", "principals:", "principals: []", "{}", "principals: {a: b}", "- a", "principals: [a]", "a: &x b\nprincipals: *x", "principals: [{name: a, token_sha256: 1}]", "\xff"} {
		if book, err := principal.Parse("p.yml", []byte(text), nil); err == nil {
			t.Errorf("%q is taken: %v", text, book.Names())
		}
	}
}

// Whatever the text, reading it ends with a book or with faults.
func FuzzParse(f *testing.F) {
	f.Add(twoOf())
	f.Add("principals: [{name: a, oidc_subject: b, max_cpu: .inf}]")
	f.Fuzz(func(t *testing.T, text string) {
		book, err := principal.Parse("p.yml", []byte(text), nil)
		if (book == nil) != (err != nil) || err != nil && !errors.As(err, new(principal.Faults)) {
			t.Errorf("%v %v", book, err)
		}
	})
}
