package docker

import (
	"bytes"
	"context"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/docker/docker/api/types/image"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/random"

	"caisson/sandbox"
)

// testRegistry is a registry on this machine's end of the link to the engine.
type testRegistry struct {
	host string
	next http.Handler

	mu      sync.Mutex
	rate    int // bytes of a layer a second; 0: any
	fetched map[string]int
	refuse  string // a body to answer with 401
}

// startRegistry starts one with an image of 1 MiB of noise as noise:1.
func startRegistry(t *testing.T, p *Provider) *testRegistry {
	t.Helper()
	r := &testRegistry{next: registry.New(registry.Logger(log.New(io.Discard, "", 0))), fetched: map[string]int{}}
	engine, _, err := net.SplitHostPort(p.host.addr)
	if err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp", engine[:strings.LastIndex(engine, ".")]+".1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := &httptest.Server{Listener: listener, Config: &http.Server{Handler: r, ReadHeaderTimeout: 10 * time.Second}}
	server.Start()
	t.Cleanup(server.Close)
	r.host = listener.Addr().String()
	img, err := random.Image(1<<20, 1)
	if err != nil {
		t.Fatal(err)
	}
	r.push(t, "noise", "1", img)
	return r
}

func (r *testRegistry) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	r.mu.Lock()
	rate, refuse := r.rate, r.refuse
	blob := req.Method == http.MethodGet && strings.Contains(req.URL.Path, "/blobs/")
	if blob {
		r.fetched[req.URL.Path]++
	}
	r.mu.Unlock()
	switch {
	case refuse != "":
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusForbidden)
		_, _ = io.WriteString(w, refuse)
	case blob && rate > 0:
		r.next.ServeHTTP(&throttled{w, rate}, req)
	default:
		r.next.ServeHTTP(w, req)
	}
}

// throttled writes a piece each tenth of a second.
type throttled struct {
	http.ResponseWriter
	rate int
}

func (w *throttled) Write(b []byte) (int, error) {
	written := 0
	for len(b) > 0 {
		n, err := w.ResponseWriter.Write(b[:min(len(b), w.rate/10)])
		written += n
		if err != nil {
			return written, err
		}
		w.ResponseWriter.(http.Flusher).Flush()
		b = b[n:]
		<-time.After(100 * time.Millisecond)
	}
	return written, nil
}

// push puts an image into the registry, by the registry's own protocol.
func (r *testRegistry) push(t *testing.T, name, tag string, img v1.Image) {
	t.Helper()
	put := func(method, path string, body io.Reader, want int) {
		req, err := http.NewRequestWithContext(t.Context(), method, "http://"+r.host+"/v2/"+name+path, body)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Content-Type", "application/vnd.docker.distribution.manifest.v2+json")
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		if resp.StatusCode != want {
			text, _ := io.ReadAll(resp.Body)
			t.Fatalf("%s %s: %d %s", method, path, resp.StatusCode, text)
		}
	}
	layers, err := img.Layers()
	if err != nil {
		t.Fatal(err)
	}
	for _, layer := range layers {
		digest, err := layer.Digest()
		if err != nil {
			t.Fatal(err)
		}
		content, err := layer.Compressed()
		if err != nil {
			t.Fatal(err)
		}
		put(http.MethodPost, "/blobs/uploads/?digest="+digest.String(), content, http.StatusCreated)
	}
	config, err := img.RawConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	digest, err := img.ConfigName()
	if err != nil {
		t.Fatal(err)
	}
	put(http.MethodPost, "/blobs/uploads/?digest="+digest.String(), bytes.NewReader(config), http.StatusCreated)
	manifest, err := img.RawManifest()
	if err != nil {
		t.Fatal(err)
	}
	put(http.MethodPut, "/manifests/"+tag, bytes.NewReader(manifest), http.StatusCreated)
}

func TestPUL01_PUL04_BugIM01_BugIM02_AThrottledRegistry(t *testing.T) {
	t.Parallel()
	cfg := engine(t)
	cfg.PullPolicy = PullMissing
	p := newProvider(t, cfg)
	if err := p.connect(t.Context()); err != nil {
		t.Fatal(err)
	}
	r := startRegistry(t, p)
	r.rate = 256 << 10
	ref := r.host + "/noise:1"
	var mu sync.Mutex
	var most sandbox.Stage
	progress := func(s sandbox.Stage) {
		mu.Lock()
		defer mu.Unlock()
		if s.Done > most.Done {
			most = s
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2500*time.Millisecond)
	defer cancel()
	_, err := p.image(ctx, ref, p.cfg.PullPolicy, progress)
	wantError(t, err, sandbox.KindImagePulling, "", "goes on")
	if most.Done == 0 || most.Total < most.Done {
		t.Errorf("no progress was told: %+v", most)
	}
	img, err := p.image(t.Context(), ref, p.cfg.PullPolicy, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx := context.WithoutCancel(t.Context())
		if _, err := p.api.ImageRemove(ctx, img.id, image.RemoveOptions{Force: true}); err != nil {
			t.Error(err)
		}
	})
	r.mu.Lock()
	for path, n := range r.fetched {
		if n != 1 {
			t.Errorf("%s was fetched %d times", path, n)
		}
	}
	if len(r.fetched) != 2 {
		t.Errorf("fetched %v", r.fetched)
	}
	r.mu.Unlock()

	_, err = p.image(t.Context(), r.host+"/noise:absent", p.cfg.PullPolicy, nil)
	wantError(t, err, sandbox.KindImageNotFound, "")
	r.mu.Lock()
	r.refuse = `{"errors":[{"code":"DENIED","message":"the plan of this account has ended"}]}`
	r.mu.Unlock()
	_, err = p.image(t.Context(), r.host+"/noise:3", p.cfg.PullPolicy, nil)
	wantError(t, err, sandbox.KindImagePullFailed, "", "the plan of this account has ended")
}
