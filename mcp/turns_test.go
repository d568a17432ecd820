package mcp_test

import (
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"caisson/mcp"
)

// One owner's searches never have all the places, where there are several.
func TestAttackT53_SearchesOfOneOwnerLeavePlacesFree(t *testing.T) {
	for processors, want := range map[int][2]int{1: {1, 1}, 2: {1, 1}, 4: {2, 1}, 8: {4, 3}, 64: {32, 31}} {
		all, each := mcp.NewSearches(processors).Places()
		if all != want[0] || each != want[1] {
			t.Errorf("%d processors: %d places, %d for one", processors, all, each)
		}
	}
	synctest.Test(t, func(t *testing.T) {
		s := mcp.NewSearches(8)
		over := make(chan struct{})
		var now, most atomic.Int64
		var work sync.WaitGroup
		for range 200 {
			work.Go(func() {
				rest, ok := s.Begin("hostile", nil)
				if n := now.Add(1); n > most.Load() {
					most.Store(n)
				}
				<-over
				now.Add(-1)
				rest()
				if !ok {
					t.Error("no place, and nothing was over")
				}
			})
		}
		synctest.Wait()
		if most.Load() != 3 {
			t.Errorf("%d searches of one owner at a time", most.Load())
		}
		if _, ok := s.Begin("other", nil); !ok {
			t.Error("the other got no place")
		}
		close(over)
		work.Wait()
		if most.Load() != 3 {
			t.Errorf("%d searches of one owner at a time", most.Load())
		}
	})
}

// Where there is one place, owners have it in turn, however many searches each has.
func TestAttackT53_SearchesTakeTurnsByOwner(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := mcp.NewSearches(1)
		rest, _ := s.Begin("hostile", nil)
		var mu sync.Mutex
		var order []string
		var work sync.WaitGroup
		wait := func(owner string) {
			work.Go(func() {
				rest, _ := s.Begin(owner, nil)
				mu.Lock()
				order = append(order, owner)
				mu.Unlock()
				rest()
			})
			synctest.Wait()
		}
		for range 100 {
			wait("hostile")
		}
		for range 3 {
			wait("one")
			wait("two")
		}
		gone := make(chan struct{})
		work.Go(func() {
			if _, ok := s.Begin("one", gone); ok {
				t.Error("a search that was over got a place that was taken")
			}
		})
		synctest.Wait()
		close(gone)
		synctest.Wait()
		rest()
		work.Wait()
		if got := strings.Join(order[:9], " "); got != "hostile one two hostile one two hostile one two" || len(order) != 106 {
			t.Errorf("%d turns: %s", len(order), got)
		}
		if _, ok := s.Begin("hostile", gone); !ok {
			t.Error("the place is lost")
		}
	})
}

// A long search gives its place up in between.
func TestAttackT53_ALongSearchLetsOthersHaveTheirTurn(t *testing.T) {
	spool := numbers(t, 1000)
	synctest.Test(t, func(t *testing.T) {
		s := mcp.NewSearches(1)
		turns := 0
		var work sync.WaitGroup
		found, _, cut := s.Grep(spool, "^1000$", func() bool {
			<-time.After(time.Millisecond) // what a costly match takes
			if turns++; turns == 10 {
				work.Go(func() {
					rest, _ := s.Begin("other", nil)
					if turns > 120 {
						t.Errorf("the other waited for %d matches", turns)
					}
					turns = 1000
					rest()
				})
			}
			return false
		})
		work.Wait()
		if found != "1000\n" || cut || turns < 1000 {
			t.Errorf("%q, cut %v, %d turns", found, cut, turns)
		}
	})
}

// TestAttackT53_SearchesWaitNoLongerThanTheirCalls lets others have all the turns: every
// way to search waits for its own, is answered in time all the same, and misses nothing.
func TestAttackT53_SearchesWaitNoLongerThanTheirCalls(t *testing.T) {
	r := newRig(t)
	c := r.dial("inprocess", legacy)
	running := c.ok("exec", args{"command": "echo one; echo two; sleep 1000", "wait_for": "two"}).str("exec_id")
	over := c.ok("exec", args{"command": "echo one"}).str("exec_id")
	all, _ := r.server.Searches().Places()
	var rests []func()
	for i := range all {
		rest, ok := r.server.Searches().Begin(fmt.Sprint("other", i), nil)
		if !ok {
			t.Fatal("no place")
		}
		rests = append(rests, rest)
	}
	r.server.Hurry(500*time.Millisecond, time.Second, time.Second)
	got := c.ok("exec_output", args{"exec_id": running, "stdout_offset": 0, "grep": "two"})
	if got.str("stdout") != "" || got.num("stdout_next") != 0 || !strings.Contains(got.noteCodes(), "grep_cut") {
		t.Errorf("grep: %v", got.fields)
	}
	if got = c.ok("exec_output", args{"exec_id": running, "stdout_offset": 0, "wait_seconds": 600, "wait_for": "two"}); got.str("status") != "running" || got.noteCodes() != "wait_cut" {
		t.Errorf("exec_output, wait_for: %v", got.fields)
	}
	if got = c.ok("exec", args{"command": "echo one; sleep 1000", "wait_seconds": 30, "wait_for": "one"}); got.str("status") != "running" || got.noteCodes() != "wait_cut" {
		t.Errorf("exec, wait_for: %v", got.fields)
	}
	// What has ended is answered at once: nobody needs a match any more.
	r.server.Hurry(45*time.Second, time.Second, time.Second)
	began := time.Now()
	if got = c.ok("exec_output", args{"exec_id": over, "stdout_offset": 0, "wait_seconds": 600, "wait_for": "never"}); got.str("stdout") != "one\n" || time.Since(began) > 20*time.Second {
		t.Errorf("after %v: %v", time.Since(began), got.fields)
	}
	for _, rest := range rests {
		rest()
	}
	if got = c.ok("exec_output", args{"exec_id": running, "stdout_offset": 0, "grep": "two"}); got.str("stdout") != "two\n" || got.noteCodes() != "" {
		t.Errorf("grep in its turn: %v", got.fields)
	}
	began = time.Now()
	if got = c.ok("exec_output", args{"exec_id": running, "stdout_offset": 0, "wait_seconds": 40, "wait_for": "two"}); got.noteCodes() != "" || time.Since(began) > 20*time.Second {
		t.Errorf("wait_for in its turn, after %v: %v", time.Since(began), got.fields)
	}
}
