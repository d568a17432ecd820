package e2e_test

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

// door is a server with principals, whose metrics are read.
type door struct {
	*server
	file, metrics string
	ann, mallory  *tenant
}

var metricsAt = regexp.MustCompile(`metrics are served.*?(http://[0-9.:]+)/metrics`)

func newDoor(t *testing.T) *door {
	t.Helper()
	d := &door{file: filepath.Join(t.TempDir(), "principals.yml"), ann: newTenant("ann"), mallory: newTenant("mallory")}
	d.write(t, d.ann, d.mallory)
	d.server = start(t, launch{plain: true, http: true, env: []string{"SANDBOX_MCP_PRINCIPALS_FILE=" + d.file, "SANDBOX_MCP_METRICS_ADDR=127.0.0.1:0"}})
	m := d.stderr.find(metricsAt, d.exited, 10*time.Second)
	if m == nil {
		t.Fatalf("it does not say where its metrics are:\n%s", tail(d.stderr.String()))
	}
	d.metrics = m[1]
	return d
}

// write replaces the file of principals.
func (d *door) write(t *testing.T, who ...*tenant) {
	t.Helper()
	text := "principals:\n"
	for _, n := range who {
		text += n.entry("rate_per_minute: 1000000")
	}
	if err := os.WriteFile(d.file+".new", []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(d.file+".new", d.file); err != nil {
		t.Fatal(err)
	}
}

// enter begins a client session.
func (d *door) enter(t *testing.T, who *tenant) *webClient {
	t.Helper()
	c := newWebClient(d.url, who.token, false)
	if err := c.hello(t.Context()); err != nil {
		t.Fatal(err)
	}
	return c
}

// greet begins client sessions and says goodbye to none.
func (d *door) greet(t *testing.T, who *tenant, times int) {
	t.Helper()
	const together = 8
	var refused atomic.Int64
	each(together, together, func(int) {
		c := newWebClient(d.url, who.token, false)
		defer c.web.CloseIdleConnections()
		for range times / together {
			if status, _, _, err := c.send(t.Context(), http.MethodPost, "/mcp", initialize); err != nil || status != http.StatusOK {
				refused.Add(1)
			}
		}
	})
	if n := refused.Load(); n > 0 {
		t.Errorf("%d of %d were refused", n, times)
	}
}

// TestBugMT05_AttackT53_FiveThousandGreetings: the program forgets clients that say
// nothing more, keeps those that do, and gives back the memory of a principal that is gone.
func TestBugMT05_AttackT53_FiveThousandGreetings(t *testing.T) {
	t.Parallel()
	const bound, many = 1000, 5000
	d := newDoor(t)
	ann, mallory := d.enter(t, d.ann), d.enter(t, d.mallory)
	d.greet(t, d.mallory, 80)
	if err := mallory.alive(t.Context()); err != nil {
		t.Fatal(err)
	}
	before, quiet := d.rss(t), d.descriptors(t)
	var after [2]int64
	for round := range after {
		d.greet(t, d.mallory, many)
		if n := metric(t, d.metrics, "caisson_client_sessions"); n != bound+1 {
			t.Errorf("round %d: %v client sessions, %d are wanted", round, n, bound+1)
		}
		after[round] = d.rss(t)
		for _, c := range []*webClient{ann, mallory} {
			if err := c.alive(t.Context()); err != nil {
				t.Errorf("round %d: a client that is at work: %v", round, err)
			}
		}
		d.write(t, d.ann) // mallory goes
		if err := d.cmd.Process.Signal(syscall.SIGHUP); err != nil {
			t.Fatal(err)
		}
		eventually(t, 20*time.Second, "the clients of who is gone are forgotten", func() bool { return metric(t, d.metrics, "caisson_client_sessions") == 1 })
		d.write(t, d.ann, d.mallory)
		if err := d.cmd.Process.Signal(syscall.SIGHUP); err != nil {
			t.Fatal(err)
		}
		_ = mallory.close()
		mallory = newWebClient(d.url, d.mallory.token, false)
		eventually(t, 20*time.Second, "mallory is let in again", func() bool { return mallory.hello(t.Context()) == nil })
	}
	t.Logf("%d MiB resident before, %d and %d after %d greetings each", before>>20, after[0]>>20, after[1]>>20, many)
	if after[0] > before+48<<20 || after[1] > after[0]+16<<20 {
		t.Error("memory has grown")
	}
	eventually(t, 60*time.Second, "memory and descriptors are given back", func() bool {
		http.DefaultClient.CloseIdleConnections()
		return ann.alive(t.Context()) == nil && d.rss(t) < before+24<<20 && d.descriptors(t) <= quiet+4
	})
	t.Logf("%d MiB, %d descriptors, %d before", d.rss(t)>>20, d.descriptors(t), quiet)
}

// TestAttackT53_ADeafClientSlowsNobody: many large answers wait for a client of the
// program that reads none of them, while another is served as ever.
func TestAttackT53_ADeafClientSlowsNobody(t *testing.T) {
	t.Parallel()
	const connections, requests, calls = 16, 16, 200
	d := newDoor(t)
	mallory, ann := d.enter(t, d.mallory), d.enter(t, d.ann)
	r, err := attempt(t, mallory, "session_create", args{})
	if err == nil {
		_, err = attempt(t, mallory, "upload", args{"session_id": sessionID(r), "path": "f", "content": strings.Repeat("y", 1<<20)})
	}
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	peak := sampleMemory(t, d.server, done)
	_, addr, _ := strings.Cut(d.url, "://")
	body := `{"jsonrpc":"2.0","id":1,"method":"resources/read","params":{"uri":"sandbox://` + sessionID(r) + `/f"}}`
	request := fmt.Sprintf("POST /mcp HTTP/1.1\r\nHost: %s\r\nAuthorization: Bearer %s\r\nMcp-Session-Id: %s\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s",
		addr, d.mallory.token, mallory.session, len(body), body)
	var deaf []net.Conn
	for range connections {
		c, err := net.Dial("tcp", addr)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		_ = c.(*net.TCPConn).SetReadBuffer(4096)
		if _, err := io.WriteString(c, strings.Repeat(request, requests)); err != nil {
			t.Fatal(err)
		}
		deaf = append(deaf, c)
	}
	var took []time.Duration
	for range calls {
		began := time.Now()
		if _, err := attempt(t, ann, "session_list", args{}); err != nil {
			t.Error(err)
		}
		took = append(took, time.Since(began))
	}
	slices.Sort(took)
	t.Logf("session_list beside %d deaf connections: p50 %v, p99 %v", connections, took[calls/2], took[calls*99/100])
	if p99 := took[calls*99/100]; p99 > patient(500*time.Millisecond) {
		t.Errorf("p99 %v", p99)
	}
	for _, c := range deaf {
		_ = c.Close()
	}
	eventually(t, 30*time.Second, "no call of theirs is left", func() bool { return metric(t, d.metrics, "caisson_calls_under_way") == 0 })
	close(done)
	if most := <-peak; most > 256<<20 {
		t.Errorf("%d MiB resident at the most", most>>20)
	} else {
		t.Logf("%d MiB resident at the most", most>>20)
	}
}
