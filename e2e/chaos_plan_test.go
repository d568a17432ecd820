package e2e_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// round is one round of chaos: a fault that falls upon an operation.
type round struct {
	kind  string        // what is done
	op    string        // in the midst of what
	after time.Duration // the operation's beginning
	hold  time.Duration // how long a fault of the link lasts
	key   bool          // the session that is made has a persistent workspace
}

func (r round) String() string {
	return fmt.Sprintf("%s %v into %s, for %v, persistent %v", r.kind, r.after, r.op, r.hold, r.key)
}

// The kinds of rounds, each as often as it is named.
var roundKinds = []string{
	"kill-server", "kill-server", "kill-server", "kill-server", "kill-server", "kill-server",
	"kill-stdio", "kill-stdio", "kill-client", "kill-client", "kill-client",
	"restart-engine", "cut-link", "cut-link", "slow-engine", "slow-engine",
}

var roundOps = []string{"session_create", "exec", "upload", "session_destroy"}

// mostRestarts is how often the engine is restarted at most.
const mostRestarts = 5

// planOf draws rounds; the same seed draws the same ones. The first rounds show each
// kind once, however few there are.
func planOf(seed uint64, n int, kinds []string) []round {
	random := rand.New(rand.NewPCG(seed, 0))
	once := slices.Compact(slices.Sorted(slices.Values(kinds)))
	random.Shuffle(len(once), func(i, j int) { once[i], once[j] = once[j], once[i] })
	restarts := 0
	var plan []round
	for i := range n {
		r := round{kind: kinds[random.IntN(len(kinds))], op: roundOps[random.IntN(len(roundOps))], key: random.IntN(4) == 0}
		r.after = time.Duration(random.IntN(900)) * time.Millisecond
		r.hold = time.Duration(2000+random.IntN(6000)) * time.Millisecond
		if i < len(once) {
			r.kind = once[i]
		}
		if r.kind == "restart-engine" {
			if restarts++; restarts > mostRestarts {
				r.kind = "kill-server"
			}
		}
		plan = append(plan, r)
	}
	return plan
}

// chaosSettings are how much chaos there is, and which.
type chaosSettings struct {
	seed   uint64
	rounds int
	ttl    time.Duration
	kinds  []string
}

// chaosOf reads CAISSON_CHAOS_SEED, _ROUNDS and _KINDS; without them the seed is new
// and the rounds are few, or 60 in full.
func chaosOf(t testing.TB) chaosSettings {
	t.Helper()
	c := chaosSettings{seed: rand.Uint64(), rounds: times(t, "CAISSON_CHAOS_ROUNDS", int(long(7, 60))), ttl: long(12*time.Second, 45*time.Second), kinds: roundKinds}
	if text := os.Getenv("CAISSON_CHAOS_SEED"); text != "" {
		seed, err := strconv.ParseUint(text, 10, 64)
		if err != nil {
			t.Fatalf("CAISSON_CHAOS_SEED: %v", err)
		}
		c.seed = seed
	}
	if text := os.Getenv("CAISSON_CHAOS_KINDS"); text != "" {
		c.kinds = strings.Split(text, ",")
	}
	return c
}

func TestTheSameSeedDrawsTheSameRounds(t *testing.T) {
	t.Parallel()
	for seed := range uint64(50) {
		plan := planOf(seed, 60, roundKinds)
		if !slices.Equal(plan, planOf(seed, 60, roundKinds)) {
			t.Fatalf("seed %d draws two plans", seed)
		}
		if seed > 0 && slices.Equal(plan, planOf(seed-1, 60, roundKinds)) {
			t.Fatalf("seeds %d and %d draw the same", seed-1, seed)
		}
		count := map[string]int{}
		for _, r := range plan {
			count[r.kind]++
			count[r.op]++
		}
		if count["restart-engine"] > mostRestarts {
			t.Errorf("seed %d restarts the engine %d times", seed, count["restart-engine"])
		}
		for _, name := range slices.Concat(roundKinds, roundOps) {
			if count[name] == 0 {
				t.Errorf("seed %d: no %s", seed, name)
			}
		}
	}
}
