package e2e_test

import (
	"strings"
	"sync"
	"testing"
	"time"
)

// oneRule are tools of one rule, and what they share.
const oneRule = `tools:
%TOOLS%execution_policy: {rules: {"w_*": {name: docker, remote_timeout_seconds: 60}, w_hang: {name: shared, remote_timeout_seconds: 4}, w_after: shared}}
executors: {shared: {name: docker}}
`

func warmTools() string {
	return strings.Replace(oneRule, "%TOOLS%", command("w_one", "hostname")+command("w_two", "hostname; echo kept > /tmp/kept")+command("w_three", "hostname; cat /tmp/kept")+
		command("w_hang", "sleep 300")+command("w_after", "hostname; cat /proc/[0-9]*/cmdline | tr '\\0' ' ' | grep -c '[s]leep 300'; true"), 1)
}

// Tools of one rule share one container, however many first calls come at once,
// and what one leaves in it the others find.
func TestTX01_TX05_TX07_TX10_TX21_POL11_ThreeToolsOfOneRuleShareOneContainer(t *testing.T) {
	t.Parallel()
	v := serveTools(t, warmTools())
	a := join(t, v, httpLegacy)
	var wait sync.WaitGroup
	got := make([]result, 9)
	for i := range got {
		wait.Go(func() {
			got[i], _ = a.call(t.Context(), []string{"w_one", "w_two", "w_one"}[i%3], args{})
		})
	}
	wait.Wait()
	boxes := the.engine.toolBoxes(t, v.instance)
	if len(boxes) != 1 {
		t.Fatalf("%d containers for tools of one rule", len(boxes))
	}
	for _, r := range got {
		d := into[declared](t, r)
		if m := d.Metadata; d.Status != "success" || !strings.HasPrefix(boxes[0].ID, d.text()) || m.Executor != "docker" || m.Mode != "warm" || m.Rule != "w_*" || m.Container == "" || m.ExecID == "" || m.DurationMS <= 0 {
			t.Errorf("%+v %s", d, clip(r.text()))
		}
	}
	if got := a.tool("w_three", args{}).text(); !strings.HasSuffix(got, "kept") {
		t.Errorf("what a call left in the container: %q", got)
	}
	if r := a.ok("session_list", nil); strings.Contains(string(r.Structured), `"session_id"`) {
		t.Errorf("a tool's container is shown as a session: %s", r.Structured)
	}
	if n := len(the.engine.toolBoxes(t, v.instance)); n != 1 {
		t.Errorf("%d containers in the end", n)
	}
}

// A call that hangs is cut at its timeout, and the next one of its rule works, in
// a container that is fresh.
func TestTX09_TX20_TX22_AHangingCallIsCutAndTheNextOneWorks(t *testing.T) {
	t.Parallel()
	v := serveTools(t, warmTools())
	a := join(t, v, httpModern)
	first := a.tool("w_after", args{}).text()
	began := time.Now()
	d := a.toolFails("w_hang", args{})
	took(t, began, 10*time.Second, "a call with a timeout of 4 s")
	if d.Status != "error" || d.Metadata.Failure != "timeout" || !strings.Contains(d.Error, "did not finish within 4 s") {
		t.Errorf("%+v", d)
	}
	next := a.tool("w_after", args{}).text()
	id, others, _ := strings.Cut(next, "\n")
	if strings.HasPrefix(first, id) || others != "0" {
		t.Errorf("the next call ran in %q, the first in %q", next, first)
	}
	eventually(t, 10*time.Second, "the container of the call that hung is gone", func() bool { return len(the.engine.toolBoxes(t, v.instance)) == 1 })
}
