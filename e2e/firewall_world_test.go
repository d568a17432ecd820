package e2e_test

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"golang.org/x/sys/unix"
)

// Addresses of the played world.
const (
	publicHost  = "203.0.113.7"
	publicHost6 = "2001:db8:7::7"
	engineSide  = "198.51.100.1" // the engine's host on the link to the world
	engineSide6 = "2001:db8:77::1"
	sessions6   = "2001:db8:5e55::/64"
)

// world is all that is beyond an engine's host: one network namespace that holds every
// address which a test dials, answers on a few ports, and counts what reaches it. The
// engine's default route ends there, and nothing leaves it.
type world struct {
	t        *testing.T
	ns       string // of the world
	engine   string // the engine's namespace
	resolver string

	mu      sync.Mutex
	hits    map[string]int // accepted connections, by the address and port they were meant for
	asked   []string       // by which resolver, and for which name
	serving sync.WaitGroup
}

// surround plays the world around an engine.
func surround(t *testing.T, e *ownEngine) *world {
	t.Helper()
	name := filepath.Base(e.vars["CAISSON_ENGINE_NETNS"]) + "-world"
	host, _, err := net.SplitHostPort(strings.TrimPrefix(e.vars["SANDBOX_DOCKER_HOST"], "tcp://"))
	if err != nil {
		t.Fatal(err)
	}
	w := &world{
		t: t, ns: "/run/netns/" + name, engine: e.vars["CAISSON_ENGINE_NETNS"],
		resolver: host[:strings.LastIndex(host, ".")] + ".53", hits: map[string]int{},
	}
	out(t, "ip", "netns", "add", name)
	t.Cleanup(func() { // takes the link with it
		if text, err := exec.Command("ip", "netns", "del", name).CombinedOutput(); err != nil {
			t.Errorf("%v: %s", err, text)
		}
	})
	t.Cleanup(w.serving.Wait) // the listeners are closed by then
	for _, line := range []string{
		"ip link add world0 type veth peer name engine0 netns " + name,
		"ip address add " + engineSide + "/30 dev world0",
		"ip address add " + engineSide6 + "/64 dev world0 nodad",
		"ip link set world0 up",
		"ip route add default via 198.51.100.2",
		"ip -6 route add default via 2001:db8:77::2",
		"ip route add " + w.resolver + " via 198.51.100.2",
	} {
		w.in(w.engine, line)
	}
	for _, line := range []string{
		"ip link set lo up",
		"ip address add 198.51.100.2/30 dev engine0",
		"ip -6 address add 2001:db8:77::2/64 dev engine0 nodad",
		"ip link set engine0 up",
		"ip -6 route add " + sessions6 + " via " + engineSide6,
	} {
		w.in(w.ns, line)
	}
	for _, prefix := range []string{"10.0.0.0/8", "100.64.0.0/10", "168.63.129.16", "169.254.0.0/16", "172.16.0.0/12", "192.168.0.0/16", "198.18.0.0/15", "203.0.113.0/24"} {
		w.in(w.ns, "ip route add local "+prefix+" dev lo")
	}
	for _, prefix := range []string{"fc00::/7", "64:ff9b::/96", "2002::/16", "2001:db8:7::/48"} {
		w.in(w.ns, "ip -6 route add local "+prefix+" dev lo")
	}
	// What is allowed is passed by, so that the last rule counts what must not arrive.
	for _, rule := range []string{
		"iptables -d 203.0.113.0/24", "iptables -d " + w.resolver, "iptables -d 198.51.100.0/30",
		"ip6tables -d 2001:db8::/32", "ip6tables -d fe80::/10", "ip6tables -d ff00::/8",
	} {
		tool, match, _ := strings.Cut(rule, " ")
		w.in(w.ns, tool+" -w -t raw -A PREROUTING -i engine0 "+match+" -j ACCEPT")
	}
	for _, tool := range []string{"iptables", "ip6tables"} {
		w.in(w.ns, tool+" -w -t raw -A PREROUTING -i engine0 -m comment --comment forbidden")
	}
	w.listen(w.ns, "world ", 53, 80, 443)
	w.listen(w.engine, "engine ", 22, 53, 80, 443, 2375, 8811, 9090, 18080)
	w.resolve(w.ns, w.resolver)
	return w
}

// in runs a command line in a network namespace.
func (w *world) in(ns, line string) string {
	w.t.Helper()
	return out(w.t, append([]string{"nsenter", "--net=" + ns}, strings.Fields(line)...)...)
}

// out runs a program that must succeed.
func out(t *testing.T, argv ...string) string {
	t.Helper()
	text, err := exec.Command(argv[0], argv[1:]...).CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v\n%s", strings.Join(argv, " "), err, text)
	}
	return string(text)
}

// inNamespace does what makes sockets, which then belong to a network namespace. The
// thread goes back: one that stays, as a program's first does, would make this program one
// of the engine's, which end with it.
func inNamespace(t *testing.T, path string, do func() error) {
	t.Helper()
	failed := make(chan error, 1)
	go func() {
		runtime.LockOSThread()
		failed <- func() error {
			own, err := os.Open("/proc/thread-self/ns/net")
			if err != nil {
				return err
			}
			defer own.Close()
			ns, err := os.Open(path)
			if err != nil {
				return err
			}
			defer ns.Close()
			if err := unix.Setns(int(ns.Fd()), unix.CLONE_NEWNET); err != nil {
				return err
			}
			done := do()
			if err := unix.Setns(int(own.Fd()), unix.CLONE_NEWNET); err != nil {
				return errors.Join(done, err) // the thread ends with this goroutine
			}
			runtime.UnlockOSThread()
			return done
		}()
	}()
	if err := <-failed; err != nil {
		t.Fatal(err)
	}
}

// listen accepts and counts connections to all addresses of a namespace.
func (w *world) listen(ns, who string, ports ...int) {
	w.t.Helper()
	for _, port := range ports {
		var l net.Listener
		inNamespace(w.t, ns, func() (err error) {
			l, err = net.Listen("tcp", ":"+strconv.Itoa(port))
			return err
		})
		w.closing(l)
		w.serving.Go(func() {
			for {
				conn, err := l.Accept()
				if err != nil {
					return
				}
				w.mu.Lock()
				w.hits[who+conn.LocalAddr().String()]++
				w.mu.Unlock()
				conn.Close()
			}
		})
	}
}

func (w *world) closing(c io.Closer) { w.t.Cleanup(func() { _ = c.Close() }) }

// resolve answers that there is no such name, and remembers what was asked.
func (w *world) resolve(ns, address string) {
	w.t.Helper()
	var conn net.PacketConn
	inNamespace(w.t, ns, func() (err error) {
		conn, err = net.ListenPacket("udp", net.JoinHostPort(address, "53"))
		return err
	})
	w.closing(conn)
	w.serving.Go(func() {
		buf := make([]byte, 1500)
		for {
			n, from, err := conn.ReadFrom(buf)
			if err != nil {
				return
			}
			if n < 12 || binary.BigEndian.Uint16(buf[4:]) == 0 {
				continue
			}
			w.mu.Lock()
			w.asked = append(w.asked, address+" "+question(buf[12:n]))
			w.mu.Unlock()
			buf[2] |= 0x80
			buf[3] = buf[3]&0xf0 | 3
			_, _ = conn.WriteTo(buf[:n], from)
		}
	})
}

// question reads the name of a question.
func question(b []byte) string {
	var labels []string
	for len(b) > 0 && b[0] > 0 && int(b[0]) < len(b) {
		labels = append(labels, string(b[1:1+b[0]]))
		b = b[1+b[0]:]
	}
	return strings.Join(labels, ".")
}

// forget begins counting anew.
func (w *world) forget() {
	w.t.Helper()
	for _, tool := range []string{"iptables", "ip6tables"} {
		w.in(w.ns, tool+" -w -t raw -Z PREROUTING")
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	clear(w.hits)
	w.asked = nil
}

// forbidden counts the packets, of whatever protocol, that came to addresses which nobody
// may reach.
func (w *world) forbidden() int {
	w.t.Helper()
	return counted(w.t, w.ns, "forbidden")
}

// counted sums the counters of a namespace's rules with a comment, of both families.
func counted(t *testing.T, ns, comment string) int {
	t.Helper()
	total := 0
	for _, tool := range []string{"iptables", "ip6tables"} {
		text := out(t, "nsenter", "--net="+ns, tool, "-w", "-t", "raw", "-nvxL", "PREROUTING")
		seen := false
		for line := range strings.Lines(text) {
			if !strings.Contains(line, "/* "+comment+" */") {
				continue
			}
			n, err := strconv.Atoi(strings.Fields(line)[0])
			if err != nil {
				t.Fatal(err)
			}
			total, seen = total+n, true
		}
		if !seen {
			t.Fatalf("no rule counts %s:\n%s", comment, text)
		}
	}
	return total
}

// reached lists what accepted connections, and how many.
func (w *world) reached() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	var all []string
	for _, at := range slices.Sorted(maps.Keys(w.hits)) {
		all = append(all, fmt.Sprintf("%s (%d)", at, w.hits[at]))
	}
	return all
}

// lookups lists what resolvers were asked, each as the resolver and the name, where that
// contains a text.
func (w *world) lookups(part string) []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(w.asked), func(one string) bool { return !strings.Contains(one, part) })
}
