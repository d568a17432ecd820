package e2e_test

import (
	"archive/tar"
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/mount"
)

var tiers = []string{"none", "internal", "egress"}

// status reads the lines of a /proc/*/status.
func statusOf(text string) map[string]string {
	fields := map[string]string{}
	for line := range strings.Lines(text) {
		if name, value, ok := strings.Cut(line, ":"); ok {
			fields[name] = strings.Join(strings.Fields(value), " ")
		}
	}
	return fields
}

// checkPrivileges holds a process to what every process in a session must be.
func checkPrivileges(t *testing.T, who string, s map[string]string) {
	t.Helper()
	for _, set := range []string{"CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"} {
		if s[set] != "0000000000000000" {
			t.Errorf("%s: %s is %q", who, set, s[set])
		}
	}
	if s["NoNewPrivs"] != "1" || s["Seccomp"] != "2" {
		t.Errorf("%s: NoNewPrivs %q, Seccomp %q", who, s["NoNewPrivs"], s["Seccomp"])
	}
	for _, ids := range []string{"Uid", "Gid"} {
		for id := range strings.FieldsSeq(s[ids]) {
			if id == "0" {
				t.Errorf("%s: %s is %q", who, ids, s[ids])
			}
		}
	}
}

func TestAttackT01_SES04_SES05_NoPrivilegeOnAnyTier(t *testing.T) {
	t.Parallel()
	a := connect(t, httpLegacy)
	others := map[string]string{} // namespace, and where it was seen
	for _, kind := range []string{"pid", "net", "ipc", "uts", "mnt"} {
		own, err := os.Readlink("/proc/self/ns/" + kind)
		if err != nil {
			t.Fatal(err)
		}
		others[own] = "the host"
	}
	for _, tier := range tiers {
		s := a.session(args{"network": tier})
		self, first := statusOf(a.sh(s, "cat /proc/self/status")), statusOf(a.sh(s, "cat /proc/1/status"))
		checkPrivileges(t, tier+", a command", self)
		checkPrivileges(t, tier+", process 1", first)
		if self["Uid"] == first["Uid"] || first["Uid"] == "" {
			t.Errorf("%s: process 1 runs as the session's user: %q", tier, first["Uid"])
		}
		if out := a.sh(s, "id -G"); strings.TrimSpace(out) != strings.Fields(self["Gid"])[0] {
			t.Errorf("%s: groups %q", tier, out)
		}
		box := the.engine.container(t, s)
		for _, kind := range []string{"pid", "net", "ipc", "uts", "mnt"} {
			ns, err := os.Readlink(fmt.Sprintf("/proc/%d/ns/%s", box.State.Pid, kind))
			if err != nil {
				t.Fatal(err)
			}
			if where := others[ns]; where != "" {
				t.Errorf("%s shares its %s namespace with %s", tier, kind, where)
			}
			others[ns] = "the session of tier " + tier
		}
	}
}

// A setuid program of root's is put into the container past Caisson, as an
// image could bring one along.
func TestSES04_ASetuidProgramRaisesNothing(t *testing.T) {
	t.Parallel()
	a := connect(t, stdioModern)
	s := a.session(nil)
	api, box := the.engine.api, the.engine.container(t, s).ID
	stream, _, err := api.CopyFromContainer(t.Context(), box, "/usr/bin/id")
	if err != nil {
		t.Fatal(err)
	}
	defer stream.Close()
	members := tar.NewReader(stream)
	header, err := members.Next()
	if err != nil {
		t.Fatal(err)
	}
	var planted bytes.Buffer
	w := tar.NewWriter(&planted)
	header.Name, header.Mode, header.Uid, header.Gid = "planted", 0o4755, 0, 0
	if err := w.WriteHeader(header); err != nil {
		t.Fatal(err)
	}
	if _, err := io.Copy(w, members); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if err := api.CopyToContainer(t.Context(), box, "/tmp", &planted, container.CopyToContainerOptions{}); err != nil {
		t.Fatal(err)
	}
	out := a.sh(s, "stat -c %u:%a /tmp/planted; /tmp/planted -u; id -u")
	if lines := strings.Fields(out); len(lines) != 3 || lines[0] != "0:4755" || lines[1] != lines[2] || lines[1] == "0" {
		t.Errorf("%q", out)
	}
}

func TestSES06_SES07_SES08_OneVolumeAndNoPrivilegeInTheEnginesOwnWords(t *testing.T) {
	t.Parallel()
	a := connect(t, stdioLegacy)
	for _, spec := range []args{nil, {"network": "egress"}, {"workspace_key": strings.Trim(the.run, "-")}} {
		s := a.session(spec)
		box := the.engine.container(t, s)
		h := box.HostConfig
		if h.Privileged || len(h.Binds) > 0 || len(h.Devices) > 0 || len(h.CapAdd) > 0 || len(h.VolumesFrom) > 0 || h.PidMode != "" || h.UsernsMode == "host" {
			t.Errorf("%v: privileged %v, binds %v, devices %v, capabilities %v, volumes of %v, pid %q, users %q",
				spec, h.Privileged, h.Binds, h.Devices, h.CapAdd, h.VolumesFrom, h.PidMode, h.UsernsMode)
		}
		if len(box.Mounts) != 1 || box.Mounts[0].Type != mount.TypeVolume || box.Mounts[0].Destination != "/workspace" || !box.Mounts[0].RW {
			t.Errorf("%v: mounts %+v", spec, box.Mounts)
		}
		if len(h.PortBindings) > 0 || h.NetworkMode == container.NetworkMode("host") {
			t.Errorf("%v: network %v, ports %v", spec, h.NetworkMode, h.PortBindings)
		}
		if key, _ := spec["workspace_key"].(string); key != "" {
			a.ok("session_destroy", args{"session_id": s})
			a.ok("workspace_delete", args{"workspace_key": key})
		}
	}
	hostile := args{"privileged": true, "cap_add": []string{"ALL"}, "binds": []string{"/:/host"}, "devices": []string{"/dev/kmsg"}, "volumes": args{"/": "/host"}, "user": "0"}
	for field, value := range hostile {
		a.fails("invalid_argument", "session_create", args{field: value})
	}
}

func TestSES09_NothingOfTheEngineIsInReach(t *testing.T) {
	t.Parallel()
	a := connect(t, httpModern)
	s := a.session(args{"network": "egress"})
	out := a.sh(s, `env; cat /proc/*/environ 2>/dev/null | tr '\0' '\n'; cat /proc/self/mountinfo`)
	address := strings.TrimPrefix(the.engine.vars["SANDBOX_DOCKER_HOST"], "tcp://")
	host, _, _ := strings.Cut(address, ":")
	for _, secret := range []string{host, "SANDBOX_", "DOCKER_HOST", "docker.sock", "cert.pem", "key.pem", the.engine.vars["CAISSON_ENGINE_DIR"] + "/client"} {
		if strings.Contains(out, secret) {
			t.Errorf("%q can be seen inside", secret)
		}
	}
	if found := a.sh(s, `ls -d /certs /var/run/docker.sock /run/docker.sock /run/containerd 2>/dev/null; find / -xdev \( -name '*.sock' -o -name 'key.pem' -o -name 'docker*' \) -not -path '/proc/*' -not -path '/usr/*' 2>/dev/null; true`); found != "" {
		t.Errorf("there is %q", found)
	}
	// A mount is whatever is not the root, the kernel's own trees or the three
	// files that the engine writes for every container.
	for line := range strings.Lines(a.sh(s, "cat /proc/self/mounts")) {
		fields := strings.Fields(line)
		target, kind := fields[1], fields[2]
		known := target == "/" || target == "/workspace" || strings.HasPrefix(target, "/proc") || strings.HasPrefix(target, "/sys") || strings.HasPrefix(target, "/dev") ||
			target == "/etc/hosts" || target == "/etc/hostname" || target == "/etc/resolv.conf" || target == "/sbin/docker-init" || target == "/usr/sbin/docker-init"
		if !known {
			t.Errorf("mounted besides: %s %s", target, kind)
		}
	}
}

// hostValues are settings of the host that a container must be unable to change.
var hostValues = []string{
	"/proc/sys/kernel/core_pattern", "/proc/sys/kernel/modprobe", "/proc/sys/vm/panic_on_oom", "/proc/sys/fs/binfmt_misc/status",
	"/sys/kernel/uevent_helper", "/proc/irq/default_smp_affinity",
}

func TestAttackT03_KernelFilesGiveNothingAndTakeNothing(t *testing.T) {
	t.Parallel()
	a := connect(t, sseLegacy)
	s := a.session(nil)
	before := map[string]string{}
	for _, file := range hostValues {
		if text, err := os.ReadFile(file); err == nil {
			before[file] = string(text)
		}
	}
	if len(before) == 0 {
		t.Fatal("none of the host's values can be read")
	}
	for _, file := range []string{"/proc/kcore", "/proc/keys", "/proc/timer_list", "/proc/sched_debug", "/proc/scsi", "/proc/acpi", "/proc/slabinfo", "/sys/firmware", "/sys/devices/virtual/powercap", "/proc/kmsg", "/proc/kallsyms"} {
		// All of a tree's files, or the file itself; the kernel's symbols are there
		// with their addresses blanked.
		out := a.sh(s, fmt.Sprintf(`find %s -type f -exec head -c 4096 {} + 2>/dev/null | grep -a '[1-9a-zA-Z]' | grep -av '^0000000000000000 ' | head -c 400; true`, file))
		if strings.TrimSpace(strings.ReplaceAll(out, "==>", "")) != "" {
			t.Errorf("%s gives %q", file, out)
		}
	}
	writes := append([]string{"/proc/sysrq-trigger", "/proc/bus/pci/00/00.0", "/sys/fs/cgroup/release_agent", "/sys/fs/cgroup/devices/devices.allow", "/sys/fs/cgroup/memory/release_agent", "/proc/1/oom_score_adj"}, hostValues...)
	out := a.sh(s, `for f in `+strings.Join(writes, " ")+`; do (echo caisson > $f) 2>/dev/null && echo "wrote $f"; done; true`)
	if out != "" {
		t.Errorf("%s", out)
	}
	for file, text := range before {
		if now, err := os.ReadFile(file); err != nil || string(now) != text {
			t.Errorf("%s changed from %q to %q (%v)", file, text, now, err)
		}
	}
}

func TestAttackT04_NoDeviceIsMadeOrOpened(t *testing.T) {
	t.Parallel()
	a := connect(t, stdioLegacy)
	s := a.session(nil)
	for _, node := range []string{"b 254 0", "c 1 1", "b 7 0"} {
		if x := a.exec(s, "mknod node "+node); x.exited(0) || !strings.Contains(x.Stderr, "not permitted") {
			t.Errorf("mknod %s: %v", node, x)
		}
	}
	busybox := tar.Header{Name: "su", Mode: 0o4755, Uid: 0, Gid: 0}
	device := tar.Header{Name: "disk", Typeflag: tar.TypeBlock, Devmajor: 254, Mode: 0o666}
	r := a.do("upload", args{"session_id": s, "path": "in", "content": b64(archive(t, []tar.Header{busybox, device})), "encoding": "base64", "extract": true})
	if !r.IsError {
		if !strings.Contains(r.text(), "disk") {
			t.Errorf("the device was dropped and nothing says so: %s", r.text())
		}
		if out := a.sh(s, "find in -type b -o -type c; stat -c %u in/su; id -u"); strings.HasPrefix(out, "in/disk") || strings.Contains(out, "\n0\n") || strings.HasPrefix(out, "0\n") {
			t.Errorf("extracted: %q", out)
		}
	} else if code := r.code(); code != "invalid_argument" && code != "not_supported" && code != "permission_denied" {
		t.Errorf("refused as %v %s", r.Meta, r.text())
	}
	if out := a.sh(s, `for d in /dev/*; do [ -b $d ] && echo $d; done; true`); out != "" {
		t.Errorf("block devices: %q", out)
	}
}

// dials tries addresses as a program in a session would, and prints those that
// answered and how long the longest try took.
const dials = `
import socket, sys, time
worst = 0.0
for target in sys.argv[1:]:
    host, port = target.rsplit(":", 1)
    began = time.monotonic()
    try:
        socket.create_connection((host, int(port)), timeout=3).close()
        print("open", target)
    except OSError:
        pass
    worst = max(worst, time.monotonic() - began)
print("worst", "slow" if worst > 1 else "quick")
`

func TestAttackT24_TheNoneTierHasNothingButLoopback(t *testing.T) {
	t.Parallel()
	a := connect(t, httpLegacy)
	s := a.session(nil)
	if out := a.sh(s, "ls /sys/class/net; cat /proc/net/route | tail -n +2; cat /proc/net/ipv6_route | grep -v ' lo$'; true"); out != "lo\n" {
		t.Errorf("interfaces and routes: %q", out)
	}
	address := strings.TrimPrefix(the.engine.vars["SANDBOX_DOCKER_HOST"], "tcp://")
	targets := []string{address, "172.17.0.1:2376", "169.254.169.254:80", "203.0.113.7:443", "192.0.2.53:53", "127.0.0.11:53", "[::1]:2376", "[2001:db8::1]:443"}
	out := a.exec(s, "", args{"command": nil, "shell": nil, "argv": append([]string{"python3", "-c", dials}, targets...)})
	if out.Stdout != "worst quick\n" {
		t.Errorf("dials: %v", out)
	}
	resolved := a.exec(s, `getent hosts example.invalid; cat /etc/resolv.conf`)
	took := time.Duration(resolved.DurationMS) * time.Millisecond
	if took > patient(2*time.Second) || strings.Contains(resolved.Stderr, "Usage") {
		t.Errorf("a look-up took %v: %v", took, resolved)
	}
}

func TestAttackT25_AListenerIsReachedFromItsOwnSessionOnly(t *testing.T) {
	t.Parallel()
	a := connect(t, stdioModern)
	const listener = `
import socket
s = socket.socket(); s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
s.bind(("0.0.0.0", 8080)); s.listen(); print("up", flush=True)
while True: s.accept()[0].close()
`
	for _, tier := range tiers {
		s, other := a.session(args{"network": tier}), a.session(args{"network": tier})
		x := into[execOut](t, a.ok("exec", args{"session_id": s, "argv": []string{"python3", "-c", listener}, "wait_for": "up", "wait_seconds": 20}))
		if x.Status != "running" || x.Stdout != "up\n" {
			t.Fatalf("%s: %v", tier, x)
		}
		if out := a.exec(s, "", args{"command": nil, "shell": nil, "argv": []string{"python3", "-c", dials, "127.0.0.1:8080"}}); !strings.HasPrefix(out.Stdout, "open") {
			t.Errorf("%s: not reached from its own session: %v", tier, out)
		}
		box := the.engine.container(t, s)
		for port, bound := range box.NetworkSettings.Ports {
			if len(bound) > 0 {
				t.Errorf("%s: %s is published at %v", tier, port, bound)
			}
		}
		for _, n := range box.NetworkSettings.Networks {
			if n.IPAddress == "" {
				continue
			}
			out := a.exec(other, "", args{"command": nil, "shell": nil, "argv": []string{"python3", "-c", dials, n.IPAddress + ":8080"}})
			if strings.Contains(out.Stdout, "open") || !strings.Contains(out.Stdout, "worst") {
				t.Errorf("%s: another session reaches it: %v", tier, out)
			}
		}
	}
}

// Names and kinds of files that a session may hold to confuse whoever looks.
const oddFiles = `
import os, socket
b = b"/workspace/odd/"
os.makedirs(b)
for n in [b"new\nline", b"esc\x1b[31m", "rtl\u202egnp.exe".encode(), b"-rf", b"n" * 255, b"bad\xff\xfeutf8", b"plain"]:
    open(b + n, "wb").write(b"x")
os.mkfifo(b + b"fifo")
socket.socket(socket.AF_UNIX).bind(b + b"sock")
os.symlink("/nowhere", b + b"dangling"); os.symlink("/etc/passwd", b + b"absolute"); os.symlink("../../etc", b + b"escaping")
open(b + b"setuid", "wb").write(b"x"); os.chmod(b + b"setuid", 0o4755)
`

func TestAttackT38_OddNamesAndKindsComeOutHarmless(t *testing.T) {
	t.Parallel()
	a := connect(t, httpModern)
	s := a.session(nil)
	if x := a.exec(s, "", args{"command": nil, "shell": nil, "argv": []string{"python3", "-c", oddFiles}}); !x.exited(0) {
		t.Fatalf("%v", x)
	}
	r := a.ok("list_files", args{"session_id": s, "path": "odd"})
	entries := into[struct{ Entries []struct{ Path, Type string } }](t, r).Entries
	kinds := map[string]string{}
	for _, e := range entries {
		kinds[filepath.Base(e.Path)] = e.Type
	}
	if len(entries) != 13 || kinds["plain"] != "file" || kinds["-rf"] != "file" || kinds["dangling"] != "link" || kinds[`bad\xff\xfeutf8`] != "file" {
		t.Errorf("%d entries: %v", len(entries), kinds)
	}
	if strings.ContainsAny(r.text(), "\x1b\u202e") {
		t.Errorf("control characters in the text: %q", r.text())
	}
	for _, name := range []string{"fifo", "sock", "dangling"} {
		if r := a.do("download", args{"session_id": s, "path": "odd/" + name}); !r.IsError || r.code() == "internal" || r.code() == "" {
			t.Errorf("download of %s: %v %s", name, r.Meta, r.text())
		}
	}
	if p := into[piece](t, a.ok("download", args{"session_id": s, "path": "odd/-rf"})); p.Content != "x" {
		t.Errorf("-rf: %+v", p)
	}
	whole := into[piece](t, a.ok("download", args{"session_id": s, "path": "odd"}))
	members := tar.NewReader(bytes.NewReader(whole.data(t)))
	files := 0
	for h, err := members.Next(); err == nil; h, err = members.Next() {
		switch {
		case strings.HasPrefix(h.Name, "/") || strings.Contains("/"+h.Name+"/", "/../"):
			t.Errorf("member %q leaves its place", h.Name)
		case h.Typeflag == tar.TypeFifo || h.Typeflag == tar.TypeBlock || h.Typeflag == tar.TypeChar:
			t.Errorf("member %q is of type %c", h.Name, h.Typeflag)
		case h.Typeflag == tar.TypeReg:
			files++
		}
	}
	if files < 8 {
		t.Errorf("%d files in the archive", files)
	}
}
