package docker

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/docker/docker/api/types/versions"

	"caisson/sandbox"
	"caisson/sandbox/docker/internal/enginetest"
)

// changing is an engine that another one takes the place of. It answers in the
// versions between least and most.
type changing struct {
	mu          sync.Mutex
	least, most string
	breaks      int // so many calls' connections: the first one is tried again by itself
	seen        []string
}

func (c *changing) become(least, most string, breaks int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.least, c.most, c.breaks, c.seen = least, most, breaks, nil
}

func (c *changing) paths() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return strings.Join(c.seen, " ")
}

func (c *changing) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.seen = append(c.seen, r.URL.Path)
	if c.breaks > 0 {
		c.breaks--
		panic(http.ErrAbortHandler)
	}
	w.Header().Set("Api-Version", c.most)
	w.Header().Set("Content-Type", "application/json")
	version, path, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/v"), "/")
	switch {
	case r.URL.Path == "/_ping":
	case versions.GreaterThan(version, c.most):
		http.Error(w, fmt.Sprintf(`{"message":"client version %s is too new. Maximum supported API version is %s"}`, version, c.most), http.StatusBadRequest)
	case versions.LessThan(version, c.least):
		http.Error(w, fmt.Sprintf(`{"message":"client version %s is too old. Minimum supported API version is %s"}`, version, c.least), http.StatusBadRequest)
	case path == "containers/json":
		_, _ = w.Write([]byte("[]"))
	default:
		http.Error(w, `{"message":"No such container"}`, http.StatusNotFound)
	}
}

func TestBugEN01_AttackT61_AnEngineThatIsReplacedByAnotherVersions(t *testing.T) {
	t.Parallel()
	e := &changing{least: "1.24", most: "1.47"}
	p := newProvider(t, Config{Host: "tcp://" + enginetest.Serve(t, nil, e)})
	list := func() error { _, err := p.List(t.Context()); return err }
	if err := list(); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name, least, most, want string
		breaks                  int
	}{
		{"an older one, its connection breaks", "1.24", "1.42", "1.42", 2},
		{"a newer one, which refuses the old version", "1.44", "1.51", "1.51", 0},
		{"one from the future", "1.44", "9.99", "1.51", 2},
		{"an older one, which refuses the new version", "1.12", "1.41", "1.41", 0},
	} {
		e.become(c.least, c.most, c.breaks)
		p.networks.set("seen", true)
		wantError(t, list(), sandbox.KindUnavailable, "")
		if err := list(); err != nil {
			t.Errorf("%s: %v", c.name, err)
		}
		if p.networks.has("seen") {
			t.Errorf("%s: what was seen of the one before is believed of it", c.name)
		}
		// Calls that do not go through the client's own methods too.
		if _, err := p.readExec(t.Context(), "x"); err == nil || strings.Contains(err.Error(), "version") {
			t.Errorf("%s: %v", c.name, err)
		}
		if got := e.paths(); !strings.Contains(got, "/_ping /v"+c.want+"/containers/json /v"+c.want+"/exec/x/json") || p.apiVersion() != c.want {
			t.Errorf("%s: asked for %s, speaks %s", c.name, got, p.apiVersion())
		}
	}
	e.become("1.12", "1.40", 2)
	wantError(t, list(), sandbox.KindUnavailable, "")
	wantError(t, list(), sandbox.KindUnavailable, "", "1.40", "1.41")
}

// TestBugEN01_AnEngineThatRefusesOldVersions plays an engine like 29, whose least version
// is 1.44, with the environment's wish for another one and without; and one that has left
// our newest behind.
func TestBugEN01_AnEngineThatRefusesOldVersions(t *testing.T) {
	for _, wish := range []string{"", "1.41", "1.43", "1.99"} {
		t.Setenv("DOCKER_API_VERSION", wish)
		for _, c := range []struct{ least, most, want string }{
			{"1.44", "1.52", "1.51"}, {"1.44", "1.47", "1.47"}, {"1.44", "1.44", "1.44"}, {"1.24", "1.41", "1.41"},
		} {
			e := &changing{least: c.least, most: c.most}
			p := newProvider(t, Config{Host: "tcp://" + enginetest.Serve(t, nil, e)})
			if _, err := p.List(t.Context()); err != nil {
				t.Errorf("%s to %s, wish %q: %v", c.least, c.most, wish, err)
			}
			if got := e.paths(); p.apiVersion() != c.want || got != "/_ping /v"+c.want+"/containers/json" {
				t.Errorf("%s to %s, wish %q: speaks %s: %s", c.least, c.most, wish, p.apiVersion(), got)
			}
		}
		e := &changing{least: "1.60", most: "1.70"}
		p := newProvider(t, Config{Host: "tcp://" + enginetest.Serve(t, nil, e)})
		_, err := p.List(t.Context())
		wantError(t, err, sandbox.KindUnavailable, "", "1.51", "1.60", "too old")
		e.become("1.12", "1.40", 0)
		_, err = p.List(t.Context())
		wantError(t, err, sandbox.KindUnavailable, "", "1.40", "1.41")
	}
}
