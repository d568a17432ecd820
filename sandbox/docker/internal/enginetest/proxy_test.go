package enginetest

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"time"
)

const body = `{"Id":"0123456789abcdef","Warnings":[]}`

// behind is an engine that answers everything with body, a proxy to it and a client.
func behind(t *testing.T) (*Proxy, func(ctx context.Context, path string) (int, string, error)) {
	t.Helper()
	addr := Serve(t, nil, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/wait") {
			<-r.Context().Done()
			return
		}
		_, _ = io.WriteString(w, body)
	}))
	p := NewProxy(t, func() (net.Conn, error) { return net.Dial("tcp", addr) })
	pair, err := tls.LoadX509KeyPair(p.PKI.Path("client-cert.pem"), p.PKI.Path("client-key.pem"))
	must(t, err)
	transport := &http.Transport{TLSClientConfig: &tls.Config{Certificates: []tls.Certificate{pair}, RootCAs: p.PKI.Pool}}
	t.Cleanup(transport.CloseIdleConnections)
	return p, func(ctx context.Context, path string) (int, string, error) {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://"+p.Addr+"/v1.41"+path, nil)
		must(t, err)
		resp, err := transport.RoundTrip(req)
		if err != nil {
			return 0, "", err
		}
		defer resp.Body.Close()
		text, err := io.ReadAll(resp.Body)
		return resp.StatusCode, string(text), err
	}
}

func add(t *testing.T, p *Proxy, line string) {
	t.Helper()
	r, err := ParseRule(line)
	must(t, err)
	p.Add(r)
}

func TestEachActionOfARuleIsSeenByTheCaller(t *testing.T) {
	t.Parallel()
	p, get := behind(t)
	for _, c := range []struct {
		action string
		right  func(status int, text string, took time.Duration, err error) bool
	}{
		{"off", func(s int, text string, _ time.Duration, err error) bool {
			return s == 200 && text == body && err == nil
		}},
		{"slice", func(s int, text string, _ time.Duration, err error) bool {
			return s == 200 && text == body && err == nil
		}},
		{"rate(400)", func(_ int, text string, took time.Duration, err error) bool {
			return text == body && err == nil && took > 200*time.Millisecond
		}},
		{"delay(300)", func(_ int, text string, took time.Duration, err error) bool {
			return text == body && err == nil && took >= 300*time.Millisecond
		}},
		{"error(502)", func(s int, _ string, _ time.Duration, err error) bool { return s == 502 && err == nil }},
		{"truncate(20)", func(s int, text string, _ time.Duration, err error) bool {
			return s == 200 && text == body[:20] && err == nil
		}},
		{"cut(20)", func(s int, text string, _ time.Duration, err error) bool {
			return s == 200 && text == body[:20] && errors.Is(err, io.ErrUnexpectedEOF)
		}},
		{"drop", func(_ int, _ string, _ time.Duration, err error) bool { return errors.Is(err, io.EOF) }},
		{"reset", func(_ int, _ string, _ time.Duration, err error) bool { return errors.Is(err, syscall.ECONNRESET) }},
		{"hang", func(_ int, _ string, _ time.Duration, err error) bool {
			return errors.Is(err, context.DeadlineExceeded)
		}},
	} {
		p.Clear()
		p.Forget()
		add(t, p, "GET /x 1*"+c.action)
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		began := time.Now()
		status, text, err := get(ctx, "/x")
		cancel()
		if !c.right(status, text, time.Since(began), err) {
			t.Errorf("%s: %d %q %v after %v", c.action, status, text, err, time.Since(began))
		}
		calls := p.Record()
		if len(calls) == 0 || calls[0].String() != "GET /x" || calls[0].Done != c.action {
			t.Errorf("%s: recorded as %+v", c.action, calls)
		}
		reached := map[string]bool{"off": true, "slice": true, "rate(400)": true, "delay(300)": true, "truncate(20)": true, "cut(20)": true, "drop": true}
		if (calls[0].Status == 200) != reached[c.action] {
			t.Errorf("%s: the engine's answer is recorded as %d", c.action, calls[0].Status)
		}
	}
	// What a rule was not for is left alone.
	if status, text, err := get(t.Context(), "/y"); status != 200 || text != body || err != nil {
		t.Errorf("%d %q %v", status, text, err)
	}
}

func TestAFrozenLinkHoldsEverythingAndLosesNothing(t *testing.T) {
	t.Parallel()
	p, get := behind(t)
	p.Freeze()
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	if _, text, err := get(ctx, "/x"); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("%q %v", text, err)
	}
	got := make(chan error, 1)
	go func() {
		_, text, err := get(t.Context(), "/x")
		if err == nil && text != body {
			err = errors.New(text)
		}
		got <- err
	}()
	select {
	case err := <-got:
		t.Errorf("answered through a frozen link: %v", err)
	case <-time.After(300 * time.Millisecond):
	}
	p.Thaw()
	if err := <-got; err != nil {
		t.Error(err)
	}
}

func TestACallerThatGoesAwayIsGoneForTheEngineToo(t *testing.T) {
	t.Parallel()
	p, get := behind(t)
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	if _, _, err := get(ctx, "/wait"); !errors.Is(err, context.DeadlineExceeded) {
		t.Error(err)
	}
	for deadline := time.Now().Add(5 * time.Second); p.Open() != 0; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%d connections are left", p.Open())
		}
	}
}

func TestBreakResetsWhatIsOpen(t *testing.T) {
	t.Parallel()
	p, get := behind(t)
	ended := make(chan error, 1)
	go func() {
		_, _, err := get(t.Context(), "/wait")
		ended <- err
	}()
	for deadline := time.Now().Add(5 * time.Second); len(p.Record()) == 0; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("the call does not arrive")
		}
	}
	if n := p.Break(); n != 1 {
		t.Errorf("%d connections", n)
	}
	if err := <-ended; err == nil {
		t.Error("answered")
	}
}
