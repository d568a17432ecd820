package e2e_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/network"
	"github.com/docker/docker/api/types/volume"
)

const (
	chaosGrace = 10 * time.Second
	chaosSweep = 2 * time.Second
	// chaosLease is how long a dead server's lease may still run.
	chaosLease = 3 * time.Second
)

// chaos is a server of a fixed instance on an engine of its own, with a proxy between
// the two, and all that the server has acknowledged.
type chaos struct {
	*ledger
	t      *testing.T
	set    chaosSettings
	engine *ownEngine
	proxy  *faultProxy
	random *rand.Rand

	server  *server
	client  *actor
	named   atomic.Int64 // workspace keys
	keys    []*held      // persistent workspaces, by the session that held them
	gone    []string
	strange []*server // stdio servers that were killed
}

// TestAttackT60_BugLC01_ChaosLeavesNothingAndNoLie does, round after round, what must
// not be done to a server, and then looks for what is left and for what it has said
// that is not so.
func TestAttackT60_BugLC01_ChaosLeavesNothingAndNoLie(t *testing.T) {
	t.Parallel()
	set := chaosOf(t)
	t.Logf("CAISSON_CHAOS_SEED=%d CAISSON_CHAOS_ROUNDS=%d", set.seed, set.rounds)
	e := privateEngine(t, "chaos-rounds")
	c := &chaos{ledger: newLedger(t), t: t, set: set, engine: e, proxy: through(t, e.vars), random: rand.New(rand.NewPCG(set.seed, 1))}
	c.serve()
	for i, r := range planOf(set.seed, set.rounds, set.kinds) {
		began := time.Now()
		c.round(r)
		t.Logf("round %d: %s: %v, %d sessions", i+1, r, time.Since(began).Round(100*time.Millisecond), len(c.all()))
		if t.Failed() {
			t.Fatalf("stopped after round %d; CAISSON_CHAOS_SEED=%d repeats it", i+1, set.seed)
		}
	}
	c.end()
	t.Logf("%d calls, failed: %v", c.deeds, c.failures)
}

func (c *chaos) env() []string {
	return slices.Concat(c.engine.env, c.proxy.env, []string{
		fmt.Sprintf("SANDBOX_DOCKER_INSTANCE_GRACE_SECONDS=%d", int(chaosGrace.Seconds())),
		fmt.Sprintf("SANDBOX_DOCKER_REAP_INTERVAL_SECONDS=%d", int(chaosSweep.Seconds())),
		fmt.Sprintf("SANDBOX_DOCKER_DEFAULT_TTL_SECONDS=%d", int(c.set.ttl.Seconds())),
		"SANDBOX_DOCKER_PULL_POLICY=never", "SANDBOX_DOCKER_MAX_WORKSPACES_PER_OWNER=0",
	})
}

// serve starts the server, in the place of the one that was killed.
func (c *chaos) serve() {
	c.t.Helper()
	c.server = start(c.t, launch{http: true, env: append(c.env(), "SANDBOX_DOCKER_INSTANCE=chaos")})
	ready(c.t, c.server, 20*time.Second)
	c.client = join(c.t, c.server, httpLegacy)
}

// kill ends a server as nobody expects it.
func (c *chaos) kill(v *server) {
	c.t.Helper()
	if err := v.cmd.Process.Kill(); err != nil {
		c.t.Fatal(err)
	}
	<-v.exited
}

// round lets one fault fall upon one operation, mends it, and looks.
func (c *chaos) round(r round) {
	c.t.Helper()
	switch r.kind {
	case "kill-client", "kill-stdio":
		c.stdio(r)
	default:
		c.http(r)
	}
	for _, h := range c.all() {
		c.verify(c.client.conn, h)
	}
	c.ended()
	if all := c.all(); len(all) > 4 {
		c.retire(all[0])
	}
}

// http plays a round upon the server.
func (c *chaos) http(r round) {
	c.t.Helper()
	victim, beside := c.have(0), c.have(1)
	dead := new(atomic.Bool)
	broken := dead.Load
	var calls sync.WaitGroup
	one, other := rand.New(rand.NewPCG(c.set.seed, c.random.Uint64())), rand.New(rand.NewPCG(c.set.seed, c.random.Uint64()))
	calls.Go(func() { c.operate(c.client.conn, broken, r, victim, one) })
	calls.Go(func() { c.exec(c.client.conn, broken, beside, other) })
	<-time.After(r.after)
	switch r.kind {
	case "kill-server":
		dead.Store(true)
		c.kill(c.server)
	case "restart-engine":
		c.engine.script("restart")
	case "cut-link":
		c.engine.script("cut")
		<-time.After(long(r.hold, 4*r.hold))
		c.engine.script("heal")
	case "slow-engine":
		c.proxy.rule("* ** delay(300-2500)")
		<-time.After(r.hold)
		c.proxy.tell("clear")
	default:
		c.t.Fatalf("no kind of round: %q", r.kind)
	}
	calls.Wait()
	if r.kind == "kill-server" {
		c.serve()
		return
	}
	c.client.well(30*time.Second, beside.id)
	ready(c.t, c.server, 20*time.Second)
}

// operate does what the fault falls upon.
func (c *chaos) operate(to conn, broken func() bool, r round, h *held, random *rand.Rand) {
	switch r.op {
	case "session_create":
		key := ""
		if r.key {
			key = fmt.Sprintf("key-%d", c.named.Add(1))
		}
		if made, ok := c.create(to, broken, c.set.ttl, key); ok && key != "" {
			c.keep(made)
		}
	case "exec":
		c.exec(to, broken, h, random)
	case "upload":
		c.upload(to, broken, h, random)
	case "session_destroy":
		if c.destroy(to, broken, h) && h.key == "" {
			c.mu.Lock()
			c.gone = append(c.gone, h.id)
			c.mu.Unlock()
		}
	}
}

func (c *chaos) keep(h *held) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.keys = append(c.keys, h)
}

// have is the nth session, made where there are fewer. One in four is persistent.
func (c *chaos) have(n int) *held {
	c.t.Helper()
	for {
		all := slices.DeleteFunc(c.all(), func(h *held) bool { return h.leaving })
		if len(all) > n {
			return all[n]
		}
		key := ""
		if c.random.IntN(4) == 0 {
			key = fmt.Sprintf("key-%d", c.named.Add(1))
		}
		h, ok := c.create(c.client.conn, never, c.set.ttl, key)
		if !ok {
			c.t.Fatal("no session can be made though nothing is broken")
		}
		if key != "" {
			c.keep(h)
		}
		for range 2 {
			c.upload(c.client.conn, never, h, c.random)
		}
	}
}

// stdio plays a round upon a stdio server of its own: its client dies, or it.
func (c *chaos) stdio(r round) {
	c.t.Helper()
	v := start(c.t, launch{env: c.env()})
	w := newWire(v, false)
	ctx, cancel := context.WithTimeout(c.t.Context(), 20*time.Second)
	defer cancel()
	if err := w.hello(ctx); err != nil {
		c.t.Fatalf("%v\n%s", err, tail(v.stderr.String()))
	}
	mine := newLedger(c.t) // its sessions end with it
	h, ok := mine.create(w, never, c.set.ttl, "")
	if !ok {
		c.t.Fatal("no session on stdio though nothing is broken")
	}
	dead := new(atomic.Bool)
	var calls sync.WaitGroup
	random := rand.New(rand.NewPCG(c.set.seed, c.random.Uint64()))
	calls.Go(func() {
		on := &chaos{ledger: mine, t: c.t, set: c.set}
		on.operate(w, dead.Load, round{op: r.op}, h, random)
	})
	<-time.After(r.after)
	dead.Store(true)
	if r.kind == "kill-stdio" {
		c.kill(v)
		c.strange = append(c.strange, v)
	} else {
		v.stdin.Close() // what is left of a client that was killed
		v.code(c.t, 25*time.Second)
		c.nothingOf(v.instance)
	}
	calls.Wait()
	mine.mu.Lock()
	defer mine.mu.Unlock()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.deeds += mine.deeds
}

// nothingOf looks that a server that has ended by itself has taken along what it had.
func (c *chaos) nothingOf(instance string) {
	c.t.Helper()
	for _, box := range c.containers() {
		if box.Labels["caisson.instance"] == instance {
			c.t.Errorf("left by a server whose client died: %v %s", box.Names, box.State)
		}
	}
}

// ended looks that what was acknowledged as destroyed is not there.
func (c *chaos) ended() {
	c.t.Helper()
	for _, box := range c.containers() {
		if slices.Contains(c.gone, box.Labels["caisson.id"]) {
			c.t.Errorf("session %s is there though its end was acknowledged", box.Labels["caisson.id"])
		}
	}
}

// retire ends a session in good order, or leaves it to its time to live.
func (c *chaos) retire(h *held) {
	c.t.Helper()
	if c.random.IntN(2) == 0 {
		c.drop(h)
		return
	}
	if c.destroy(c.client.conn, never, h) {
		c.gone = append(c.gone, h.id)
	}
}

func (c *chaos) containers() []container.Summary {
	c.t.Helper()
	found, err := c.engine.api.ContainerList(c.t.Context(), container.ListOptions{All: true})
	if err != nil {
		c.t.Fatal(err)
	}
	return found
}

// end lets the time to live pass, and looks for what is left: nothing but the server's
// lease and the persistent workspaces, which are read back.
func (c *chaos) end() {
	c.t.Helper()
	limit := c.set.ttl + 4*chaosSweep + 10*time.Second
	if len(c.strange) > 0 {
		limit += chaosLease + chaosGrace
	}
	eventually(c.t, limit, "no session is left once its time is over", func() bool {
		return !slices.ContainsFunc(c.containers(), func(box container.Summary) bool { return !strings.Contains(box.Names[0], "caisson-lease-chaos-") })
	})
	volumes, err := c.engine.api.VolumeList(c.t.Context(), volume.ListOptions{})
	if err != nil {
		c.t.Fatal(err)
	}
	for _, v := range volumes.Volumes {
		if !strings.HasPrefix(v.Name, "tai-sbx-key-") {
			c.t.Errorf("left: volume %s", v.Name)
		}
	}
	networks, err := c.engine.api.NetworkList(c.t.Context(), network.ListOptions{})
	if err != nil {
		c.t.Fatal(err)
	}
	for _, n := range networks {
		if strings.HasPrefix(n.Name, "caisson") {
			c.t.Errorf("left: network %s", n.Name)
		}
	}
	for _, h := range c.keys {
		again, ok := c.create(c.client.conn, never, c.set.ttl, h.key)
		if !ok {
			c.t.Errorf("the workspace %s cannot be had", h.key)
			continue
		}
		again.files, again.tried, again.said, again.denied = h.files, h.tried, h.said, h.denied
		c.verify(c.client.conn, again)
		c.destroy(c.client.conn, never, again)
	}
	kept := into[struct {
		Workspaces []struct {
			Key string `json:"workspace_key"`
		}
	}](c.t, c.client.ok("workspace_list", args{}))
	for _, w := range kept.Workspaces {
		c.client.ok("workspace_delete", args{"workspace_key": w.Key})
	}
	if len(kept.Workspaces) < len(c.keys) {
		c.t.Errorf("%d workspaces of %d", len(kept.Workspaces), len(c.keys))
	}
	if err := c.server.end(); err != nil {
		c.t.Error(err)
	}
	if left := c.containers(); len(left) != 0 {
		c.t.Errorf("left by a server that has ended: %v", left)
	}
}
