package docker

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"caisson/sandbox"
	"caisson/sandbox/docker/internal/enginetest"
)

// configFor is a configuration that reaches a server at addr as the PKI's
// identity of that name.
func configFor(pki *enginetest.PKI, addr, name string) Config {
	return Config{
		Host: "tcp://" + addr, TLSVerify: true, Instance: testInstance, Version: "test",
		TLSCertPath: pki.Path(name + "-cert.pem"), TLSKeyPath: pki.Path(name + "-key.pem"), TLSCAPath: pki.Path("ca.pem"),
	}
}

func TestCON03_MutualTLSPasses(t *testing.T) {
	pki := enginetest.NewPKI(t)
	pki.Valid(t, "client")
	addr := enginetest.Serve(t, pki.Server(pki.Valid(t, "server")), enginetest.Ping("1.45"))
	for _, scheme := range []string{"tcp", "http", "https"} {
		cfg := configFor(pki, addr, "client")
		cfg.Host = scheme + "://" + addr
		if err := newProvider(t, cfg).Ping(t.Context()); err != nil {
			t.Errorf("%s: %v", scheme, err)
		}
	}
}

// TestCON03_BugEN04_CertificateFaultsAreToldApart makes each of the faults of a
// certificate, and sees five texts that name the side, and the date where there
// is one.
func TestCON03_BugEN04_CertificateFaultsAreToldApart(t *testing.T) {
	ours, theirs := enginetest.NewPKI(t), enginetest.NewPKI(t)
	now := time.Now()
	past, future := now.Add(-48*time.Hour), now.Add(48*time.Hour)
	ours.Valid(t, "client")
	ours.Issue(t, "old", past.Add(-time.Hour), past)
	ours.Issue(t, "early", future, future.Add(time.Hour))
	theirs.Valid(t, "stranger")
	valid := ours.Server(ours.Valid(t, "server"))
	seen := map[string]string{}
	for name, c := range map[string]struct {
		server *tls.Config
		client string
		pki    *enginetest.PKI
		words  []string
	}{
		"client expired":       {valid, "old", ours, []string{"client certificate", "expired on " + day(past)}},
		"client not yet valid": {valid, "early", ours, []string{"client certificate", "not valid before " + day(future)}},
		"server expired":       {ours.Server(ours.Issue(t, "s-old", past.Add(-time.Hour), past)), "client", ours, []string{"server's certificate expired on " + day(past)}},
		"server not yet valid": {ours.Server(ours.Issue(t, "s-early", future, future.Add(time.Hour))), "client", ours, []string{"server's certificate is not valid before " + day(future)}},
		"server of another CA": {theirs.Server(theirs.Valid(t, "s-other")), "client", ours, []string{"not signed by the CA in SANDBOX_DOCKER_TLS_CA_PATH"}},
		"server of a wrong name": {
			ours.Server(ours.Issue(t, "s-name", past, future, "192.0.2.1")), "client", ours,
			[]string{"not for this host name"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			addr := enginetest.Serve(t, c.server, enginetest.Ping("1.45"))
			err := newProvider(t, configFor(c.pki, addr, c.client)).Ping(t.Context())
			wantError(t, err, sandbox.KindUnavailable, "", c.words...)
			var e *sandbox.Error
			if errors.As(err, &e) && seen[e.Text] != "" {
				t.Errorf("the same text as for %s", seen[e.Text])
			} else if e != nil {
				seen[e.Text] = name
			}
		})
	}
	t.Run("client of another CA", func(t *testing.T) {
		addr := enginetest.Serve(t, valid, enginetest.Ping("1.45"))
		cfg := configFor(ours, addr, "client")
		cfg.TLSCertPath, cfg.TLSKeyPath = theirs.Path("stranger-cert.pem"), theirs.Path("stranger-key.pem")
		err := newProvider(t, cfg).Ping(t.Context())
		wantError(t, err, sandbox.KindUnavailable, "", "the server does not know the CA of our client certificate")
	})
}

func TestCON04_LocalSocketLoadsNoIdentity(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "e.sock")
	listen, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{Handler: enginetest.Ping("1.45"), ReadHeaderTimeout: time.Second}
	done := make(chan error, 1)
	go func() { done <- server.Serve(listen) }()
	t.Cleanup(func() {
		_ = server.Close()
		if err := <-done; !errors.Is(err, http.ErrServerClosed) {
			t.Error(err)
		}
	})
	for _, value := range []string{"unix://" + socket, socket} {
		cfg := Config{Host: value, TLSVerify: true, TLSCertPath: "/no/cert.pem", TLSKeyPath: "/no/key.pem", TLSCAPath: "/no/ca.pem"}
		if err := newProvider(t, cfg).Ping(t.Context()); err != nil {
			t.Errorf("%s: %v", value, err)
		}
	}
}

// TestCON05_NetworkHostsSpeakTLSFirst looks at the first byte on the wire.
func TestCON05_NetworkHostsSpeakTLSFirst(t *testing.T) {
	const clientHello, get = 0x16, 'H' // a TLS record; "HEAD /_ping"
	pki := enginetest.NewPKI(t)
	pki.Valid(t, "client")
	for _, c := range []struct {
		scheme string
		verify bool
		want   byte
	}{{"tcp", true, clientHello}, {"http", true, clientHello}, {"https", true, clientHello}, {"https", false, clientHello}, {"tcp", false, get}, {"http", false, get}} {
		listen, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		first := make(chan byte, 1)
		go func() {
			conn, err := listen.Accept()
			if err != nil {
				return
			}
			var b [1]byte
			_, _ = conn.Read(b[:])
			first <- b[0]
			_ = conn.Close()
		}()
		cfg := configFor(pki, "", "client")
		cfg.Host, cfg.TLSVerify = c.scheme+"://"+listen.Addr().String(), c.verify
		if err := newProvider(t, cfg).Ping(t.Context()); err == nil {
			t.Errorf("%s: a ping to nobody passed", cfg.Host)
		}
		if got := <-first; got != c.want {
			t.Errorf("%s, verify %v: first byte %#x, want %#x", c.scheme, c.verify, got, c.want)
		}
		_ = listen.Close()
	}
}

func TestCFG12_D06_WithoutVerifyHTTPSStillVerifiesTheServer(t *testing.T) {
	pki := enginetest.NewPKI(t)
	config := pki.Server(pki.Valid(t, "server"))
	config.ClientAuth = tls.NoClientCert
	addr := enginetest.Serve(t, config, enginetest.Ping("1.45"))
	cfg := Config{Host: "https://" + addr, TLSCAPath: pki.Path("ca.pem"), TLSCertPath: "/no/cert.pem", TLSKeyPath: "/no/key.pem"}
	if err := newProvider(t, cfg).Ping(t.Context()); err != nil {
		t.Errorf("by the CA file: %v", err)
	}
	cfg.TLSCAPath = "/no/ca.pem" // the system's roots do not know the test's CA
	wantError(t, newProvider(t, cfg).Ping(t.Context()), sandbox.KindUnavailable, "", "not signed by the CA")
}

func TestCON06_IdentityFaultsNameThePathsAndNothingElse(t *testing.T) {
	pki := enginetest.NewPKI(t)
	pki.Valid(t, "client")
	addr := enginetest.Serve(t, pki.Server(pki.Valid(t, "server")), enginetest.Ping("1.45"))
	secret := "c2VjcmV0LWtleS1tYXRlcmlhbA"
	garbage := filepath.Join(t.TempDir(), "garbage.pem")
	if err := os.WriteFile(garbage, []byte("-----BEGIN PRIVATE KEY-----\n"+secret+"\n-----END PRIVATE KEY-----\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string]func(*Config){
		"no certificate": func(c *Config) { c.TLSCertPath = "/no/cert.pem" },
		"no key":         func(c *Config) { c.TLSKeyPath = "/no/key.pem" },
		"no CA":          func(c *Config) { c.TLSCAPath = "/no/ca.pem" },
		"garbage key":    func(c *Config) { c.TLSKeyPath = garbage },
		"garbage CA":     func(c *Config) { c.TLSCAPath = garbage },
		"a folder":       func(c *Config) { c.TLSKeyPath = t.TempDir() },
	} {
		t.Run(name, func(t *testing.T) {
			cfg := configFor(pki, addr, "client")
			change(&cfg)
			err := newProvider(t, cfg).Ping(t.Context())
			wantError(t, err, sandbox.KindUnavailable, "", cfg.TLSCertPath, cfg.TLSKeyPath, cfg.TLSCAPath)
			if err != nil && strings.Contains(err.Error(), secret[:10]) {
				t.Errorf("the error repeats a file's content: %v", err)
			}
		})
	}
}

func TestCON07_UnreachableEngineNamesHostAndClass(t *testing.T) {
	closed, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := closed.Addr().String()
	_ = closed.Close()
	dead := newProvider(t, Config{Host: "tcp://" + addr})
	wantError(t, dead.Ping(t.Context()), sandbox.KindUnavailable, "", "tcp://"+addr, "refused")

	none := newProvider(t, Config{Host: "/nowhere/e.sock"})
	wantError(t, none.Ping(t.Context()), sandbox.KindUnavailable, "", "/nowhere/e.sock", "no such socket")

	silent, err := net.Listen("tcp", "127.0.0.1:0") // accepts in the kernel, and never answers
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = silent.Close() }()
	pki := enginetest.NewPKI(t)
	pki.Valid(t, "client")
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	began := time.Now()
	err = newProvider(t, configFor(pki, silent.Addr().String(), "client")).Ping(ctx)
	wantError(t, err, sandbox.KindUnavailable, "", silent.Addr().String())
	if took := time.Since(began); took > 2*time.Second {
		t.Errorf("took %v", took)
	}

	plain := enginetest.Serve(t, nil, enginetest.Ping("1.45"))
	err = newProvider(t, configFor(pki, plain, "client")).Ping(t.Context())
	wantError(t, err, sandbox.KindUnavailable, "", plain, "does not speak TLS")
}

// TestCON03_RenewedIdentityIsRead replaces the certificate between two calls, as
// a renewal does.
func TestCON03_RenewedIdentityIsRead(t *testing.T) {
	pki := enginetest.NewPKI(t)
	now := time.Now()
	pki.Issue(t, "client", now.Add(-2*time.Hour), now.Add(-time.Hour))
	addr := enginetest.Serve(t, pki.Server(pki.Valid(t, "server")), enginetest.Ping("1.45"))
	p := newProvider(t, configFor(pki, addr, "client"))
	wantError(t, p.Ping(t.Context()), sandbox.KindUnavailable, "", "expired")
	pki.Valid(t, "client")
	if err := p.Ping(t.Context()); err != nil {
		t.Errorf("after the renewal: %v", err)
	}
}

// TestBugEN01_APIVersions shows that the engine's version is taken whatever the
// environment says, and that one which is too old is refused with both named.
func TestBugEN01_APIVersions(t *testing.T) {
	t.Setenv("DOCKER_API_VERSION", "1.24")
	t.Setenv("DOCKER_HOST", "tcp://192.0.2.1:1")
	t.Setenv("DOCKER_TLS_VERIFY", "1")
	t.Setenv("HTTP_PROXY", "http://192.0.2.1:1")
	t.Setenv("HTTPS_PROXY", "http://192.0.2.1:1")
	for version, want := range map[string]string{"1.41": "1.41", "1.47": "1.47", "9.99": "1.51"} {
		p := newProvider(t, Config{Host: "tcp://" + enginetest.Serve(t, nil, enginetest.Ping(version))})
		if err := p.Ping(t.Context()); err != nil {
			t.Errorf("%s: %v", version, err)
		}
		if got := p.api.ClientVersion(); got != want {
			t.Errorf("engine %s: we speak %s, want %s", version, got, want)
		}
	}
	old := newProvider(t, Config{Host: "tcp://" + enginetest.Serve(t, nil, enginetest.Ping("1.40"))})
	wantError(t, old.Ping(t.Context()), sandbox.KindUnavailable, "", "1.40", "1.41")
}

// TestCON08_AttachHonoursItsContext pins why the attach is our own: an engine
// that takes the start and never answers must not hold its caller.
func TestCON08_AttachHonoursItsContext(t *testing.T) {
	pki := enginetest.NewPKI(t)
	pki.Valid(t, "client")
	release := make(chan struct{})
	t.Cleanup(func() { close(release) })
	handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case strings.HasSuffix(r.URL.Path, "/gone/start"):
			w.WriteHeader(http.StatusConflict)
			_, _ = w.Write([]byte(`{"message":"Container x is paused, unpause it first"}`))
		case strings.HasSuffix(r.URL.Path, "/start"):
			<-release
		default:
			enginetest.Ping("1.45").ServeHTTP(w, r)
		}
	})
	addr := enginetest.Serve(t, pki.Server(pki.Valid(t, "server")), handler)
	p := newProvider(t, configFor(pki, addr, "client"))
	if err := p.connect(t.Context()); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	began := time.Now()
	_, err := p.attach(ctx, "x")
	if !errors.Is(err, context.DeadlineExceeded) || time.Since(began) > 2*time.Second {
		t.Errorf("%v after %v", err, time.Since(began))
	}
	// The refusal of an attach keeps the engine's words and their class.
	if _, err := p.attach(t.Context(), "gone"); !isPaused(err) {
		t.Errorf("a paused container's refusal is %v", err)
	}
}
