package e2e_test

import (
	"bytes"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"math"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// tenant is a principal of the load, as its clients know it.
type tenant struct {
	name, token string
	secret      string   // stands in its files alone
	sessions    []string // that last as long as the load
}

func newTenant(name string) *tenant {
	return &tenant{name: name, token: rand.Text() + rand.Text(), secret: "secret-of-" + name + "-" + rand.Text()}
}

// entry is its lines in the file of principals.
func (n *tenant) entry(more string) string {
	sum := sha256.Sum256([]byte(n.token))
	return fmt.Sprintf("  - {name: %s, token_sha256: %s, %s}\n", n.name, hex.EncodeToString(sum[:]), more)
}

// witness is what all clients of a load have seen.
type witness struct {
	t       *testing.T
	tenants []*tenant

	mu     sync.Mutex
	seen   map[string]*tenant         // handles, by whoever was told them
	joined map[string]*tenant         // client sessions
	done   map[string]int             // what was done, by its outcome
	times  map[string][]time.Duration // how long honest clients' calls took, by what they were for
	wrong  int
}

var handle = regexp.MustCompile(`\b(?:sbx|exec)_[a-z0-9]{10,}`)

// sees holds a body against who may know what is in it. foreign says that its reader
// has sent handles of others, which it may be told again.
func (l *witness) sees(who *tenant, body []byte, foreign bool) {
	for _, other := range l.tenants {
		if other != who && bytes.Contains(body, []byte(other.secret)) {
			l.fault("%s sees the secret of %s: %s", who.name, other.name, clip(string(body)))
		}
	}
	if foreign {
		return
	}
	for _, id := range handle.FindAllString(string(body), -1) {
		l.mu.Lock()
		owner := l.seen[id]
		if owner == nil {
			l.seen[id] = who
		}
		l.mu.Unlock()
		if owner != nil && owner != who {
			l.fault("%s sees %s of %s", who.name, id, owner.name)
		}
	}
}

// fault tells of the first of many.
func (l *witness) fault(form string, args ...any) {
	l.t.Helper()
	l.mu.Lock()
	l.wrong++
	told := l.wrong <= 30
	l.mu.Unlock()
	if told {
		l.t.Errorf(form, args...)
	}
}

// judge counts what was done. It says whether it was done, and takes only the limits'
// answers for a reason that it was not.
func (l *witness) judge(what string, r result, err error) bool {
	l.t.Helper()
	code := "ok"
	var status webStatus
	switch {
	case err != nil && (errors.As(err, &status) && (status == 429 || status == 503) || strings.Contains(err.Error(), "with status 429")):
		code = "HTTP limit"
	case err != nil:
		l.fault("%s: %v", what, err)
		code = "fault"
	case r.IsError && (r.code() == "limit_exceeded" || r.code() == "busy"):
		code = r.code()
	case r.IsError && r.code() != "timed_out":
		l.fault("%s: %s", what, clip(r.text()))
		code = "fault"
	}
	l.count(what, code)
	return code == "ok"
}

func (l *witness) count(what, outcome string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.done[what+": "+outcome]++
}

func (l *witness) timed(what string, d time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.times[what] = append(l.times[what], d)
}

// foreign picks a handle of some kind that belongs to another; empty when there is none.
func (l *witness) foreign(who *tenant, prefix string) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	all := l.seen
	if prefix == "" {
		all = l.joined
	}
	for id, owner := range all { // in no order
		if owner != who && strings.HasPrefix(id, prefix) {
			return id
		}
	}
	return ""
}

func (l *witness) join(id string, who *tenant) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.joined[id] = who
}

// percentile is what so many of a hundred calls for something did not exceed.
func (l *witness) percentile(what string, p float64) time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	all := l.times[what]
	if len(all) == 0 {
		return math.MaxInt64
	}
	slices.Sort(all)
	return all[min(len(all)-1, int(float64(len(all))*p/100))].Round(time.Millisecond)
}

// report tells what was done.
func (l *witness) report() {
	var all strings.Builder
	for _, what := range slices.Sorted(maps.Keys(l.done)) {
		fmt.Fprintf(&all, "\n  %6d  %s", l.done[what], what)
	}
	for _, what := range slices.Sorted(maps.Keys(l.times)) {
		fmt.Fprintf(&all, "\n  p50 %v, p99 %v  %s", l.percentile(what, 50), l.percentile(what, 99), what)
	}
	l.t.Logf("done:%s", all.String())
}

// audited sees in the audit log that nobody was served in another's session.
func (l *witness) audited(file string) {
	text, err := os.ReadFile(file)
	if err != nil {
		l.t.Fatal(err)
	}
	owners := map[string]*tenant{}
	for id, owner := range l.seen {
		sum := sha256.Sum256([]byte(id))
		owners[hex.EncodeToString(sum[:8])] = owner
	}
	served, refused := 0, 0
	for line := range strings.Lines(string(text)) {
		var r struct{ Phase, Principal, Tool, Session, Exec, Code string }
		if err := jsonInto(line, &r); err != nil {
			l.t.Fatalf("%v: %s", err, line)
		}
		for _, hash := range []string{r.Session, r.Exec} {
			owner := owners[hash]
			switch {
			case owner == nil || r.Phase != "end":
			case owner.name == r.Principal:
				served++
			// Destroying what is not there succeeds: that it is still there is seen by its owner.
			case r.Code == "ok" && r.Tool != "session_destroy":
				l.fault("the audit log has %s served in a session of %s: %s", r.Principal, owner.name, line)
			default:
				refused++
			}
		}
	}
	l.t.Logf("audit log: %d handles served to their owners, %d refused to others", served, refused)
	if served == 0 || refused == 0 {
		l.t.Error("the audit log shows nothing")
	}
}
