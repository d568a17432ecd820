package docker

import (
	"context"
	"io"
	"net"
	"testing"
	"time"

	"github.com/docker/docker/api/types/container"

	"caisson/sandbox"
	"caisson/sandbox/docker/internal/enginetest"
)

// forgetFlow makes the engine's host swallow all packets of one connection, both ways,
// as a firewall does that has forgotten it: nobody is told. Other connections go on.
func forgetFlow(t *testing.T, conn net.Conn) {
	t.Helper()
	_, port, err := net.SplitHostPort(conn.LocalAddr().String())
	if err != nil {
		t.Fatal(err)
	}
	rule(t, "INPUT", "-p", "tcp", "--sport", port, "-j", "DROP")
	rule(t, "OUTPUT", "-p", "tcp", "--dport", port, "-j", "DROP")
}

// TestAttackT66_BugEN03_AForgottenFlowIsKnownSoon takes away the connections of
// commands: one that is quiet, and one with input on its way.
func TestAttackT66_BugEN03_AForgottenFlowIsKnownSoon(t *testing.T) {
	t.Parallel()
	p := provider(t)
	s := create(t, p, specOf(""))
	for name, input := range map[string]string{"quiet": "", "with input on its way": "x"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			id, err := s.createExec(t.Context(), "test", container.ExecOptions{Cmd: []string{"cat"}, AttachStdin: true, AttachStdout: true})
			if err != nil {
				t.Fatal(err)
			}
			st, err := p.attach(t.Context(), id)
			if err != nil {
				t.Fatal(err)
			}
			defer st.close()
			forgetFlow(t, st.conn)
			began := time.Now()
			if _, err := io.WriteString(st.conn, input); err != nil {
				t.Fatal(err)
			}
			// The test's own bound; without one of ours it takes a quarter of an hour.
			if err := st.conn.SetReadDeadline(began.Add(40 * time.Second)); err != nil {
				t.Fatal(err)
			}
			_, err = st.reader.ReadByte()
			took := time.Since(began)
			if err == nil || took > 25*time.Second || took < 2*time.Second {
				t.Errorf("%v after %v", err, took)
			}
			if kind, text, ok := p.linkFailure(err); !ok || kind != sandbox.KindUnavailable {
				t.Errorf("%v is %v, %q", err, kind, text)
			}
			if err := p.Ping(t.Context()); err != nil {
				t.Errorf("the engine: %v", err)
			}
		})
	}
}

// TestAttackT65_ACallDoesNotFailForAnAttemptOfBefore asks a healthy engine while an
// attempt to connect hangs that began when it was not.
func TestAttackT65_ACallDoesNotFailForAnAttemptOfBefore(t *testing.T) {
	t.Parallel()
	p, proxy := faulty(t)
	p.unsettle()
	proxy.Inject(enginetest.Fault{Path: calls("^/_ping$"), Hang: true})
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	wantError(t, p.Ping(ctx), sandbox.KindUnavailable, "")
	proxy.Clear()
	if _, err := p.List(t.Context()); err != nil {
		t.Error(err)
	}
}

// TestAttackT65_ATransferEndsWhoseStreamIsNeverGiven sees each call of a transfer end
// by its own bound, which is far below the transfer's.
func TestAttackT65_ATransferEndsWhoseStreamIsNeverGiven(t *testing.T) {
	t.Parallel()
	for name, call := range map[string]string{"create": "/exec$", "attach": "^/exec/.*/start$"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p, proxy := faulty(t)
			s := create(t, p, specOf(""))
			proxy.Inject(enginetest.Fault{Method: "POST", Path: calls(call), Hang: true})
			ctx, cancel := context.WithTimeout(t.Context(), 2*callLimit)
			defer cancel()
			_, _, err := s.ReadDir(ctx, "", false, 10)
			proxy.Clear()
			wantError(t, err, sandbox.KindUnavailable, "")
			if ctx.Err() != nil {
				t.Error("it was the caller's bound that ended it")
			}
		})
	}
}
