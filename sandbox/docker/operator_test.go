package docker

import (
	"archive/tar"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"caisson/sandbox"
)

func TestTX13_D31_SecurityOptionsOfARule(t *testing.T) {
	p := &Provider{seccomp: "seccomp=OURS"}
	file := filepath.Join(t.TempDir(), "profile.json")
	if err := os.WriteFile(file, []byte(`{"defaultAction":"SCMP_ACT_ALLOW"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	colon := filepath.Join(t.TempDir(), "a:b.json")
	if err := os.Symlink(file, colon); err != nil {
		t.Fatal(err)
	}
	for entry, want := range map[string]string{"label=type:svirt_t": "label type:svirt_t", "label:disable": "label disable", "apparmor=a=b": "apparmor a=b", "no-new-privileges": "no-new-privileges "} {
		if name, value := sandbox.SecurityOption(entry); name+" "+value != want {
			t.Errorf("%s: %q, %q", entry, name, value)
		}
	}
	for _, c := range []struct {
		capDrop, given, want []string
		open                 bool
		refused              string
	}{
		{[]string{"ALL"}, []string{"no-new-privileges"}, []string{"no-new-privileges", "seccomp=OURS"}, false, ""},
		{nil, nil, []string{"seccomp=OURS"}, false, ""},
		{[]string{"NET_RAW"}, []string{"no-new-privileges=false"}, []string{"no-new-privileges=false", "seccomp=OURS"}, false, ""},
		{nil, []string{"seccomp=unconfined", "no-new-privileges"}, []string{"no-new-privileges", "seccomp=unconfined"}, false, ""},
		{nil, []string{"seccomp:unconfined"}, []string{"seccomp=unconfined"}, false, ""},
		{nil, []string{"seccomp=engine"}, nil, false, ""},
		{nil, []string{"seccomp=" + colon}, []string{`seccomp={"defaultAction":"SCMP_ACT_ALLOW"}`}, false, ""},
		{nil, []string{"seccomp=" + file}, []string{`seccomp={"defaultAction":"SCMP_ACT_ALLOW"}`}, false, ""},
		{nil, []string{"systempaths=unconfined"}, []string{"seccomp=OURS"}, true, ""},
		{nil, []string{"seccomp=" + file + ".not"}, nil, false, "a profile that this server can read"},
		{nil, []string{"systempaths=x"}, nil, false, "unconfined"},
		{nil, []string{"writable-cgroups=true"}, nil, false, "no security option"},
	} {
		h, err := p.hardening(t.Context(), &sandbox.OperatorSpec{CapDrop: c.capDrop, SecurityOpt: c.given})
		if c.refused != "" {
			wantError(t, err, sandbox.KindRejected, "security_opt", c.refused)
			continue
		}
		if err != nil || !slices.Equal(h.capDrop, c.capDrop) || !slices.Equal(h.securityOpt, c.want) || h.allOfProc != c.open {
			t.Errorf("%q: %+v, %v", c.given, h, err)
		}
		_, host, _ := createBody(blueprint{seccomp: p.seccomp, chosen: h})
		if !slices.Equal(host.CapDrop, c.capDrop) || !slices.Equal(host.SecurityOpt, c.want) || (len(host.MaskedPaths) == 0) != c.open || host.MaskedPaths == nil || host.Privileged || len(host.CapAdd) > 0 {
			t.Errorf("%q: %+v", c.given, host)
		}
	}
	if h, err := p.hardening(t.Context(), nil); h != nil || err != nil {
		t.Errorf("a client's session: %+v, %v", h, err)
	}
}

func TestTX13_AttackT01_RuntimesAndPullPoliciesOfARule(t *testing.T) {
	p := &Provider{cfg: Config{Runtime: "runsc", VMRuntime: "kata", PullPolicy: PullNever}}
	for _, c := range []struct {
		isolation   sandbox.Isolation
		asked, want string
	}{
		{"", "", "runsc"},
		{"", "crun", "crun"},
		{sandbox.IsolationVM, "", "kata"},
		{sandbox.IsolationVM, "kata", "kata"},
		{sandbox.IsolationVM, "runsc", "kata"}, // what a rule has that names none
		{sandbox.IsolationVM, "crun", ""},
	} {
		got, err := p.runtime(sandbox.Spec{Isolation: c.isolation, Operator: &sandbox.OperatorSpec{Runtime: c.asked}})
		if got != c.want || (err == nil) != (c.want != "") {
			t.Errorf("%+v: %q, %v", c, got, err)
		}
	}
	if p.pullPolicy(nil) != PullNever || p.pullPolicy(&sandbox.OperatorSpec{}) != PullNever || p.pullPolicy(&sandbox.OperatorSpec{PullPolicy: "always"}) != PullAlways {
		t.Error("pull policy")
	}
}

func TestD25_TX13_UsersOfARuleAreNeverRoot(t *testing.T) {
	passwd := testPasswd + "toor:x:0:0::/:/bin/sh\nzero:x:70:0::/zero:/bin/sh\ntwin:x:33:44::/twin:/bin/sh\n"
	for _, c := range []struct {
		user string
		want account
	}{
		{"web", account{33, 44, "web", "/var/www"}},
		{"twin", account{33, 44, "twin", "/twin"}},
		{"web:staff", account{33, 50, "web", "/var/www"}},
		{"4242", account{4242, 4242, "sandbox", workspacePath}},
		{"4242:50", account{4242, 50, "sandbox", workspacePath}},
		{"zero", account{70, 0, "zero", "/zero"}},
		{"root", account{}},
		{"0", account{}},
		{"0:50", account{}},
		{"00", account{}},
		{"toor", account{}},
		{"web:0", account{}},
		{"web:root", account{}},
		{"-1", account{}},
		{"nosuch", account{}},
		{"web:nosuch", account{}},
		{":50", account{}},
	} {
		got, err := engineImage{user: "root", asked: c.user}.account(parsePasswd([]byte(passwd)), parseGroup([]byte(testGroup)))
		if c.want == (account{}) {
			wantError(t, err, sandbox.KindRejected, "user")
		} else if err != nil || got.account != c.want {
			t.Errorf("%q: %+v, %v", c.user, got.account, err)
		}
	}
}

// TestTX03_TX19_WhatIsUploadedBeforeTheStart reads the tar, in the order in which it is
// laid out, of a container that has /tmp and nothing else.
func TestTX03_TX19_WhatIsUploadedBeforeTheStart(t *testing.T) {
	a := newArchive()
	c := &creation{facts: imageFacts{user: account{uid: 7, gid: 8}}, spec: sandbox.Spec{Operator: &sandbox.OperatorSpec{}}}
	known := map[string]bool{"/": true, "/tmp": true}
	err := errors.Join(c.parents(t.Context(), a, "/tmp", known), a.file("/tmp/x", 0o600, c.facts.user, "abc"), a.w.Close())
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for r := tar.NewReader(&a.buffer); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		content, _ := io.ReadAll(r)
		got = append(got, strings.Join([]string{h.Name, h.FileInfo().Mode().String(), account{uid: h.Uid, gid: h.Gid}.String(), string(content)}, " "))
	}
	if want := []string{"tmp/x -rw------- 7:8 abc"}; !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
}
