package wire_test

import (
	"bytes"
	"math"
	"testing"

	"caisson/executor/wire"
)

func TestD16_ProgressCountsWithTheNonceOfTheCallAlone(t *testing.T) {
	nonce, p := wire.NewNonce(), wire.Progress{Done: 1, Total: 3, Text: "a\nb"}
	line := bytes.Trim(wire.EncodeProgress(p, nonce), "\n")
	if bytes.ContainsRune(line, '\n') {
		t.Fatalf("more than one line: %q", line)
	}
	if got, ok := wire.ReadProgress(line, nonce); !ok || got != p {
		t.Errorf("read %v %v of %s", got, ok, line)
	}
	for _, other := range []string{wire.NewNonce(), ""} {
		if _, ok := wire.ReadProgress(line, other); ok {
			t.Errorf("nonce %q: a line of another call counts", other)
		}
	}
	if _, ok := wire.ReadProgress(append([]byte("x"), line...), nonce); ok {
		t.Error("a line that begins otherwise counts")
	}
	if line := wire.EncodeProgress(wire.Progress{Done: math.NaN()}, nonce); line != nil {
		t.Errorf("no number gives %q", line)
	}
}
