package e2e_test

import (
	"context"
	"strings"
	"syscall"
	"testing"
	"time"
)

const endsManifest = "tools:\n" + "%TOOLS%" + `toolkits:
  - {name: Once, tool_prefix: once, command: [caisson-test-server, decent]}
  - {name: Kept, tool_prefix: kept, command: [caisson-test-server, decent]}
execution_policy:
  rules:
    "e_*": {name: docker, options: {mode: ephemeral}, remote_timeout_seconds: 60}
    e_hangs: {name: docker, options: {mode: ephemeral}, remote_timeout_seconds: 15}
    once: {name: docker, options: {mode: ephemeral}, remote_timeout_seconds: 60}
    "*": docker
`

func endsTools() string {
	return strings.Replace(endsManifest, "%TOOLS%", command("e_works", "hostname")+command("e_fails", "exit 3")+command("e_crashes", "kill -9 $PPID")+
		command("e_hangs", "sleep 300")+command("e_floods", "yes")+command("w_one", "hostname")+command("w_hangs", "sleep 300"), 1)
}

// However an ephemeral call ends, its container is gone.
func TestTX11_TX18_TX20_AnEphemeralCallLeavesNothingHoweverItEnds(t *testing.T) {
	t.Parallel()
	v := serveTools(t, endsTools())
	a := join(t, v, httpLegacy)
	listing(t, a, "once_echo")
	listing(t, a, "kept_echo")
	warm := warmBox(t, v) // from the listing of the toolkit that is kept on
	none := func(how string) {
		t.Helper()
		eventually(t, 10*time.Second, "no container after a call that "+how, func() bool {
			boxes := the.engine.toolBoxes(t, v.instance)
			return len(boxes) == 0 || len(boxes) == 1 && boxes[0].ID == warm
		})
	}
	first, second := a.tool("e_works", args{}).text(), a.tool("e_works", args{}).text()
	if first == second {
		t.Errorf("two calls in %q", first)
	}
	none("works")
	for tool, how := range map[string]string{"e_fails": "fails", "e_crashes": "kills its worker", "e_hangs": "hangs", "e_floods": "floods"} {
		d := a.toolFails(tool, args{})
		if d.Status != "error" || d.Error == "" {
			t.Errorf("%s: %+v", tool, d)
		}
		none(how)
	}
	a.tool("once_put", args{"value": "x"})
	if got := a.tool("once_get", args{}).text(); got != "None" {
		t.Errorf("a toolkit's state after an ephemeral call: %q", got)
	}
	// A call whose client gives it up.
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	if _, err := a.call(ctx, "e_hangs", args{}); err == nil {
		t.Error("a call that was given up has an answer")
	}
	none("is given up")
	// And one under way when the server ends.
	go func() {
		_, _ = a.call(context.WithoutCancel(t.Context()), "once_slow", args{"steps": 3, "each": 20, "mark": "/tmp/mark"})
	}()
	eventually(t, 20*time.Second, "the last call runs", func() bool {
		return len(the.engine.toolBoxes(t, v.instance)) > 0 && strings.Contains(v.stderr.String(), "once")
	})
	if err := v.end(); err != nil {
		t.Error(err)
	}
	if left := the.engine.toolBoxes(t, v.instance); len(left) > 0 {
		t.Errorf("%d containers after a graceful end", len(left))
	}
}

// warmBox is the container that the warm rule has, by what runs in it.
func warmBox(t *testing.T, v *server) string {
	t.Helper()
	for _, b := range the.engine.toolBoxes(t, v.instance) {
		if top, err := the.engine.api.ContainerTop(t.Context(), b.ID, []string{"-eo", "pid,args"}); err == nil {
			for _, p := range top.Processes {
				if strings.Contains(strings.Join(p, " "), "--serve-resident") {
					return b.ID
				}
			}
		}
	}
	return ""
}

// A server that ends in good order takes its warm containers along; those of one that
// was killed are gone once the next one runs.
func TestTX08_TX23_AttackT60_WarmContainersEndWithTheirServer(t *testing.T) {
	t.Parallel()
	file := manifest(t, endsTools())
	v := start(t, launch{http: true, env: toolsEnv(file)})
	a := join(t, v, httpLegacy)
	first := a.tool("w_one", args{}).text()
	if n := len(the.engine.toolBoxes(t, v.instance)); n == 0 {
		t.Fatal("no warm container")
	}
	v.crash(t)
	if n := len(the.engine.toolBoxes(t, v.instance)); n == 0 {
		t.Fatal("the containers of a killed server are gone by themselves: the test shows nothing")
	}
	w := again(t, v, launch{http: true, env: toolsEnv(file)})
	b := join(t, w, httpLegacy)
	eventually(t, 20*time.Second, "the dead server's containers are gone", func() bool {
		for _, box := range the.engine.toolBoxes(t, v.instance) {
			if strings.HasPrefix(box.ID, first) {
				return false
			}
		}
		return true
	})
	if second := b.tool("w_one", args{}).text(); second == first {
		t.Errorf("the next server's tool runs in the dead one's container %s", first)
	}
	// The end does not wait for a call that hangs.
	go func() { _, _ = b.call(context.WithoutCancel(t.Context()), "w_hangs", args{}) }()
	eventually(t, 20*time.Second, "the call runs", func() bool { return strings.Contains(processes(t, w), "sleep 300") })
	began := time.Now()
	if err := w.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	w.code(t, 25*time.Second)
	took(t, began, 10*time.Second, "the end with a call under way")
	if left := the.engine.toolBoxes(t, v.instance); len(left) > 0 {
		t.Errorf("%d tool containers are left", len(left))
	}
}

// processes are the command lines in an instance's tool containers.
func processes(t *testing.T, v *server) string {
	t.Helper()
	var all strings.Builder
	for _, b := range the.engine.toolBoxes(t, v.instance) {
		if top, err := the.engine.api.ContainerTop(t.Context(), b.ID, []string{"-eo", "pid,args"}); err == nil {
			for _, p := range top.Processes {
				all.WriteString(strings.Join(p, " ") + "\n")
			}
		}
	}
	return all.String()
}
