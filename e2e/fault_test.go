package e2e_test

import (
	"math/rand/v2"
	"net/http"
	"sync"
	"testing"
	"time"
)

// assault makes calls of every kind through a bad link, some at a time, and holds what
// was acknowledged against what is there once the link is good again.
type assault struct {
	*ledger
	a      *actor
	server *server
	proxy  *faultProxy
}

func newAssault(t *testing.T, env ...string) *assault {
	t.Helper()
	s := onStage(t)
	proxy := through(t, s.engine.vars)
	v, a := serveOn(t, append(append(proxy.env, "SANDBOX_DOCKER_DEFAULT_IMAGE=busybox:latest", "SANDBOX_DOCKER_PULL_POLICY=never"), env...))
	return &assault{newLedger(t), a, v, proxy}
}

// session makes one that must be there, and ends it with the test.
func (s *assault) session() *held {
	s.t.Helper()
	h := newHeld(s.a.session(args{"memory_mb": 64}), "", time.Hour)
	s.held = append(s.held, h)
	return h
}

// strike makes n calls, four at a time: commands, uploads, and sessions made and ended.
// Each of a test has a seed of its own.
func (s *assault) strike(h *held, n int, seed uint64) {
	s.t.Helper()
	var all sync.WaitGroup
	next := make(chan int, n)
	for i := range n {
		next <- i
	}
	close(next)
	for worker := range 4 {
		random := rand.New(rand.NewPCG(seed, uint64(worker)))
		all.Go(func() {
			for i := range next {
				switch i % 4 {
				case 0, 1:
					s.exec(s.a.conn, never, h, random)
				case 2:
					s.upload(s.a.conn, never, h, random)
				default:
					if fresh, ok := s.create(s.a.conn, never, time.Hour, ""); ok {
						s.destroy(s.a.conn, never, fresh)
					}
				}
			}
		})
	}
	all.Wait()
}

// settle waits for what was struck to be as it was, and looks at it.
func (s *assault) settle(h *held) {
	s.t.Helper()
	s.proxy.tell("clear")
	s.a.well(20*time.Second, h.id)
	s.verify(s.a.conn, h)
	for _, other := range s.all() {
		if other != h {
			// Its end was not acknowledged: it is asked for again.
			if !s.destroy(s.a.conn, never, other) {
				s.t.Errorf("session %s cannot be ended over a good link", other.id)
			}
		}
	}
	eventually(s.t, 30*time.Second, "no session is left but one", func() bool { return len(s.a.list()) == 1 })
}

// creates are the containers of sessions that the engine was asked to make.
func (s *assault) creates() int { return s.proxy.count("POST", "/containers/create") }

// badLinks are the ways in which a link can be bad all the time, and how many calls
// are made through each in make test.
var badLinks = map[string]struct {
	rules []string
	calls int
}{
	"2 s ± 1 s late":     {[]string{"* ** delay(1000-3000)"}, 4},
	"64 KB/s":            {[]string{"* ** rate(65536)"}, 8},
	"slices of one byte": {[]string{"* ** slice"}, 8},
	"500":                {[]string{"POST /containers/create 1*error(500)", "POST /containers/*/exec 2*off->2*error(500)->1*off->1*error(500)", "POST /exec/*/start 3*off->1*error(500)", "GET /exec/*/json 1*error(500)", "DELETE ** 1*error(500)"}, 12},
	"502":                {[]string{"POST /containers/*/start 1*error(502)", "POST /containers/*/exec 1*off->2*error(502)", "POST /exec/*/start 1*error(502)", "PUT ** 1*error(502)"}, 12},
	"503":                {[]string{"POST /containers/create 1*off->1*error(503)", "POST /exec/*/start 2*off->2*error(503)", "GET ** 2*error(503)"}, 12},
	"truncated JSON":     {[]string{"POST /containers/create 1*truncate(9)", "POST /containers/*/exec 2*truncate(5)->2*off->1*truncate(1)", "GET /exec/*/json 2*truncate(30)", "GET /containers/*/json 2*truncate(200)"}, 12},
	"answers cut off":    {[]string{"POST /containers/create 1*cut(9)", "POST /containers/*/exec 1*off->2*cut(5)", "POST /exec/*/start 2*off->1*cut(10)->1*off->1*cut(60)", "GET /containers/*/json 1*cut(100)"}, 12},
	"answers lost":       {[]string{"POST /containers/create 1*drop", "POST /containers/*/start 1*drop", "POST /containers/*/exec 1*off->1*drop", "POST /exec/*/start 2*off->1*drop", "DELETE ** 1*drop"}, 12},
	"resets":             {[]string{"POST /containers/create 1*reset", "POST /containers/*/exec 1*off->1*reset", "POST /exec/*/start 2*off->2*reset", "GET ** 1*off->1*reset"}, 12},
}

// TestAttackT64 makes calls through every kind of bad link: each is right or fails in
// a way that the contract knows, nothing is done twice and nothing is left.
func TestAttackT64_ABadLinkGivesTypedFailuresAndNeverWrongResults(t *testing.T) {
	t.Parallel()
	for name, link := range badLinks {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newAssault(t)
			h := s.session()
			s.a.well(10*time.Second, h.id)
			s.proxy.tell("forget")
			for seed := range uint64(long(1, 8)) {
				s.proxy.rule(link.rules...)
				s.strike(h, link.calls, seed)
			}
			if asked, sent := s.deeds, s.creates(); sent > asked {
				t.Errorf("%d containers for %d calls", sent, asked)
			}
			s.settle(h)
			t.Logf("%d calls, failed: %v", s.deeds, s.failures)
		})
	}
}

// Every connection is reset again and again under load, and then the idle ones:
// a call that meets a connection that went stale is right or fails as typed.
func TestAttackT64_BugEN06_ResetsAndStaleConnectionsHurtNoCall(t *testing.T) {
	t.Parallel()
	s := newAssault(t)
	h := s.session()
	s.a.well(10*time.Second, h.id)
	quiet := s.server.descriptors(t)
	stop, broke := make(chan struct{}), make(chan int)
	go func() {
		n := 0
		for {
			select {
			case <-stop:
				broke <- n
				return
			case <-time.After(long(1500*time.Millisecond, 5*time.Second)):
				s.proxy.tell("break")
				n++
			}
		}
	}()
	s.strike(h, int(long(24, 400)), 0)
	close(stop)
	if n := <-broke; n == 0 {
		t.Error("no connection was reset")
	}
	s.settle(h)
	random := rand.New(rand.NewPCG(7, 7))
	for range 5 {
		s.a.sh(h.id, "true")
		eventually(t, 10*time.Second, "a connection is idle", func() bool { return s.proxy.tell("open") != "0" })
		s.proxy.tell("break")
		s.exec(s.a.conn, never, h, random)
	}
	s.settle(h)
	t.Logf("%d calls, failed: %v", s.deeds, s.failures)
	// Idle connections to the engine are kept for half a minute.
	eventually(t, 60*time.Second, "descriptors are given back", func() bool {
		http.DefaultClient.CloseIdleConnections()
		return s.server.descriptors(t) <= quiet+5
	})
}

// TestAttackT65 has an engine that takes calls, or no more than connections, and never
// answers: every call ends in its time, the server says that it is not ready, and nothing
// is done twice once the engine answers again.
func TestAttackT65_AnEngineThatNeverAnswersHangsNobody(t *testing.T) {
	t.Parallel()
	for name, stop := range map[string][2]string{"calls": {"rule * ** hang", "clear"}, "connections": {"freeze", "thaw"}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newAssault(t)
			h := s.session()
			s.a.well(10*time.Second, h.id)
			s.proxy.tell("forget")
			s.proxy.tell(stop[0])
			var calls sync.WaitGroup
			for _, c := range []struct {
				codes, tool string
				args        args
			}{
				{"engine_unavailable unknown_outcome", "exec", args{"session_id": h.id, "command": "true", "shell": "sh"}},
				{"engine_unavailable unknown_outcome", "upload", args{"session_id": h.id, "path": "x", "content": "x"}},
				{"engine_unavailable", "download", args{"session_id": h.id, "path": "x"}},
				{"engine_unavailable unknown_outcome", "session_create", args{}},
			} {
				calls.Go(func() { s.a.typed(deedLimit, c.codes, c.tool, c.args) })
			}
			calls.Go(func() { unready(t, s.server, 10*time.Second) })
			calls.Wait()
			s.proxy.tell(stop[1])
			s.a.well(10*time.Second, h.id)
			ready(t, s.server, 10*time.Second)
			if n := s.creates(); n > 1 {
				t.Errorf("%d containers for one call", n)
			}
			eventually(t, 40*time.Second, "the session that nobody got is gone", func() bool { return len(s.a.list()) == 1 })
		})
	}
}
