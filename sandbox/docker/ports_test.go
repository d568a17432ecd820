package docker

import (
	"fmt"
	"net"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"caisson/sandbox/docker/internal/enginetest"
)

// heard is what reached a listener first.
type heard struct {
	where string
	tls   bool
}

// listenAt tells of each connection which listener got it, and whether TLS was spoken.
func listenAt(t *testing.T, got chan<- heard, network, addr string) {
	t.Helper()
	l, err := net.Listen(network, addr)
	if err != nil {
		t.Fatal(err)
	}
	var serving sync.WaitGroup
	serving.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			var first [1]byte
			_, _ = conn.Read(first[:])
			_ = conn.Close()
			select {
			case got <- heard{filepath.Base(addr), first[0] == 0x16}: // a TLS handshake record
			default: // further tries of the same call
			}
		}
	})
	t.Cleanup(func() {
		_ = l.Close()
		serving.Wait()
	})
}

// TestCFG03_CFG05_... sees with real listeners on the real default ports where each form of
// host is dialled, and how. The address is one of loopback that nobody else listens on.
func TestCFG03_CFG05_CFG12_EveryFormOfHostIsDialledWhereItShouldBe(t *testing.T) {
	const at = "127.83.67.5"
	pki := enginetest.NewPKI(t)
	pki.Valid(t, "client")
	got := make(chan heard, 1)
	for _, port := range []string{"2375", "2376", "4243"} {
		listenAt(t, got, "tcp", net.JoinHostPort(at, port))
	}
	socket := filepath.Join(t.TempDir(), "engine.sock")
	listenAt(t, got, "unix", socket)
	plain := func(port string) heard { return heard{net.JoinHostPort(at, port), false} }
	secure := func(port string) heard { return heard{net.JoinHostPort(at, port), true} }
	for _, c := range []struct {
		host   string
		verify bool
		want   heard
	}{
		{"unix://" + socket, true, heard{"engine.sock", false}},
		{"unix://" + socket, false, heard{"engine.sock", false}},
		{socket, true, heard{"engine.sock", false}},
		{"tcp://" + at, true, secure("2376")},
		{"http://" + at, true, secure("2376")},
		{"https://" + at, true, secure("2376")},
		{"tcp://" + at, false, plain("2375")},
		{"http://" + at, false, plain("2375")},
		{"https://" + at, false, secure("2376")},
		{"tcp://" + at + ":4243", true, secure("4243")},
		{"http://" + at + ":4243", true, secure("4243")},
		{"https://" + at + ":4243", true, secure("4243")},
		{"tcp://" + at + ":4243", false, plain("4243")},
		{"http://" + at + ":4243", false, plain("4243")},
		{"https://" + at + ":4243", false, secure("4243")},
		{"tcp://" + at + ":2375", true, secure("2375")},
		{"tcp://" + at + ":2376", false, plain("2376")},
	} {
		t.Run(fmt.Sprint(c.host, " ", c.verify), func(t *testing.T) {
			select {
			case <-got: // a late try of the one before
			default:
			}
			cfg := configFor(pki, "", "client")
			cfg.Host, cfg.TLSVerify = c.host, c.verify
			p, err := New(cfg)
			if err != nil {
				t.Fatal(err)
			}
			if err := p.Ping(t.Context()); err == nil {
				t.Error("a ping to nobody passed")
			}
			if err := p.Close(); err != nil {
				t.Error(err)
			}
			select {
			case first := <-got:
				if first != c.want {
					t.Errorf("%+v, want %+v", first, c.want)
				}
			case <-time.After(10 * time.Second):
				t.Error("nobody was dialled")
			}
		})
	}
}
