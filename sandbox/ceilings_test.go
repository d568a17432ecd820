package sandbox_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"caisson/sandbox"
)

func bounded(c sandbox.Ceilings, s sandbox.Spec) sandbox.Spec {
	s.Ceilings = &c
	return s
}

func TestAttackT55_CFG14_CeilingsOfAPrincipalRefuseByFieldAndBound(t *testing.T) {
	server := policy
	server.MaxCPU, server.MaxMemoryMB, server.MaxPids, server.AllowedImages = 4, 4096, 1000, []string{"caisson-*", "debian:*"}
	tight := sandbox.Ceilings{
		MaxNetwork: sandbox.NetworkNone, MaxCPU: 0.5, MaxMemoryMB: 256, MaxPids: 100, MaxTTL: 10 * time.Minute, Images: []string{"caisson-*", "python:*"}, Workspaces: "alice-",
	}
	loose := sandbox.Ceilings{MaxNetwork: sandbox.NetworkEgress, MaxCPU: 64, MaxMemoryMB: 1 << 20, MaxPids: 1 << 20, MaxTTL: 1000 * time.Hour}
	for _, c := range []struct {
		name         string
		spec         sandbox.Spec
		field, bound string
	}{
		{"network", bounded(tight, sandbox.Spec{Network: sandbox.NetworkInternal}), "network", "you may have is none"},
		{"cpu", bounded(tight, sandbox.Spec{CPU: ptr(0.6)}), "cpu", "you may have in a session is 0.5 cores"},
		{"memory", bounded(tight, sandbox.Spec{MemoryMB: ptr(int64(257))}), "memory_mb", "you may have in a session is 256 MiB"},
		{"pids", bounded(tight, sandbox.Spec{Pids: ptr(int64(101))}), "pids", "you may have in a session is 100 processes"},
		{"ttl", bounded(tight, sandbox.Spec{TTL: 11 * time.Minute}), "ttl_seconds", "you may have is 600 s"},
		{"image of the server's, not of the principal's", bounded(tight, sandbox.Spec{Image: "debian:13"}), "image", "you may use"},
		{"image of the principal's, not of the server's", bounded(tight, sandbox.Spec{Image: "python:3"}), "image", "this server allows"},
		{"workspace", bounded(tight, sandbox.Spec{WorkspaceKey: "bob-1"}), "workspace_key", `"alice-"`},
		{"looser ceilings loosen nothing: network", bounded(loose, sandbox.Spec{Network: sandbox.NetworkEgress}), "network", "this server allows is internal"},
		{"cpu of the server", bounded(loose, sandbox.Spec{CPU: ptr(5.0)}), "cpu", "this server gives a session is 4 cores"},
		{"memory of the server", bounded(loose, sandbox.Spec{MemoryMB: ptr(int64(5000))}), "memory_mb", "this server gives a session is 4096 MiB"},
		{"pids of the server", bounded(loose, sandbox.Spec{Pids: ptr(int64(1001))}), "pids", "this server gives a session is 1000 processes"},
		{"ttl of the server", bounded(loose, sandbox.Spec{TTL: 25 * time.Hour}), "ttl_seconds", "this server allows is 86400 s"},
	} {
		_, err := server.Apply(c.spec)
		var e *sandbox.Error
		if !asError(err, &e) || e.Kind != sandbox.KindRejected || e.Field != c.field || !strings.Contains(e.Text, c.bound) {
			t.Errorf("%s: %v", c.name, err)
		}
	}
	for name, spec := range map[string]sandbox.Spec{
		"all at their bounds": {CPU: ptr(0.5), MemoryMB: ptr(int64(256)), Pids: ptr(int64(100)), TTL: 10 * time.Minute, WorkspaceKey: "alice-1", Image: "caisson-x"},
		"nothing named":       {},
	} {
		got, err := server.Apply(bounded(tight, spec))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if text := fmt.Sprintf("%v %v %v %v %v", *got.CPU, *got.MemoryMB, *got.Pids, got.TTL, got.Network); text != "0.5 256 100 10m0s none" {
			t.Errorf("%s: %s", name, text)
		}
	}
	// No ceiling of network opens one for who names none.
	if got, err := (sandbox.Policy{DefaultImage: "x"}).Apply(bounded(loose, sandbox.Spec{})); err != nil || got.Network != sandbox.NetworkNone {
		t.Errorf("%v %v", got.Network, err)
	}
}

func TestD31_TX13_TheOperatorsChoicesAndTheCeilingsThatHold(t *testing.T) {
	server := policy
	server.AllowedImages, server.MaxMemoryMB, server.MaxCPU = []string{"caisson-session*"}, 600, 2
	tool := func(o sandbox.OperatorSpec, s sandbox.Spec) sandbox.Spec {
		s.Owner, s.Operator = sandbox.Owner{Name: "a", Tools: true}, &o
		return s
	}
	got, err := server.Apply(tool(sandbox.OperatorSpec{MemoryBytes: 512<<20 + 1}, sandbox.Spec{Image: "caisson-tools:latest", TTL: 30 * 24 * time.Hour}))
	if err != nil || got.MemoryMB != nil || *got.Memory() != 512<<20+1 || got.TTL != 30*24*time.Hour {
		t.Fatalf("%+v %v", got, err)
	}
	if got, err := server.Apply(tool(sandbox.OperatorSpec{}, sandbox.Spec{MemoryMB: ptr(int64(7))})); err != nil || *got.Memory() != 7<<20 {
		t.Errorf("%+v %v", got, err)
	}
	for _, c := range []struct {
		name  string
		spec  sandbox.Spec
		kind  sandbox.Kind
		field string
	}{
		{"network", tool(sandbox.OperatorSpec{}, sandbox.Spec{Network: sandbox.NetworkEgress}), sandbox.KindRejected, "network"},
		{"cpu", tool(sandbox.OperatorSpec{}, sandbox.Spec{CPU: ptr(2.1)}), sandbox.KindRejected, "cpu"},
		{"memory, a byte over", tool(sandbox.OperatorSpec{MemoryBytes: 600<<20 + 1}, sandbox.Spec{}), sandbox.KindRejected, "memory_mb"},
		{"memory over a principal's", bounded(sandbox.Ceilings{MaxMemoryMB: 64}, tool(sandbox.OperatorSpec{MemoryBytes: 65 << 20}, sandbox.Spec{})), sandbox.KindRejected, "memory_mb"},
		{"pids over a principal's", bounded(sandbox.Ceilings{MaxPids: 64}, tool(sandbox.OperatorSpec{MemoryBytes: 64 << 20}, sandbox.Spec{Pids: ptr(int64(65))})), sandbox.KindRejected, "pids"},
		{"memory twice", tool(sandbox.OperatorSpec{MemoryBytes: 64 << 20}, sandbox.Spec{MemoryMB: ptr(int64(64))}), sandbox.KindInvalid, "memory_mb"},
		{"memory below the engine's floor", tool(sandbox.OperatorSpec{MemoryBytes: 1}, sandbox.Spec{}), sandbox.KindRejected, "mem_limit"},
		{"a workspace", tool(sandbox.OperatorSpec{}, sandbox.Spec{WorkspaceKey: "k"}), sandbox.KindRejected, "durability"},
		{"pull policy", tool(sandbox.OperatorSpec{PullPolicy: "daily"}, sandbox.Spec{}), sandbox.KindInvalid, "pull_policy"},
		{"relative file", tool(sandbox.OperatorSpec{Files: []sandbox.InitialFile{{Path: "x"}}}, sandbox.Spec{}), sandbox.KindInvalid, "files"},
		{"unclean file", tool(sandbox.OperatorSpec{Files: []sandbox.InitialFile{{Path: "/a/../b"}}}, sandbox.Spec{}), sandbox.KindInvalid, "files"},
		{"set-id file", tool(sandbox.OperatorSpec{Files: []sandbox.InitialFile{{Path: "/a", Mode: 0o4755}}}, sandbox.Spec{}), sandbox.KindInvalid, "files"},
		{"many files", tool(sandbox.OperatorSpec{Files: make([]sandbox.InitialFile, 65)}, sandbox.Spec{}), sandbox.KindTooLarge, ""},
	} {
		_, err := server.Apply(c.spec)
		var e *sandbox.Error
		if !asError(err, &e) || e.Kind != c.kind || e.Field != c.field {
			t.Errorf("%s: %v", c.name, err)
		}
	}
	// A client's spec gets none of it.
	if _, err := server.Apply(sandbox.Spec{Image: "caisson-tools:latest"}); sandbox.KindOf(err) != sandbox.KindRejected {
		t.Errorf("a client's image: %v", err)
	}
}

func TestTX04_FilesOfAToolNeverPrint(t *testing.T) {
	const canary = "s3cr3t-canary"
	spec := sandbox.Spec{Operator: &sandbox.OperatorSpec{Files: []sandbox.InitialFile{{Path: "/tmp/x", Content: sandbox.NewSecret(canary)}}}}
	for _, format := range []string{"%v", "%+v", "%#v"} {
		if text := fmt.Sprintf(format, *spec.Operator); strings.Contains(text, canary) || !strings.Contains(text, "redacted") {
			t.Errorf("%s: %s", format, text)
		}
	}
}

func TestD26_ToolsOfAnOwnerHaveAHashOfTheirOwn(t *testing.T) {
	seen := map[string]sandbox.Owner{}
	for _, o := range []sandbox.Owner{{Name: "a"}, {Name: "a", Principal: true}, {Name: "a", Tools: true}, {Name: "a", Principal: true, Tools: true}, {Name: "b", Tools: true}} {
		if other, twice := seen[o.Hash()]; twice || len(o.Hash()) != 16 {
			t.Errorf("%+v and %+v: %s", o, other, o.Hash())
		}
		seen[o.Hash()] = o
	}
}
