package e2e_test

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mark3labs/mcp-go/client/transport"
)

// load is many clients of several principals at one server.
type load struct {
	*witness
	server    *server
	hostile   *tenant
	workspace string // key of the workspace that each principal has one of
	places    chan struct{}
	dir       string
}

// The bounds of the load's server. Principals share few containers, so that what is
// measured is the server and not the engine.
const (
	loadTenants = 4
	loadHostile = 4
	loadPlaces  = 6 // clients that have the engine work at one time
	loadBody    = 1 // MiB
	loadMemory  = 256 << 20
	loadP99     = 500 * time.Millisecond
)

// newLoad starts the server and gives each principal its sessions.
func newLoad(t *testing.T, sessions int) *load {
	l := &load{witness: &witness{t: t, seen: map[string]*tenant{}, joined: map[string]*tenant{}, done: map[string]int{}, times: map[string][]time.Duration{}}, dir: t.TempDir(), places: make(chan struct{}, loadPlaces)}
	book := "principals:\n"
	for i := range loadTenants {
		n := newTenant(fmt.Sprintf("tenant-%d", i))
		rate := 1_000_000
		if i == loadTenants-1 {
			rate = 500 // this one meets its limit
		}
		book += n.entry(fmt.Sprintf("max_sessions: %d, rate_per_minute: %d", sessions+1, rate))
		l.tenants = append(l.tenants, n)
	}
	l.hostile = newTenant("mallory")
	book += l.hostile.entry("max_sessions: 1, rate_per_minute: 3000")
	l.tenants = append(l.tenants, l.hostile)
	file := filepath.Join(l.dir, "principals.yml")
	if err := os.WriteFile(file, []byte(book), 0o600); err != nil {
		t.Fatal(err)
	}
	l.server = start(t, launch{plain: true, http: true, env: []string{
		"SANDBOX_MCP_PRINCIPALS_FILE=" + file, "SANDBOX_MCP_AUDIT_FILE=" + filepath.Join(l.dir, "audit"), fmt.Sprint("SANDBOX_MCP_MAX_BODY_MB=", loadBody),
		"SANDBOX_DOCKER_DEFAULT_MEMORY_MB=256",
	}})
	l.workspace = "shared-" + l.server.instance
	each(len(l.tenants)-1, 2, func(i int) {
		n := l.tenants[i]
		c := l.client(n, 0).(*webClient)
		for s := range sessions {
			spec := args{}
			if s == 0 {
				spec["workspace_key"] = l.workspace
			}
			r, err := attempt(t, c, "session_create", spec)
			if err == nil {
				n.sessions = append(n.sessions, sessionID(r))
				_, err = attempt(t, c, "upload", args{"session_id": sessionID(r), "path": "mark", "content": n.secret + "\n"})
			}
			if err != nil {
				t.Errorf("the sessions of %s: %v", n.name, err)
			}
		}
	})
	if t.Failed() {
		t.FailNow()
	}
	return l
}

// client connects the nth client of a principal, as soon as its rate lets it.
func (l *load) client(who *tenant, n int) conn {
	var c conn
	var err error
	for deadline := time.Now().Add(patient(time.Minute)); ; time.Sleep(200 * time.Millisecond) {
		c, err = l.connect(who, n)
		// mcp-go's client does not tell one refusal from another.
		refused := err != nil && (limited(err) || strings.Contains(err.Error(), "4xx for initialize"))
		if !refused || time.Now().After(deadline) {
			break
		}
	}
	if err != nil {
		l.t.Errorf("client %d of %s: %v", n, who.name, err)
	}
	return c
}

// connect connects a client once: every other one writes its requests itself, the rest
// are mcp-go's, of both eras.
func (l *load) connect(who *tenant, n int) (conn, error) {
	ctx, cancel := context.WithTimeout(l.t.Context(), callLimit)
	defer cancel()
	c := newWebClient(l.server.url, who.token, n%4 == 2)
	foreign := who == l.hostile
	c.sees = func(body []byte) { l.sees(who, body, foreign) }
	if n%2 == 0 || foreign {
		err := c.hello(ctx)
		if err == nil {
			l.join(c.session, who)
		}
		return c, err
	}
	way := httpLegacy
	if n%4 == 3 {
		way = httpModern
	}
	other, err := dial(ctx, l.server.url, way, transport.WithHTTPHeaders(map[string]string{"Authorization": "Bearer " + who.token}))
	if err != nil {
		return c, err
	}
	return other, nil
}

// TestAttackT47_AttackT55_AttackT53_SoakManyPrincipalsAtOnce: honest clients of four
// principals work beside hostile ones of a fifth. Each sees its own and nothing else,
// nobody is refused but by a limit, the server stays quick and small, and nothing is left.
func TestAttackT47_AttackT55_AttackT53_SoakManyPrincipalsAtOnce(t *testing.T) {
	seconds, clients := times(t, "CAISSON_LOAD_SECONDS", 15), times(t, "CAISSON_LOAD_CLIENTS", 24)
	whole := clients >= 100
	sessions, pause := 2, 2*time.Second
	if whole {
		sessions, pause = 4, 5*time.Second
	}
	l := newLoad(t, sessions)
	conns := make([]conn, clients)
	each(clients, 4, func(i int) { conns[i] = l.client(l.of(i), i/loadTenants) })
	if t.Failed() {
		t.FailNow()
	}
	quiet, rss := l.server.descriptors(t), l.server.rss(t)
	over, sampled := make(chan struct{}), make(chan struct{})
	peak := sampleMemory(t, l.server, sampled)
	var all sync.WaitGroup
	for i, c := range conns {
		all.Go(func() { l.play(i, c, over, pause) })
	}
	<-time.After(time.Duration(seconds) * time.Second)
	close(over)
	all.Wait()
	close(sampled)
	l.report()
	p99, most := l.percentile("session_list", 99), <-peak
	t.Logf("%d clients, %d s: session_list %d times, p50 %v, p99 %v, slowest %v; %d MiB resident at the most, %d before",
		clients, seconds, len(l.times["session_list"]), l.percentile("session_list", 50), p99, l.percentile("session_list", 100), most>>20, rss>>20)
	if whole && p99 > loadP99 {
		t.Errorf("99 of 100 session_lists take up to %v, %v at most", p99, loadP99)
	}
	if most > loadMemory {
		t.Errorf("%d MiB resident", most>>20)
	}
	if l.wrong > 30 {
		t.Errorf("%d faults in all", l.wrong)
	}
	l.settle(conns, quiet)
	l.audited(filepath.Join(l.dir, "audit"))
}

// of is whose the ith client is: the first few are hostile.
func (l *load) of(i int) *tenant {
	if i < loadHostile {
		return l.hostile
	}
	return l.tenants[i%loadTenants]
}

// play lets a client do what it does until over is closed.
func (l *load) play(i int, c conn, over <-chan struct{}, pause time.Duration) {
	random, who := rand.New(rand.NewPCG(uint64(i), 1)), l.of(i)
	if who == l.hostile {
		h := &raider{webClient: c.(*webClient), witness: l.witness, who: who, rand: random, workspace: l.workspace, maxBody: loadBody << 20}
		h.raid(over, 60*time.Millisecond)
		return
	}
	w := &worker{conn: c, witness: l.witness, who: who, name: fmt.Sprintf("%s-client-%d", who.name, i), rand: random, places: l.places}
	w.work(over, pause, i/loadTenants%8 == 1)
}

// settle sees that what was begun is over, that the sessions are whose they were, and
// that the server has let go of all once they are destroyed.
func (l *load) settle(conns []conn, quiet int) {
	t := l.t
	for _, c := range conns {
		_ = c.close()
	}
	t.Logf("%d descriptors before", quiet)
	total := 0
	for _, n := range l.tenants {
		c := l.client(n, 0)
		ids := l.still(c, n)
		total += len(ids)
		for _, id := range n.sessions {
			if !slices.Contains(ids, id) {
				t.Errorf("%s has lost its session %s", n.name, id)
			}
		}
		eventually(t, 2*time.Minute, "no command of "+n.name+" runs", func() bool {
			var list struct{ Execs []execOut }
			r, err := attempt(t, c, "exec_list", args{})
			return err == nil && unmarshal(r, &list) == nil && !slices.ContainsFunc(list.Execs, func(x execOut) bool { return x.Status == "running" })
		})
		defer func() { _ = c.close() }()
	}
	if there := onStage(t).engine.of(t, l.server.instance); len(there) != total {
		t.Errorf("%d containers of %d sessions", len(there), total)
	}
	for _, n := range l.tenants {
		c := l.client(n, 0)
		for _, id := range l.still(c, n) {
			eventually(t, time.Minute, "a session is destroyed", func() bool { return gone(attempt(t, c, "session_destroy", args{"session_id": id})) })
		}
		if len(n.sessions) > 0 {
			eventually(t, time.Minute, "the workspace is deleted", func() bool { return gone(attempt(t, c, "workspace_delete", args{"workspace_key": l.workspace})) })
		}
		_ = c.close()
	}
	if left := onStage(t).engine.of(t, l.server.instance); len(left) != 0 {
		t.Errorf("%d containers left", len(left))
	}
	eventually(t, 60*time.Second, "descriptors are given back", func() bool {
		http.DefaultClient.CloseIdleConnections()
		return l.server.descriptors(t) <= quiet+2
	})
	t.Logf("%d descriptors, %d MiB resident afterwards; handles seen: %v", l.server.descriptors(t), l.server.rss(t)>>20, l.known())
}

// gone takes a call for done unless a limit is in its way.
func gone(r result, err error) bool { return err == nil && !r.IsError }

// still lists a principal's sessions, as soon as its limits let it.
func (l *load) still(c conn, n *tenant) []string {
	var ids []string
	eventually(l.t, time.Minute, "the sessions of "+n.name+" are listed", func() bool {
		r, err := attempt(l.t, c, "session_list", args{})
		var listed sessionsListed
		if err != nil || unmarshal(r, &listed) != nil {
			return false
		}
		ids = nil
		for _, s := range listed.Sessions {
			ids = append(ids, s.ID)
		}
		return true
	})
	return ids
}

// known counts the handles of each principal.
func (l *witness) known() map[string]int {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := map[string]int{}
	for owner := range maps.Values(l.seen) {
		n[owner.name]++
	}
	return n
}
