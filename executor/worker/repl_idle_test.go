package worker

import (
	"log/slog"
	"os"
	"strings"
	"testing"
	"time"
)

func TestTX27_AnIdleREPLEndsAndTheNextCallIsTold(t *testing.T) {
	c := newChildren(slog.New(slog.DiscardHandler))
	defer c.close()
	all := newREPLs(c, true)
	defer all.close()
	run := func(code string) string {
		one, err := all.find(t.Context(), "k")
		if err != nil {
			t.Fatal(err)
		}
		defer func() { one.used = time.Now(); <-one.turn }()
		r, err := all.run(t.Context(), one, code, time.Minute)
		if err != nil {
			t.Fatal(err)
		}
		return string(r.Result)
	}
	run("v = 1")
	all.expire(time.Now().Add(29 * time.Minute))
	if got := run("v"); !strings.Contains(got, `"value":"1"`) || strings.Contains(got, "note") {
		t.Errorf("before its time: %s", got)
	}
	all.expire(time.Now().Add(31 * time.Minute))
	if below := descendants(os.Getpid()); len(below) != 0 {
		t.Errorf("processes %v are left", below)
	}
	if got := run("'v' in globals()"); !strings.Contains(got, `"value":"False"`) || !strings.Contains(got, "not been used for 30m0s; its variables are lost: v") {
		t.Errorf("after it: %s", got)
	}
	if got := run("1"); strings.Contains(got, "note") {
		t.Errorf("told twice: %s", got)
	}
}
