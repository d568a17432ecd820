package docker

import (
	"context"
	"io"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"caisson/sandbox"
	"caisson/sandbox/docker/internal/enginetest"
)

// TestCON09_CFG03_EveryWayToTheEngine runs a command with input over TLS, a unix
// socket and plain TCP.
func TestCON09_CFG03_EveryWayToTheEngine(t *testing.T) {
	t.Parallel()
	cfg := engine(t)
	vars, err := engineVars()
	if err != nil {
		t.Fatal(err)
	}
	socket := vars["CAISSON_ENGINE_SOCKET"]
	plain := forward(t, socket)
	for _, c := range []struct {
		host   string
		verify bool
	}{{cfg.Host, true}, {strings.Replace(cfg.Host, "tcp://", "http://", 1), true}, {strings.Replace(cfg.Host, "tcp://", "https://", 1), true}, {"unix://" + socket, true}, {socket, true}, {"tcp://" + plain, false}, {"http://" + plain, false}} {
		t.Run(c.host, func(t *testing.T) {
			cfg.Host, cfg.TLSVerify = c.host, c.verify
			s := create(t, newProvider(t, cfg), specOf(""))
			r := run(t, s, sandbox.ExecSpec{Argv: []string{"sh", "-c", "cat; sleep 0.3; echo end"}, Stdin: []byte(strings.Repeat("x", 300_000))})
			if r.code() != 0 || len(r.stdout) != 300_004 || !strings.HasSuffix(r.stdout, "end\n") {
				t.Errorf("code %d, %d bytes, complete %v, %v, stderr %s", r.code(), len(r.stdout), r.OutputComplete, r.Notes, r.stderr)
			}
		})
	}
}

// forward listens on loopback and joins each connection with the socket, both
// ways, half-closes included.
func forward(t *testing.T, socket string) string {
	t.Helper()
	listen, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var work sync.WaitGroup
	join := func(to, from net.Conn) {
		_, _ = io.Copy(to, from)
		_ = to.(interface{ CloseWrite() error }).CloseWrite()
	}
	work.Go(func() {
		for {
			conn, err := listen.Accept()
			if err != nil {
				return
			}
			engine, err := net.Dial("unix", socket)
			if err != nil {
				_ = conn.Close()
				continue
			}
			work.Go(func() {
				defer func() { _, _ = conn.Close(), engine.Close() }()
				var input sync.WaitGroup
				input.Go(func() { join(engine, conn) })
				join(conn, engine)
				_ = conn.Close()
				input.Wait()
			})
		}
	})
	t.Cleanup(func() { _ = listen.Close(); work.Wait() })
	return listen.Addr().String()
}

// processes counts the session's processes whose command line begins with text.
func processes(t *testing.T, s *Session, text string) int {
	t.Helper()
	return strings.Count(sh(t, s, `for p in /proc/[0-9]*; do tr '\0' ' ' <$p/cmdline; echo; done 2>/dev/null`), text)
}

// TestSTP01_StartWhoseAnswerIsLostIsStopped loses the answer of an attach: the
// command was started, and must not run on.
func TestSTP01_StartWhoseAnswerIsLostIsStopped(t *testing.T) {
	t.Parallel()
	p, proxy := faulty(t)
	s := create(t, p, specOf(""))
	proxy.Inject(enginetest.Fault{Method: "POST", Path: calls("^/exec/.*/start$"), Swallow: true, Times: 1})
	_, err := start(t, s, shell("echo on >/tmp/on; sleep 311"))
	wantError(t, err, sandbox.KindUnknownOutcome, "", "may have run")
	eventually(t, "the command is stopped", func() bool { return processes(t, s, "sleep 311 ") == 0 })
}

// TestSTP01_CancelledStartIsStopped cancels a start while the engine works on it.
func TestSTP01_CancelledStartIsStopped(t *testing.T) {
	t.Parallel()
	p, proxy := faulty(t)
	s := create(t, p, specOf(""))
	spools, err := testSpools()
	if err != nil {
		t.Fatal(err)
	}
	for range 5 {
		asked := make(chan struct{})
		proxy.Inject(enginetest.Fault{Method: "POST", Path: calls("^/exec/.*/start$"), Times: 1, Done: asked})
		ctx, cancel := context.WithCancel(t.Context())
		go func() { <-asked; cancel() }()
		spec := shell("sleep 312")
		spec.ID, spec.Timeout = sandbox.NewExecID(), time.Minute
		e, err := s.Start(ctx, spec, spools.New())
		if err == nil {
			_, err = e.Kill(sandbox.SignalKill)
			if err != nil {
				t.Error(err)
			}
			_ = e.Close()
		} else {
			wantError(t, err, sandbox.KindCancelled, "")
		}
		cancel()
	}
	eventually(t, "the commands are stopped", func() bool { return processes(t, s, "sleep 312 ") == 0 })
}

// TestSTR09_CutStreamIsLostAndKillStillWorks cuts the attached stream of a
// command that runs on.
func TestSTR09_CutStreamIsLostAndKillStillWorks(t *testing.T) {
	t.Parallel()
	p, proxy := faulty(t)
	s := create(t, p, specOf(""))
	proxy.Inject(enginetest.Fault{Method: "POST", Path: calls("^/exec/.*/start$"), CutAt: 40, Times: 1})
	spec := shell("while :; do echo 0123456789; sleep 0.1; done")
	spec.StdinOpen = true
	r := mustStart(t, s, spec)
	v := finish(t, r)
	if v.Status != sandbox.StatusLost || v.LostReason != sandbox.LostStreamCut || v.ExitCode != nil || v.OutputComplete || !strings.HasPrefix(v.stdout, "0123456789\n") {
		t.Errorf("%v, %v, %d, %q", v.Status, v.LostReason, v.code(), v.stdout)
	}
	_, err := r.WriteStdin(t.Context(), []byte("x"))
	wantError(t, err, sandbox.KindStdinClosed, "")
}

// TestSTR09_EnginesCodeOfABrokenAttachIsNotBelieved cuts the stream of a command
// as it starts: an old engine then records 126, and the command runs on.
func TestSTR09_EnginesCodeOfABrokenAttachIsNotBelieved(t *testing.T) {
	t.Parallel()
	p, proxy := faulty(t)
	s := create(t, p, specOf(""))
	proxy.Inject(enginetest.Fault{Method: "POST", Path: calls("^/exec/.*/start$"), CutAt: 12, Times: 1})
	e := mustStart(t, s, shell("echo on; sleep 1; echo more; sleep 313"))
	if r := finish(t, e); r.Status != sandbox.StatusLost || r.LostReason != sandbox.LostStreamCut || r.ExitCode != nil {
		t.Errorf("%v, %v, code %d, %v", r.Status, r.LostReason, r.code(), r.Notes)
	}
}

func TestSTR11_FragmentedFramesAreJoined(t *testing.T) {
	t.Parallel()
	p, proxy := faulty(t)
	s := create(t, p, specOf(""))
	proxy.Inject(enginetest.Fault{Method: "POST", Path: calls("^/exec/.*/start$"), Bytes: true})
	r := run(t, s, shell("i=0; while [ $i -lt 200 ]; do echo out$i; echo err$i >&2; i=$((i+1)); done; exit 9"))
	var out, err strings.Builder
	for i := range 200 {
		out.WriteString("out" + number(ptr(int64(i))) + "\n")
		err.WriteString("err" + number(ptr(int64(i))) + "\n")
	}
	if r.code() != 9 || r.stdout != out.String() || r.stderr != err.String() || !r.OutputComplete {
		t.Errorf("code %d, complete %v, %d and %d bytes", r.code(), r.OutputComplete, len(r.stdout), len(r.stderr))
	}
}

// onStalledLink gives a session through a proxy that takes an exec's output from the
// engine's socket only after 8 s: the engine cuts it 2 s after its end. 1,300 KiB
// are a little more than engine and kernel hold between them [M, 20.10].
func onStalledLink(t *testing.T) *Session {
	t.Helper()
	engine(t)
	vars, err := engineVars()
	if err != nil {
		t.Fatal(err)
	}
	p, proxy := faultyOver(t, func() (net.Conn, error) { return net.Dial("unix", vars["CAISSON_ENGINE_SOCKET"]) })
	s := create(t, p, specOf(""))
	proxy.Inject(enginetest.Fault{Method: "POST", Path: calls("^/exec/.*/start$"), Stall: 8 * time.Second})
	return s
}

const (
	stalledSize   = 1300 << 10
	stalledScript = "yes | head -c 1331200; exit 5"
)

// TestD27_SlowLinkLosesNothing drains a link so slow that the engine would cut
// it: the wrapper waits for us.
func TestD27_SlowLinkLosesNothing(t *testing.T) {
	t.Parallel()
	r := run(t, onStalledLink(t), shell(stalledScript))
	if r.code() != 5 || len(r.stdout) != stalledSize || !r.OutputComplete {
		t.Errorf("code %d, %d bytes of %d, complete %v, %v", r.code(), len(r.stdout), stalledSize, r.OutputComplete, r.Notes)
	}
}

// TestD27_STR02_CutOutputIsSaid is its control: with a stdin of its own a
// command's wrapper does not wait, the engine cuts, and that is said.
func TestD27_STR02_CutOutputIsSaid(t *testing.T) {
	t.Parallel()
	spec := shell(stalledScript)
	spec.Stdin = []byte("x")
	r := run(t, onStalledLink(t), spec)
	if len(r.stdout) == stalledSize {
		t.Fatal("the control: the engine cut nothing")
	}
	if r.OutputComplete || !r.noted("output_incomplete") || r.code() != 5 {
		t.Errorf("code %d, %d bytes of %d, complete %v, %v", r.code(), len(r.stdout), stalledSize, r.OutputComplete, r.Notes)
	}
}

// TestBugEN06_ConnectionsAreGivenBack counts the connections to the engine
// before and after many commands, some of which read no stdin, time out or are
// killed.
func TestBugEN06_ConnectionsAreGivenBack(t *testing.T) {
	t.Parallel()
	p, proxy := faulty(t)
	s := create(t, p, specOf(""))
	sh(t, s, "true")
	before := proxy.Open()
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			for i := range 15 {
				spec := sandbox.ExecSpec{Argv: []string{"true"}, Stdin: make([]byte, 64<<10), Timeout: time.Minute}
				if i%5 == 4 {
					spec = sandbox.ExecSpec{Argv: []string{"sleep", "60"}, Timeout: 200 * time.Millisecond}
				}
				e, err := start(t, s, spec)
				if err != nil {
					t.Error(err)
					return
				}
				v, err := e.Wait(t.Context())
				if i%5 != 4 && (err != nil || v.ExitCode == nil || *v.ExitCode != 0) {
					t.Errorf("%v, %+v", err, v)
				}
				if err := e.Close(); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	eventually(t, "connections are given back", func() bool { return proxy.Open() <= max(before, 2*idleConns)+5 })
}

// TestSTP14_SlowStopSaysWhatItHadSaid holds the stop's own stream back.
func TestSTP12_STP14_StopThatDoesNotReportIsBounded(t *testing.T) {
	t.Parallel()
	p, proxy := faulty(t)
	s := create(t, p, specOf(""))
	e := mustStart(t, s, shell("echo on; sleep 300"))
	eventually(t, "output", func() bool { return output(t, e, sandbox.Stdout) == "on\n" })
	proxy.Inject(enginetest.Fault{Method: "POST", Path: calls("^/exec/.*/start$"), Hang: true, Times: 1})
	began := time.Now()
	_, err := e.Kill(sandbox.SignalKill)
	wantError(t, err, sandbox.KindKillFailed, "")
	if took := time.Since(began); took > sandbox.StopLimit+time.Second {
		t.Errorf("took %v", took)
	}
	if killed, err := e.Kill(sandbox.SignalKill); !killed || err != nil {
		t.Errorf("the next kill: %v, %v", killed, err)
	}
}

// noRoomSaid is an engine's refusal of an exec in a session at its cap.
const noRoomSaid = "OCI runtime exec failed: exec failed: unable to start container process: read init-p: connection reset by peer: unknown\r\n"

// TestD24_CapIsRaisedForAStopAndPutBack refuses the stop's first exec for want of
// room.
func TestD24_CapIsRaisedForAStopAndPutBack(t *testing.T) {
	t.Parallel()
	p, proxy := faulty(t)
	s := create(t, p, specOf(""))
	e := mustStart(t, s, shell("echo on; sleep 300"))
	eventually(t, "output", func() bool { return output(t, e, sandbox.Stdout) == "on\n" })
	proxy.Forget()
	proxy.Inject(enginetest.Fault{Method: "POST", Path: calls("^/exec/.*/start$"), Say: noRoomSaid, Times: 1})
	if killed, err := e.Kill(sandbox.SignalKill); !killed || err != nil {
		t.Errorf("%v, %v", killed, err)
	}
	update := "POST /containers/" + s.containerID + "/update"
	if n := strings.Count(strings.Join(proxy.Calls(), "\n"), update); n != 2 {
		t.Errorf("%d updates of the cap", n)
	}
	if limit := inspect(t, p, s).HostConfig.PidsLimit; limit == nil || *limit != 128 {
		t.Errorf("the cap is %v afterwards", limit)
	}
}

// TestD24_SessionEndsWhereItsCommandCannotBeStopped refuses every stop, and the
// raise of the cap.
func TestD24_SessionEndsWhereItsCommandCannotBeStopped(t *testing.T) {
	t.Parallel()
	p, proxy := faulty(t)
	s := create(t, p, specOf(""))
	e := mustStart(t, s, shell("echo on; sleep 300"))
	eventually(t, "output", func() bool { return output(t, e, sandbox.Stdout) == "on\n" })
	proxy.Inject(enginetest.Fault{Method: "POST", Path: calls("^/exec/.*/start$"), Say: noRoomSaid})
	proxy.Inject(enginetest.Fault{Method: "POST", Path: calls("^/containers/.*/update$"), Status: 500, Message: "broken"})
	_, err := e.Kill(sandbox.SignalTerm)
	wantError(t, err, sandbox.KindKillFailed, "")
	_, err = start(t, s, shell("true")) // nor does a failed start
	wantError(t, err, sandbox.KindCapacity, "")
	if len(containers(t, p)) != 1 {
		t.Error("a polite signal ended the session")
	}
	if _, err := e.Kill(sandbox.SignalKill); err != nil {
		t.Error(err)
	}
	if r := finish(t, e); r.LostReason != sandbox.LostContainerGone || r.ExitCode != nil {
		t.Errorf("%v, %d", r.LostReason, r.code())
	}
	if left := containers(t, p); len(left) != 0 || s.Info().State != sandbox.StateLost {
		t.Errorf("left %v, state %v", left, s.Info().State)
	}
}

// TestSTP01_ExecThatTheEngineForgotIsNoLostSession loses an exec between its
// create and its start, as a restarted engine does.
func TestSTP01_ExecThatTheEngineForgotIsNoLostSession(t *testing.T) {
	t.Parallel()
	p, proxy := faulty(t)
	s := create(t, p, specOf(""))
	proxy.Inject(enginetest.Fault{Method: "POST", Path: calls("^/exec/.*/start$"), Status: 404, Message: "No such exec instance: x", Times: 1})
	_, err := start(t, s, shell("true"))
	wantError(t, err, sandbox.KindUnavailable, "")
	if got := sh(t, s, "echo ok"); got != "ok\n" {
		t.Error(got)
	}
}

// TestAttackT65_CallersShareOneHandshake asks an engine that never answers from
// many sides: each caller ends by its own deadline.
func TestAttackT65_CallersShareOneHandshake(t *testing.T) {
	t.Parallel()
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = silent.Close() }()
	p := newProvider(t, Config{Host: "tcp://" + silent.Addr().String()})
	began := time.Now()
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
			defer cancel()
			if _, err := p.List(ctx); sandbox.KindOf(err) != sandbox.KindUnavailable {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if took := time.Since(began); took > 2*time.Second {
		t.Errorf("took %v", took)
	}
}
