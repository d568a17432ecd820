package worker_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"caisson/executor/wire"
)

// residence gives the arguments of warm mode with a folder of the test's own, and
// ends the resident with the test.
func residence(t *testing.T) []string {
	t.Helper()
	dir, err := os.MkdirTemp("", "cw") //nolint:usetesting // a socket's path is short
	if err != nil {
		t.Fatal(err)
	}
	args := []string{"--resident", "--resident-dir", filepath.Join(dir, "r")}
	t.Cleanup(func() {
		if out, err := exec.Command(binary, "--end-resident", "--resident-dir", args[2]).CombinedOutput(); err != nil {
			t.Errorf("end the resident: %v %s", err, out)
		}
		if _, err := os.Stat(filepath.Join(args[2], "socket")); err == nil {
			t.Error("the resident's socket is left")
		}
		_ = os.RemoveAll(dir)
	})
	return args
}

func textOf(t *testing.T, o outcome) string {
	t.Helper()
	var text string
	if err := json.Unmarshal(o.Result.Result, &text); err != nil {
		t.Fatalf("%s %s %s %s", o.Status, o.Error, o.Result.Result, o.stderr)
	}
	return text
}

func TestTX07_AServerLivesBetweenTheCallsOfWarmMode(t *testing.T) {
	warm := residence(t)
	kit(t, "decent", "put", map[string]any{"value": "seven"}, warm...).run(t).wants(t, wire.StatusSuccess, "kept")
	kit(t, "decent", "get", nil, warm...).run(t).wants(t, wire.StatusSuccess, "seven")
	kit(t, "decent", "get", nil).run(t).wants(t, wire.StatusSuccess, "None") // and without it does not
}

func TestTX07_FirstCallsAtTheSameTimeShareOneServer(t *testing.T) {
	warm := residence(t)
	var (
		all  sync.WaitGroup
		mu   sync.Mutex
		pids = map[string]int{}
	)
	for range 6 {
		c := kit(t, "decent", "pid", nil, warm...)
		e := c.envelope(t)
		cmd, stdout, stderr := c.command(t, e)
		all.Go(func() {
			_ = cmd.Run()
			o := read(e, cmd, stdout, stderr, time.Now())
			mu.Lock()
			defer mu.Unlock()
			pids[string(o.Result.Result)+o.Error]++
		})
	}
	all.Wait()
	if len(pids) != 1 {
		t.Errorf("servers: %v", pids)
	}
}

func TestTX05_AServerThatDiedIsStartedAgain(t *testing.T) {
	warm := residence(t)
	kit(t, "decent", "put", map[string]any{"value": "seven"}, warm...).run(t).wants(t, wire.StatusSuccess, "kept")
	o := kit(t, "decent", "exit", nil, warm...).run(t)
	o.wants(t, wire.StatusError, "exit status 7")
	o.wants(t, wire.StatusError, "last words")
	o = kit(t, "decent", "get", nil, warm...).run(t)
	o.wants(t, wire.StatusSuccess, "None")
	if !strings.Contains(o.stderr, "started again") {
		t.Errorf("the log has %q", o.stderr)
	}
}

func TestTX05_ACallEndsWithItsWorker(t *testing.T) {
	warm := residence(t)
	mark := filepath.Join(t.TempDir(), "mark")
	kit(t, "decent", "get", nil, warm...).run(t).wants(t, wire.StatusSuccess, "None")
	c := kit(t, "decent", "slow", map[string]any{"steps": 2, "each": 60, "mark": mark}, warm...)
	cmd, stdout, _ := c.command(t, c.envelope(t))
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	_ = stdout
	eventually(t, func() bool { text, _ := os.ReadFile(mark); return string(text) == "begun" })
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	eventually(t, func() bool { text, _ := os.ReadFile(mark); return string(text) == "cancelled" })
	kit(t, "decent", "get", nil, warm...).run(t).wants(t, wire.StatusSuccess, "None") // the server lives on
}

// sockets are the resident's: the one that it listens on, and one for each call.
func sockets(t *testing.T, dir string) int {
	t.Helper()
	text, err := os.ReadFile("/proc/net/unix")
	if err != nil {
		t.Fatal(err)
	}
	return strings.Count(string(text), filepath.Join(dir, "socket"))
}

func TestTX05_TheResidentHoldsNothingOfACall(t *testing.T) {
	warm := residence(t)
	c := kit(t, "decent", "pid", nil, warm...)
	c.run(t).wants(t, wire.StatusSuccess, "")
	pid := textOf(t, c.run(t))
	parent := strings.Fields(string(statOf(t, pid)))[1]
	for _, fd := range []string{"0", "1", "2"} {
		if to, err := os.Readlink("/proc/" + parent + "/fd/" + fd); err != nil || to != os.DevNull {
			t.Errorf("descriptor %s is %s, %v", fd, to, err)
		}
	}
	if fields := strings.Fields(string(statOf(t, parent))); fields[3] != parent {
		t.Errorf("the resident %s is in the session %s", parent, fields[3])
	}
}

// statOf is the line of a process from its state on.
func statOf(t *testing.T, pid string) []byte {
	t.Helper()
	text, err := os.ReadFile("/proc/" + pid + "/stat")
	if err != nil {
		t.Fatal(err)
	}
	return text[strings.LastIndexByte(string(text), ')')+1:]
}

func TestTX05_TheResidentEndsWithItsFolder(t *testing.T) {
	warm := residence(t)
	pid := textOf(t, kit(t, "decent", "pid", nil, warm...).run(t))
	if err := os.RemoveAll(warm[2]); err != nil {
		t.Fatal(err)
	}
	eventually(t, func() bool { return stateOf(pid) == "" || stateOf(pid) == "Z" })
}

func TestTX05_AResidentThatWasKilledIsStartedAgain(t *testing.T) {
	warm := residence(t)
	pid := textOf(t, kit(t, "decent", "pid", nil, warm...).run(t))
	parent := strings.Fields(string(statOf(t, pid)))[1]
	if out, err := exec.Command("kill", "-9", parent).CombinedOutput(); err != nil {
		t.Fatal(err, string(out))
	}
	// Its last thread dies a moment later, and with it the socket that still takes calls.
	eventually(t, func() bool { return sockets(t, warm[2]) == 0 })
	kit(t, "decent", "get", nil, warm...).run(t).wants(t, wire.StatusSuccess, "None")
}

func TestTX05_AFolderThatOthersMayEnterIsRefused(t *testing.T) {
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o777); err != nil { //nolint:gosec // that is the case
		t.Fatal(err)
	}
	o := kit(t, "decent", "get", nil, "--resident", "--resident-dir", dir).run(t)
	if o.code != 3 || !strings.Contains(o.Error, "not a folder of this user alone") {
		t.Errorf("exit %d %s", o.code, o.Error)
	}
}
