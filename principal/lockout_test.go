package principal_test

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"caisson/principal"
)

// many is a file of principals p0, p1 and so on; each has its token.
func many(n int) (text string, token func(i int) string) {
	token = func(i int) string { return fmt.Sprintf("token-of-number-%04d-0123456789", i) }
	var b strings.Builder
	b.WriteString("principals:\n")
	for i := range n {
		fmt.Fprintf(&b, "  - name: p%d\n    token_sha256: %s\n", i, hashOf(token(i)))
	}
	return b.String(), token
}

// status is how a door answers a token from an address: 0 when it lets it in.
func status(t *testing.T, d *principal.Door, from, token string) int {
	t.Helper()
	r := request(t, "/mcp", "Bearer "+token)
	r.RemoteAddr = from
	var refusal *principal.Refusal
	if _, err := d.Authenticate(r); errors.As(err, &refusal) {
		return refusal.Status
	}
	return 0
}

// However many are behind one address, those who have been in stay in: a request of one
// of them while the address is locked out takes nothing from the others.
func TestAttackT46_ManyPrincipalsOfOneAddressStayIn(t *testing.T) {
	for _, n := range []int{2, 63, 64, 65, 300} {
		text, token := many(n + 1)
		k, _, _ := kept(t, text)
		d := principal.NewDoor(principal.DoorOptions{Keeper: k})
		const proxy = "192.0.2.1:1000"
		for i := range n {
			if got := status(t, d, proxy, token(i)); got != 0 {
				t.Fatalf("%d of %d: %d", i, n, got)
			}
		}
		for range 10 {
			if got := status(t, d, proxy, "wrong"); got != http.StatusUnauthorized {
				t.Fatalf("a wrong token: %d", got)
			}
		}
		if got := status(t, d, proxy, token(n)); got != http.StatusTooManyRequests {
			t.Errorf("one who was not here before: %d", got)
		}
		for range 2 {
			for i := range n {
				if got := status(t, d, proxy, token(i)); got != 0 {
					t.Errorf("%d of %d, who was here before: %d", i, n, got)
				}
			}
		}
	}
}

// Wrong tokens from more addresses than are remembered take nothing from those who have
// been in either.
func TestAttackT46_GuessingFromManyAddressesLocksNobodyOut(t *testing.T) {
	k, _, _ := kept(t, twoOf())
	d := principal.NewDoor(principal.DoorOptions{Keeper: k})
	const office = "192.0.2.1:1000"
	if got := status(t, d, office, tokenA); got != 0 {
		t.Fatal(got)
	}
	for i := range 5000 {
		if got := status(t, d, fmt.Sprintf("10.1.%d.%d:1", i/256, i%256), "wrong"); got != http.StatusUnauthorized {
			t.Fatalf("%d: %d", i, got)
		}
	}
	for range 10 {
		_ = status(t, d, office, "wrong")
	}
	if got := status(t, d, office, tokenB); got != http.StatusTooManyRequests {
		t.Errorf("one who was not here before: %d", got)
	}
	if got := status(t, d, office, tokenA); got != 0 {
		t.Errorf("one who was: %d", got)
	}
}
