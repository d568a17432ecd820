package worker

import (
	"fmt"
	"log/slog"
	"os"
	"strings"
	"sync"
	"testing"
	"time"
)

// room is the REPLs of a host, without the host.
func room(t *testing.T) *repls {
	t.Helper()
	c := newChildren(slog.New(slog.DiscardHandler))
	t.Cleanup(c.close)
	all := newREPLs(c, true)
	t.Cleanup(all.close)
	return all
}

// turn gives a REPL and its turn. It is given back by the function, and at the test's end:
// the REPLs' own end waits for it.
func turn(t *testing.T, all *repls, key string) (one *repl, back func()) {
	t.Helper()
	one, err := all.find(t.Context(), key)
	if err != nil {
		t.Fatal(err)
	}
	back = sync.OnceFunc(func() { <-one.turn })
	t.Cleanup(back)
	return one, back
}

// runIn is a call in the REPL of that key.
func runIn(t *testing.T, all *repls, key, code string) string {
	t.Helper()
	one, back := turn(t, all, key)
	defer func() { one.used = time.Now(); back() }()
	r, err := all.run(t.Context(), one, code, time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	return string(r.Result)
}

func TestTX27_TheREPLThatIsIdleForLongestMakesRoom(t *testing.T) {
	all := room(t)
	for i := range mostREPLs {
		runIn(t, all, fmt.Sprint(i), fmt.Sprintf("v%d = 1", i))
	}
	_, back := turn(t, all, "0") // the oldest of all, but at a call
	before := len(descendants(os.Getpid()))
	if got := runIn(t, all, "new", "2"); !strings.Contains(got, `"value":"2"`) || strings.Contains(got, "note") {
		t.Errorf("one more: %s", got)
	}
	if after := len(descendants(os.Getpid())); after != before || len(all.all) != mostREPLs {
		t.Errorf("%d processes, of %d; %d REPLs", after, before, len(all.all))
	}
	back()
	for _, key := range []string{"0", "2"} {
		if got := runIn(t, all, key, "v"+key); !strings.Contains(got, `"value":"1"`) {
			t.Errorf("%s has lost what it had: %s", key, got)
		}
	}
	got := runIn(t, all, "1", "'v1' in globals()")
	if !strings.Contains(got, `"value":"False"`) || !strings.Contains(got, "ended to make room for another: a container runs 16 REPLs") || !strings.Contains(got, "its variables are lost: v1") {
		t.Errorf("the one that made room: %s", got)
	}
	if got := runIn(t, all, "1", "1"); strings.Contains(got, "note") {
		t.Errorf("told twice: %s", got)
	}
}

func TestTX27_AREPLIsRefusedWhereEachIsAtACall(t *testing.T) {
	all := room(t)
	var busy []func()
	for i := range mostREPLs {
		_, back := turn(t, all, fmt.Sprint(i))
		busy = append(busy, back)
	}
	if _, err := all.find(t.Context(), "new"); err == nil || !strings.Contains(err.Error(), "each of them is at a call; call again") {
		t.Errorf("one more: %v", err)
	}
	for _, back := range busy {
		back()
	}
	turn(t, all, "new")
}

// What a call has left to tell outlives the REPL that makes room before it is told.
func TestTX27_WhatIsNotToldYetOutlivesTheREPL(t *testing.T) {
	all := room(t)
	for _, end := range []func(){
		func() { all.expire(time.Now().Add(time.Hour)) },
		func() {
			for i := range mostREPLs {
				_, back := turn(t, all, fmt.Sprint(i))
				back()
			}
		},
	} {
		one, back := turn(t, all, "k")
		one.lost, one.inner = "the Python process was ended when the last call was cancelled", nil
		back()
		end()
		if all.all["k"] != nil {
			t.Fatal("the REPL is still there")
		}
		if got := runIn(t, all, "k", "1"); !strings.Contains(got, "when the last call was cancelled") {
			t.Errorf("it is forgotten: %s", got)
		}
		if one.inner != nil {
			t.Error("a REPL that is gone was used")
		}
		all.expire(time.Now().Add(time.Hour))
		clear(all.lost)
	}
}
