package wrapper

import (
	"testing"
	"time"
)

// TestEXW22_LingerLeavesNothing closes stdin at once, so that the wrapper's own limit
// has hardly begun when it is no longer needed.
func TestEXW22_LingerLeavesNothing(t *testing.T) {
	t.Parallel()
	inShells(t, func(t *testing.T, b *box) {
		for range 20 {
			w := b.start(Command{Argv: []string{"true"}, Linger: true})
			_ = w.stdin.Close()
			if w.wait(); w.code != 0 {
				t.Fatalf("got %d %q", w.code, w.stderr())
			}
		}
		began := time.Now()
		await(t, "the limits of the wrappers are gone", func() bool { return !b.runs("sleep 10") })
		if took := time.Since(began); took > 2*time.Second { // each lasts 10 s
			t.Errorf("they were left to run out: %v", took)
		}
	})
}
