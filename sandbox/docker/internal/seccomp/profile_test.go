//go:build linux

package main

import (
	"bytes"
	"encoding/json"
	"os"
	"testing"
)

// TestD20_ProfileIsCurrent fails when the committed profile is not what the
// generator makes.
func TestD20_ProfileIsCurrent(t *testing.T) {
	want, err := render()
	if err != nil {
		t.Fatal(err)
	}
	have, err := os.ReadFile("../../seccomp.json")
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(have, want) {
		t.Fatal("sandbox/docker/seccomp.json is stale; run: go generate ./sandbox/docker")
	}
}

// TestD20_ProfileDenies reads the profile as a filter would.
func TestD20_ProfileDenies(t *testing.T) {
	out, err := render()
	if err != nil {
		t.Fatal(err)
	}
	var profile struct {
		DefaultAction string
		ArchMap       []any
		Architectures []any
		Syscalls      []struct {
			Names    []string
			Action   string
			Args     []any
			Includes struct{ Caps []string }
		}
	}
	if err := json.Unmarshal(out, &profile); err != nil {
		t.Fatal(err)
	}
	if profile.DefaultAction != "SCMP_ACT_ERRNO" || len(profile.ArchMap)+len(profile.Architectures) != 0 {
		t.Fatalf("default %q, architectures listed", profile.DefaultAction)
	}
	banned := map[string]bool{}
	for _, name := range []string{
		"io_uring_setup", "io_uring_enter", "io_uring_register", "bpf", "perf_event_open", "userfaultfd",
		"keyctl", "add_key", "request_key", "unshare", "setns", "mount", "umount2", "fsopen", "fsmount", "open_tree", "move_mount",
		"open_by_handle_at", "kexec_load", "kexec_file_load", "init_module", "finit_module", "delete_module",
		"process_vm_readv", "process_vm_writev", "pidfd_getfd", "swapon", "acct", "quotactl", "pivot_root", "chroot", "reboot", "socketcall",
	} {
		banned[name] = true
	}
	for _, rule := range profile.Syscalls {
		if len(rule.Includes.Caps) > 0 {
			t.Errorf("a rule for holders of %v", rule.Includes.Caps)
		}
		for _, name := range rule.Names {
			if rule.Action == "SCMP_ACT_ALLOW" && banned[name] {
				t.Errorf("%s is allowed", name)
			}
			if (name == "socket" || name == "socketpair") && len(rule.Args) == 0 {
				t.Errorf("%s is allowed for every family", name)
			}
		}
	}
}
