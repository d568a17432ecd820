package e2e_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// attempt is a call whose failure is the caller's to judge.
func attempt(t *testing.T, c conn, tool string, arguments args) (result, error) {
	t.Helper()
	r, err := c.call(t.Context(), tool, arguments)
	if err == nil && r.IsError {
		err = errors.New(r.text())
	}
	return r, err
}

// sessionID reads the handle from a session that a tool returned.
func sessionID(r result) string {
	var s struct {
		ID string `json:"session_id"`
	}
	_ = json.Unmarshal(r.Structured, &s) // an empty handle fails whoever uses it
	return s.ID
}

// each runs f for the numbers below n, some of them at a time.
func each(n, together int, f func(i int)) {
	work := make(chan int, n)
	for i := range n {
		work <- i
	}
	close(work)
	var all sync.WaitGroup
	for range together {
		all.Go(func() {
			for i := range work {
				f(i)
			}
		})
	}
	all.Wait()
}

// TestAttackT76_SoakManyLivesLeaveNothing: sessions that come and go leave the server as
// it began.
func TestAttackT76_SoakManyLivesLeaveNothing(t *testing.T) {
	t.Parallel()
	total := times(t, "CAISSON_LIVES", 100)
	v := start(t, launch{plain: true, http: true, env: []string{"GOTRACEBACK=all"}})
	a := join(t, v, httpLegacy)
	life := func(i int) {
		r, err := attempt(t, a.conn, "session_create", args{})
		if err != nil {
			t.Errorf("create %d: %v", i, err)
			return
		}
		id := sessionID(r)
		var x execOut
		r, err = attempt(t, a.conn, "exec", args{"session_id": id, "command": fmt.Sprint("echo ", i)})
		if err == nil {
			err = json.Unmarshal(r.Structured, &x)
		}
		if err != nil || x.Stdout != fmt.Sprintln(i) {
			t.Errorf("exec %d: %v %s", i, err, x)
		}
		r, err = attempt(t, a.conn, "session_destroy", args{"session_id": id})
		if err != nil || !strings.Contains(r.text(), id) {
			t.Errorf("destroy %d: %v %s", i, err, r.text())
		}
	}
	each(12, 6, life) // what is made once is there now
	fds, rss := v.descriptors(t), v.rss(t)
	each(total, 6, life)
	eventually(t, 60*time.Second, "descriptors are given back", func() bool {
		http.DefaultClient.CloseIdleConnections()
		return v.descriptors(t) <= fds+2
	})
	now := v.rss(t)
	t.Logf("%d lives: %d MiB resident, %d before", total, now>>20, rss>>20)
	if now > rss+64<<20 {
		t.Errorf("%d MiB resident, %d before", now>>20, rss>>20)
	}
	if left := onStage(t).engine.of(t, v.instance); len(left) != 0 {
		t.Errorf("%d containers left", len(left))
	}
	if most, n := fresh(t), goroutines(t, v, a); n > most+2 {
		t.Errorf("%d goroutines, %d in a fresh server", n, most)
	}
}

func TestBugLC06_AttackT63_FiftyCreatesOfOneWorkspace(t *testing.T) {
	t.Parallel()
	v := start(t, launch{http: true})
	a := join(t, v, httpLegacy)
	key := "one-" + v.instance
	var mu sync.Mutex
	ids := map[string]int{}
	each(50, 50, func(int) {
		r, err := attempt(t, a.conn, "session_create", args{"workspace_key": key})
		mu.Lock()
		defer mu.Unlock()
		switch code := r.code(); {
		case err == nil:
			ids[sessionID(r)]++
		case code != "busy" && code != "workspace_in_use":
			t.Errorf("%v", err)
		}
	})
	if len(ids) != 1 || len(onStage(t).engine.of(t, v.instance)) != 1 {
		t.Errorf("sessions %v", ids)
	}
	for id := range ids {
		for range 3 { // destroying is always said to have ended
			a.ok("session_destroy", args{"session_id": id})
		}
	}
	a.ok("workspace_delete", args{"workspace_key": key})
}

// A workspace is deleted at once after a session that had a command running in it.
func TestBugVO01_AWorkspaceIsDeletedRightAfterItsSession(t *testing.T) {
	t.Parallel()
	v := start(t, launch{http: true})
	a := join(t, v, httpLegacy)
	each(50, 4, func(i int) {
		key := fmt.Sprintf("brief-%d-%s", i, v.instance)
		r, err := attempt(t, a.conn, "session_create", args{"workspace_key": key})
		if err != nil {
			t.Errorf("create: %v", err)
			return
		}
		id := sessionID(r)
		for _, c := range []struct {
			tool string
			args args
		}{
			{"exec", args{"session_id": id, "command": "sleep 600", "wait_seconds": 0}},
			{"session_destroy", args{"session_id": id}},
			{"workspace_delete", args{"workspace_key": key}},
		} {
			if _, err := attempt(t, a.conn, c.tool, c.args); err != nil {
				t.Errorf("%s: %v", c.tool, err)
			}
		}
		if text := a.ok("workspace_list", args{}).text(); strings.Contains(text, key) {
			t.Errorf("it is still there: %s", clip(text))
		}
	})
	if left := onStage(t).engine.volumesOf(t, v.instance); len(left) != 0 {
		t.Errorf("volumes left: %v", left)
	}
}

// Sessions of one tier share its network, so that many do not use up the addresses that
// the engine has for networks, about 30 of them.
func TestBugNW03_FortySessionsOfATierAreOneNetwork(t *testing.T) {
	t.Parallel()
	l := launch{http: true, env: []string{"SANDBOX_DOCKER_MAX_SESSIONS=64", "SANDBOX_DOCKER_MAX_SESSIONS_PER_OWNER=64"}}
	v := start(t, l)
	forty := func(a *actor) []string {
		var mu sync.Mutex
		var ids []string
		each(40, 4, func(int) {
			r, err := attempt(t, a.conn, "session_create", args{"network": "internal", "memory_mb": 64})
			if err != nil {
				t.Errorf("create: %v", err)
				return
			}
			mu.Lock()
			defer mu.Unlock()
			ids = append(ids, sessionID(r))
		})
		return ids
	}
	destroy := func(a *actor, ids []string) {
		each(len(ids), 4, func(i int) {
			if _, err := attempt(t, a.conn, "session_destroy", args{"session_id": ids[i]}); err != nil {
				t.Errorf("destroy: %v", err)
			}
		})
	}
	a := join(t, v, httpLegacy)
	destroy(a, forty(a))
	ids := forty(a)
	v.crash(t)
	destroy(join(t, again(t, v, l), httpLegacy), ids)
	if err := onStage(t).engine.networks(t.Context()); err != nil {
		t.Error(err)
	}
	if left := onStage(t).engine.of(t, v.instance); len(left) != 0 {
		t.Errorf("%d containers left", len(left))
	}
}

// TestTTL09_SoakTwoServersOnOneEngine: one of them is restarted five times, by signal and
// by kill, and neither loses or sees a session of the other.
func TestTTL09_SoakTwoServersOnOneEngine(t *testing.T) {
	t.Parallel()
	const restarts = 5
	span := time.Duration(times(t, "CAISSON_TWO_SERVERS_SECONDS", 25)) * time.Second
	steady, restless := start(t, launch{http: true}), start(t, launch{http: true})
	a, b := join(t, steady, httpLegacy), join(t, restless, httpLegacy)
	mine, theirs := []string{a.session(nil), a.session(nil)}, []string{b.session(nil), b.session(nil)}
	for _, id := range theirs {
		b.sh(id, "echo "+id+" > mark")
	}
	over := make(chan struct{})
	var load sync.WaitGroup
	for i, id := range mine {
		load.Go(func() {
			for n := 0; ; n++ {
				select {
				case <-over:
					return
				default:
				}
				r, err := attempt(t, a.conn, "exec", args{"session_id": id, "command": fmt.Sprintf("echo %d; exit %d", n, i)})
				var x execOut
				if err == nil {
					err = json.Unmarshal(r.Structured, &x)
				}
				if err != nil || !x.exited(i) || x.Stdout != fmt.Sprintln(n) {
					t.Errorf("the steady server's command: %v %s", err, x)
				}
			}
		})
	}
	for n := range restarts {
		for began := time.Now(); time.Since(began) < span/restarts; {
			for _, id := range theirs {
				if got := b.sh(id, "cat mark"); got != id+"\n" {
					t.Errorf("after %d restarts: %q", n, got)
				}
			}
			if got := len(into[sessionsListed](t, a.ok("session_list", nil)).Sessions); got != len(mine) {
				t.Errorf("the steady server lists %d sessions", got)
			}
			if got := len(into[sessionsListed](t, b.ok("session_list", nil)).Sessions); got != len(theirs) {
				t.Errorf("after %d restarts %d sessions are listed", n, got)
			}
		}
		if n%2 == 0 {
			restless.crash(t)
		} else if err := restless.cmd.Process.Signal(syscall.SIGTERM); err != nil {
			t.Fatal(err)
		}
		restless.code(t, 25*time.Second)
		restless = again(t, restless, launch{http: true})
		b = join(t, restless, httpLegacy)
	}
	close(over)
	load.Wait()
}

type sessionsListed struct {
	Sessions []struct {
		ID string `json:"session_id"`
	} `json:"sessions"`
}
