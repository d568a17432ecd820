package docker

import (
	"strings"
	"testing"
	"time"

	"caisson/sandbox"
)

// TestBugEX05_AttackT13_D24_SessionsUnderAnotherRuntime runs what depends on the runtime
// under crun, which
// the development engine has beside runc: process 1, commands and their codes, the
// refusals of a start, signals, the cap of processes, the evidence of a kill for memory.
func TestBugEX05_AttackT13_D24_SessionsUnderAnotherRuntime(t *testing.T) {
	t.Parallel()
	cfg := engine(t)
	cfg.Runtime = "crun"
	p := newProvider(t, cfg)
	spec := specOf("")
	spec.MemoryMB, spec.Pids = ptr(int64(64)), ptr(int64(40))
	s := create(t, p, spec)
	if got := inspect(t, p, s).HostConfig.Runtime; got != "crun" {
		t.Errorf("runtime %q", got)
	}
	if got := sh(t, s, "grep -E '^(CapEff|NoNewPrivs|Seccomp):' /proc/self/status | tr -d '\\t\\n'"); got != "CapEff:0000000000000000NoNewPrivs:1Seccomp:2" {
		t.Errorf("a command has %q", got)
	}
	if r := run(t, s, shell("cat; echo err >&2; exit 7")); r.code() != 7 || r.stderr != "err\n" || !r.OutputComplete {
		t.Errorf("%v, code %d, %q, complete %v", r.Status, r.code(), r.stderr, r.OutputComplete)
	}
	for cwd, says := range map[string]string{"/no/such/place": "no such directory", "/etc/passwd": "not a directory"} {
		elsewhere := shell("pwd")
		elsewhere.Cwd = cwd
		_, err := start(t, s, elsewhere)
		wantError(t, err, sandbox.KindInvalid, "cwd", says)
	}
	timed := sandbox.ExecSpec{Argv: []string{"sleep", "60"}, Timeout: time.Second}
	if r := run(t, s, timed); r.Status != sandbox.StatusTimedOut {
		t.Errorf("at its timeout: %v", r.Status)
	}
	e := mustStart(t, s, shell("sleep 300 & echo on; sleep 300"))
	eventually(t, "output", func() bool { return output(t, e, sandbox.Stdout) == "on\n" })
	if killed, err := e.Kill(sandbox.SignalKill); !killed || err != nil {
		t.Errorf("kill: %v, %v", killed, err)
	}
	if r := finish(t, e); r.Status != sandbox.StatusKilled || !r.OutputComplete {
		t.Errorf("killed: %v, complete %v", r.Status, r.OutputComplete)
	}
	if r := run(t, s, sandbox.ExecSpec{Argv: []string{"tail", "/dev/zero"}}); r.code() != 137 || r.OOMKilled == nil || !*r.OOMKilled {
		t.Errorf("out of memory: code %d, oom %v, %v", r.code(), r.OOMKilled, r.Notes)
	}
	bomb := mustStart(t, s, shell("exec 2>/dev/null; while :; do command eval 'sleep 300 &'; done"))
	eventually(t, "the cap is reached", func() bool {
		c, err := p.api.ContainerTop(t.Context(), s.containerID, nil)
		return err == nil && len(c.Processes) >= 38
	})
	_, err := start(t, s, shell("echo no room"))
	wantError(t, err, sandbox.KindCapacity, "")
	if killed, err := bomb.Kill(sandbox.SignalKill); !killed || err != nil {
		t.Errorf("kill of a fork bomb: %v, %v", killed, err)
	}
	finish(t, bomb)
	if got := sh(t, s, "ps | grep -c '[s]leep 300' || true"); strings.TrimSpace(got) != "0" {
		t.Errorf("%s processes are left", got)
	}
}
