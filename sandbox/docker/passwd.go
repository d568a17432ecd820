package docker

import (
	"bytes"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"caisson/sandbox"
)

// fallbackUID is whom commands run as where the image names nobody, or root (D25).
const fallbackUID = 1000

// addedName is the name of an account that we add.
const addedName = "sandbox"

// userLine and groupLine are entries of the image's account files.
type userLine struct {
	name     string
	uid, gid int
	home     string
}

type groupLine struct {
	name string
	gid  int
}

// resolved is the account that commands run as, and which of its entries the
// image's files lack.
type resolved struct {
	account
	noUser, noGroup bool
	names           []string // taken ones
}

// resolveUser finds whom an image's USER line means, the way the engine does, and
// replaces root (D25). imageUser is name, name:group, uid or uid:gid.
func resolveUser(imageUser string, users []userLine, groups []groupLine) (resolved, error) {
	user, group, hasGroup := strings.Cut(imageUser, ":")
	line, known, err := findUser(user, users)
	if err != nil {
		return resolved{}, err
	}
	if hasGroup && group != "" {
		if line.gid, err = findGroup(group, groups); err != nil {
			return resolved{}, err
		}
	}
	if user == "" || line.uid == 0 {
		line, known, err = findUser(strconv.Itoa(fallbackUID), users)
		if err != nil {
			return resolved{}, err
		}
		line.gid = fallbackUID
	}
	r := resolved{account: account{uid: line.uid, gid: line.gid, name: line.name, home: line.home}, noUser: !known}
	for _, u := range users {
		r.names = append(r.names, u.name)
	}
	for _, g := range groups {
		r.names = append(r.names, g.name)
	}
	r.noGroup = !slices.ContainsFunc(groups, func(g groupLine) bool { return g.gid == r.gid })
	if r.noUser {
		r.name, r.home = freeName(r.names), workspacePath
	}
	return r, nil
}

// findUser looks an account up by name or number. A number that has no entry is
// an account all the same, of the group 0 like the engine takes it.
func findUser(user string, users []userLine) (line userLine, known bool, err error) {
	if user == "" {
		return userLine{}, false, nil
	}
	uid, numErr := strconv.Atoi(user)
	for _, u := range users {
		if u.name == user || numErr == nil && u.uid == uid {
			return u, true, nil
		}
	}
	if numErr != nil || uid < 0 {
		return userLine{}, false, sandbox.Errorf("look into the image", sandbox.KindImageUnusable,
			"the image's USER is %s, and its /etc/passwd has no such user", strconv.Quote(oneLine(user, 64)))
	}
	return userLine{uid: uid}, false, nil
}

func findGroup(group string, groups []groupLine) (int, error) {
	gid, numErr := strconv.Atoi(group)
	for _, g := range groups {
		if g.name == group {
			return g.gid, nil
		}
	}
	if numErr != nil || gid < 0 {
		return 0, sandbox.Errorf("look into the image", sandbox.KindImageUnusable,
			"the image's USER names the group %s, and its /etc/group has no such group", strconv.Quote(oneLine(group, 64)))
	}
	return gid, nil
}

func freeName(taken []string) string {
	name := addedName
	for i := 1; slices.Contains(taken, name); i++ {
		name = addedName + strconv.Itoa(i)
	}
	return name
}

// entries returns the image's files with what they lack added; nil for a file
// that lacks nothing.
func (r resolved) entries(passwd, group []byte) (newPasswd, newGroup []byte) {
	if r.noUser {
		newPasswd = addLine(passwd, "root:x:0:0:root:/root:/bin/sh", fmt.Sprintf("%s:x:%d:%d::%s:/bin/sh", r.name, r.uid, r.gid, workspacePath))
	}
	if r.noGroup {
		newGroup = addLine(group, "root:x:0:", fmt.Sprintf("%s:x:%d:", freeGroup(r), r.gid))
	}
	return newPasswd, newGroup
}

// freeGroup is the account's own name, except where an old account's name is
// that of a group with another number.
func freeGroup(r resolved) string {
	if r.noUser {
		return r.name
	}
	return freeName(r.names)
}

// addLine adds a line to a file, which begins with first when it was empty.
func addLine(file []byte, first, line string) []byte {
	out := bytes.Clone(file)
	if len(out) == 0 {
		out = append(out, first+"\n"...)
	}
	if out[len(out)-1] != '\n' {
		out = append(out, '\n')
	}
	return append(out, line+"\n"...)
}

func parsePasswd(file []byte) (users []userLine) {
	for line := range strings.Lines(string(file)) {
		f := strings.Split(strings.TrimRight(line, "\r\n"), ":")
		if len(f) < 7 {
			continue
		}
		uid, errU := strconv.Atoi(f[2])
		gid, errG := strconv.Atoi(f[3])
		if errU == nil && errG == nil && f[0] != "" {
			users = append(users, userLine{name: f[0], uid: uid, gid: gid, home: f[5]})
		}
	}
	return users
}

func parseGroup(file []byte) (groups []groupLine) {
	for line := range strings.Lines(string(file)) {
		f := strings.Split(strings.TrimRight(line, "\r\n"), ":")
		if len(f) < 3 {
			continue
		}
		if gid, err := strconv.Atoi(f[2]); err == nil && f[0] != "" {
			groups = append(groups, groupLine{name: f[0], gid: gid})
		}
	}
	return groups
}
