package docker

import (
	"strings"
	"testing"

	"caisson/sandbox"
)

const testPasswd = "root:x:0:0:root:/root:/bin/sh\nagent:x:1000:1000::/home/agent:/bin/sh\nweb:x:33:44:www:/var/www:/bin/false\nbroken:line\n"

const testGroup = "root:x:0:\nagent:x:1000:\nwww:x:44:\nstaff:x:50:\n"

func TestD25_WhoCommandsRunAs(t *testing.T) {
	for _, c := range []struct {
		user, passwd, group string
		want                account
		noUser, noGroup     bool
	}{
		{"", testPasswd, testGroup, account{1000, 1000, "agent", "/home/agent"}, false, false},
		{"root", testPasswd, testGroup, account{1000, 1000, "agent", "/home/agent"}, false, false},
		{"0", testPasswd, testGroup, account{1000, 1000, "agent", "/home/agent"}, false, false},
		{"0:50", testPasswd, testGroup, account{1000, 1000, "agent", "/home/agent"}, false, false},
		{"root:root", "", "", account{}, false, false}, // refused: no such user
		{"", "", "", account{1000, 1000, "sandbox", workspacePath}, true, true},
		{"", "root:x:0:0::/:/bin/sh\nsandbox:x:5:5::/:/bin/sh\n", "root:x:0:\nsandbox1:x:7:\n", account{1000, 1000, "sandbox2", workspacePath}, true, true},
		{"web", testPasswd, testGroup, account{33, 44, "web", "/var/www"}, false, false},
		{"33", testPasswd, testGroup, account{33, 44, "web", "/var/www"}, false, false},
		{"web:staff", testPasswd, testGroup, account{33, 50, "web", "/var/www"}, false, false},
		{"web:77", testPasswd, testGroup, account{33, 77, "web", "/var/www"}, false, true},
		{"4242", testPasswd, testGroup, account{4242, 0, "sandbox", workspacePath}, true, false},
		{"4242:4242", testPasswd, testGroup, account{4242, 4242, "sandbox", workspacePath}, true, true},
		{"nosuch", testPasswd, testGroup, account{}, false, false},
		{"web:nosuch", testPasswd, testGroup, account{}, false, false},
		{"-1", testPasswd, testGroup, account{}, false, false},
	} {
		got, err := resolveUser(c.user, parsePasswd([]byte(c.passwd)), parseGroup([]byte(c.group)))
		if c.want == (account{}) {
			wantError(t, err, sandbox.KindImageUnusable, "", "USER")
			continue
		}
		if err != nil || got.account != c.want || got.noUser != c.noUser || got.noGroup != c.noGroup {
			t.Errorf("%q: %+v (no user %v, no group %v), %v; want %+v", c.user, got.account, got.noUser, got.noGroup, err, c)
		}
		if got.uid == 0 {
			t.Errorf("%q: uid 0", c.user)
		}
	}
}

func TestD25_EntriesAreAddedOnlyWhereTheyLack(t *testing.T) {
	parse := func(user, passwd, group string) (string, string) {
		t.Helper()
		r, err := resolveUser(user, parsePasswd([]byte(passwd)), parseGroup([]byte(group)))
		if err != nil {
			t.Fatal(err)
		}
		newPasswd, newGroup := r.entries([]byte(passwd), []byte(group))
		return string(newPasswd), string(newGroup)
	}
	if p, g := parse("agent", testPasswd, testGroup); p != "" || g != "" {
		t.Errorf("written though nothing lacks: %q, %q", p, g)
	}
	p, g := parse("", "", "")
	if p != "root:x:0:0:root:/root:/bin/sh\nsandbox:x:1000:1000::/workspace:/bin/sh\n" || g != "root:x:0:\nsandbox:x:1000:\n" {
		t.Errorf("from nothing: %q, %q", p, g)
	}
	p, g = parse("7:0", strings.TrimSuffix(testPasswd, "\n"), testGroup)
	if p != testPasswd+"sandbox:x:7:0::/workspace:/bin/sh\n" || g != "" {
		t.Errorf("without a last line end: %q, %q", p, g)
	}
	if _, g = parse("web:77", testPasswd, testGroup); g != testGroup+"sandbox:x:77:\n" {
		t.Errorf("a group alone: %q", g)
	}
}
