package docker

import (
	"bytes"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// tried runs the program in testdata/syscalls in a session and returns its lines
// by their names.
func tried(t *testing.T, s *Session) map[string]string {
	t.Helper()
	program := filepath.Join(t.TempDir(), "syscalls")
	build := exec.Command("go", "build", "-o", program, "./testdata/syscalls")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	file, err := os.Open(program)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	var stderr bytes.Buffer
	if code, err := s.pipe(t.Context(), []string{"sh", "-c", "cat >/tmp/syscalls && chmod 755 /tmp/syscalls"}, file, io.Discard, &stderr); code != 0 || err != nil {
		t.Fatal(code, err, stderr.String())
	}
	found := map[string]string{}
	for line := range strings.Lines(sh(t, s, "/tmp/syscalls")) {
		name, result, _ := strings.Cut(strings.TrimSpace(line), " ")
		found[name] = result
	}
	return found
}

// TestAttackT02_D20_SystemCallsAndSocketFamilies tries them one by one. Its
// control is the same program under a profile that denies nothing, where calls
// fail for other reasons or not at all.
func TestAttackT02_D20_SystemCallsAndSocketFamilies(t *testing.T) {
	t.Parallel()
	found := tried(t, create(t, provider(t), specOf("")))
	if len(found) < 45 {
		t.Fatalf("only %d were tried: %v", len(found), found)
	}
	for name, result := range found {
		if strings.HasPrefix(name, "allowed_") {
			if result != "ok" {
				t.Errorf("%s: %s", name, result)
			}
			continue
		}
		if result != "EPERM" {
			t.Errorf("%s: %s, want EPERM", name, result)
		}
	}
	open := filepath.Join(t.TempDir(), "open.json")
	if err := os.WriteFile(open, []byte(`{"defaultAction":"SCMP_ACT_ALLOW","syscalls":[]}`), 0o600); err != nil {
		t.Fatal(err)
	}
	cfg := engine(t)
	cfg.SeccompProfile = open
	free := tried(t, create(t, newProvider(t, cfg), specOf("")))
	for _, name := range []string{"io_uring_setup", "process_vm_readv", "personality_no_aslr", "AF_VSOCK", "NETLINK_AUDIT"} {
		if free[name] == "EPERM" {
			t.Errorf("the control: %s is denied without the profile too", name)
		}
	}
}

func TestAttackT02_LanguagesStillRun(t *testing.T) {
	t.Parallel()
	spec := specOf(debian)
	spec.MemoryMB = ptr(int64(512))
	s := create(t, provider(t), spec)
	for _, command := range []string{
		`python3 -c 'import socket,threading,subprocess,multiprocessing as m
t=threading.Thread(target=print,args=("t",)); t.start(); t.join()
a,b=socket.socketpair(); socket.create_server(("127.0.0.1",0)).close(); print(subprocess.check_output(["echo","sub"]).decode(), m.cpu_count()>0)'`,
		`node -e 'require("dns"); setTimeout(()=>console.log(require("os").networkInterfaces().lo!==undefined), 10)'`,
		`bash -c 'echo $((1+1)); coproc cat; echo ok'`,
	} {
		program, _, _ := strings.Cut(command, " ")
		if sh(t, s, "command -v "+program+" || true") == "" {
			continue
		}
		t.Logf("%s: %q", program, sh(t, s, command))
	}
}

func TestAttackT03_KernelFilesAreMasked(t *testing.T) {
	t.Parallel()
	s := create(t, provider(t), specOf(""))
	got := sh(t, s, `for f in /proc/kcore /proc/keys /proc/timer_list /proc/sched_debug /proc/slabinfo /proc/interrupts /proc/latency_stats; do
[ ! -e $f ] || { n=$(head -c 64 $f 2>/dev/null | wc -c); [ "$n" = 0 ] || echo "content of $f"; }; done
for d in /proc/acpi /proc/scsi /proc/asound /sys/firmware /sys/devices/virtual/powercap /sys/kernel/debug; do
[ ! -d $d ] || [ -z "$(ls -A $d 2>/dev/null)" ] || echo "content of $d"; done
for f in /proc/sys/kernel/core_pattern /proc/sysrq-trigger /sys/kernel/uevent_helper /proc/sys/kernel/modprobe /sys/fs/cgroup/*/release_agent /sys/fs/cgroup/release_agent /sys/fs/cgroup/devices/devices.allow /proc/irq/default_smp_affinity /proc/self/oom_score_adj; do
[ ! -e $f ] || ( : >>$f ) 2>/dev/null && [ -e $f ] && [ $f != /proc/self/oom_score_adj ] && echo "can open $f"; done
true`)
	if got != "" {
		t.Error(got)
	}
	if r := run(t, s, shell("echo -1000 >/proc/self/oom_score_adj")); r.code() == 0 {
		t.Error("a session can take itself out of the kernel's choice")
	}
}

func TestAttackT04_NoDevices(t *testing.T) {
	t.Parallel()
	s := create(t, provider(t), specOf(""))
	if r := run(t, s, shell("mknod /tmp/b b 254 0; mknod /tmp/c c 1 1; ls /tmp/b /tmp/c")); r.code() == 0 || r.stdout != "" {
		t.Errorf("%q", r.stdout)
	}
	got := sh(t, s, "ls /dev | sort | tr '\\n' ' '")
	for _, bad := range []string{"mem ", "kmsg", "sd", "vd", "loop", "kvm", "fuse"} {
		if strings.Contains(got, bad) {
			t.Errorf("/dev holds %q: %s", bad, got)
		}
	}
}
