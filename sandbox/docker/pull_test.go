package docker

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"caisson/sandbox"
	"caisson/sandbox/docker/internal/enginetest"
)

// pullEngine is an engine that has no image until one is pulled.
type pullEngine struct {
	stream  string        // what it says while it pulls
	release chan struct{} // nil, or what it waits for in the middle of it

	mu      sync.Mutex
	has     bool
	queries []string
}

func (e *pullEngine) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	e.mu.Lock()
	defer e.mu.Unlock()
	switch {
	case strings.HasSuffix(r.URL.Path, "/images/create"):
		e.queries = append(e.queries, r.URL.RawQuery)
		w.WriteHeader(http.StatusOK)
		begin, rest, _ := strings.Cut(e.stream, "|")
		_, _ = fmt.Fprint(w, begin)
		_ = http.NewResponseController(w).Flush()
		if e.release != nil {
			e.mu.Unlock()
			<-e.release
			e.mu.Lock()
		}
		_, _ = fmt.Fprint(w, rest)
		e.has = !strings.Contains(e.stream, `"error"`)
	case strings.Contains(r.URL.Path, "/images/"):
		if !e.has {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(http.StatusNotFound)
			_, _ = fmt.Fprint(w, `{"message":"No such image: x"}`)
			return
		}
		_, _ = fmt.Fprint(w, `{"Id":"sha256:1","Config":{"User":"u"}}`)
	default:
		enginetest.Ping("1.45").ServeHTTP(w, r)
	}
}

func (e *pullEngine) pulls() []string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return append([]string(nil), e.queries...)
}

func pullProvider(t *testing.T, e *pullEngine, policy PullPolicy) *Provider {
	t.Helper()
	p := newProvider(t, Config{Host: "tcp://" + enginetest.Serve(t, nil, e), PullPolicy: policy})
	if err := p.connect(t.Context()); err != nil {
		t.Fatal(err)
	}
	return p
}

const pulled = `{"status":"Pulling fs layer","id":"a"}
{"status":"Downloading","id":"a","progressDetail":{"current":30,"total":100}}
|{"status":"Download complete","id":"a"}
{"status":"Status: Downloaded newer image for x"}
`

func TestPUL01_PUL05_MissingIsPulledOnceByItsTag(t *testing.T) {
	e := &pullEngine{stream: pulled}
	p := pullProvider(t, e, PullMissing)
	for range 3 {
		img, err := p.image(t.Context(), "some/image", p.cfg.PullPolicy, nil)
		if err != nil || img.id != "sha256:1" || img.user != "u" {
			t.Fatalf("%+v, %v", img, err)
		}
	}
	if got := e.pulls(); len(got) != 1 || !strings.Contains(got[0], "tag=latest") || !strings.Contains(got[0], "some%2Fimage") {
		t.Errorf("pulls %q", got)
	}
}

func TestPUL02_NeverAsksNobody(t *testing.T) {
	e := &pullEngine{stream: pulled}
	_, err := pullProvider(t, e, PullNever).image(t.Context(), "some/image:1", PullNever, nil)
	wantError(t, err, sandbox.KindImageNotFound, "", "some/image:1")
	_, err = pullProvider(t, e, PullMissing).image(t.Context(), "sha256:aaaa", PullMissing, nil)
	wantError(t, err, sandbox.KindImageNotFound, "", "sha256:aaaa")
	if got := e.pulls(); len(got) != 0 {
		t.Errorf("pulls %q", got)
	}
}

func TestPUL01_AlwaysPullsEachTime(t *testing.T) {
	e := &pullEngine{stream: pulled, has: true}
	p := pullProvider(t, e, PullAlways)
	for range 2 {
		if _, err := p.image(t.Context(), "some/image:3", p.cfg.PullPolicy, nil); err != nil {
			t.Fatal(err)
		}
	}
	if got := e.pulls(); len(got) != 2 || !strings.Contains(got[0], "tag=3") {
		t.Errorf("pulls %q", got)
	}
}

func TestPUL04_BugIM02_ErrorsInTheStreamAreErrors(t *testing.T) {
	for message, kind := range map[string]sandbox.Kind{
		"manifest for x:1 not found: manifest unknown: manifest unknown":                                          sandbox.KindImageNotFound,
		"no matching manifest for linux/amd64 in the manifest list entries":                                       sandbox.KindImageNotFound,
		"pull access denied for x, repository does not exist or may require 'docker login'":                       sandbox.KindImagePullFailed,
		"toomanyrequests: You have reached your pull rate limit":                                                  sandbox.KindImagePullFailed,
		"failed to register layer: write /x: no space left on device":                                             sandbox.KindNoSpace,
		"Get https://registry.invalid/v2/: dial tcp: lookup registry.invalid on 192.0.2.1:53: no such host\u001b": sandbox.KindImagePullFailed,
	} {
		text, err := json.Marshal(message)
		if err != nil {
			t.Fatal(err)
		}
		e := &pullEngine{stream: fmt.Sprintf("{\"status\":\"Pulling\"}\n{\"errorDetail\":{\"message\":%s},\"error\":%[1]s}\n", text)}
		_, err = pullProvider(t, e, PullMissing).image(t.Context(), "x:1", PullMissing, nil)
		wantError(t, err, kind, "")
		if kind != sandbox.KindNoSpace && err != nil && !strings.Contains(err.Error(), message[:20]) {
			t.Errorf("the registry's reason is not given: %v", err)
		}
		if own := (*sandbox.Error)(nil); errors.As(err, &own) && strings.ContainsAny(own.Text, "\x1b") {
			t.Errorf("a control character came through: %q", err)
		} else if strings.Contains(own.Text, "192.0.2.1") {
			t.Errorf("the engine's own network is shown: %q", own.Text)
		}
	}
}

// TestBugIM01_PullGoesOnAndIsJoined gives up on a pull, and joins it.
func TestBugIM01_PullGoesOnAndIsJoined(t *testing.T) {
	e := &pullEngine{stream: pulled, release: make(chan struct{})}
	p := pullProvider(t, e, PullMissing)
	var mu sync.Mutex
	var stages []sandbox.Stage
	told := make(chan struct{})
	var once sync.Once
	progress := func(s sandbox.Stage) {
		mu.Lock()
		defer mu.Unlock()
		stages = append(stages, s)
		if s.Total == 100 {
			once.Do(func() { close(told) })
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
	_, err := p.image(ctx, "x:1", p.cfg.PullPolicy, progress)
	cancel()
	wantError(t, err, sandbox.KindImagePulling, "", "goes on")
	if own := (*sandbox.Error)(nil); !errors.As(err, &own) || own.RetryAfter <= 0 {
		t.Errorf("says not when to ask again: %+v", err)
	}
	select {
	case <-told:
	default:
		t.Errorf("no progress was told: %+v", stages)
	}
	ctx, cancel = context.WithCancel(t.Context())
	cancel()
	_, err = p.image(ctx, "x:1", p.cfg.PullPolicy, nil)
	wantError(t, err, sandbox.KindCancelled, "")
	close(e.release)
	if _, err = p.image(t.Context(), "x:1", p.cfg.PullPolicy, nil); err != nil {
		t.Error(err)
	}
	if got := e.pulls(); len(got) != 1 {
		t.Errorf("pulls %q", got)
	}
}

func TestBugIM01_CloseEndsAPull(t *testing.T) {
	e := &pullEngine{stream: pulled, release: make(chan struct{})}
	t.Cleanup(func() { close(e.release) })
	p := pullProvider(t, e, PullMissing)
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	_, err := p.image(ctx, "x:1", p.cfg.PullPolicy, nil)
	wantError(t, err, sandbox.KindImagePulling, "")
	done := make(chan error, 1)
	go func() { done <- p.Close() }()
	select {
	case err := <-done:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(5 * time.Second):
		t.Fatal("it goes on")
	}
}
