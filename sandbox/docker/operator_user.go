package docker

import (
	"strconv"
	"strings"

	"caisson/sandbox"
)

// account finds whom commands of an image run as: the operator's choice, or the image's.
func (i engineImage) account(users []userLine, groups []groupLine) (resolved, error) {
	if i.asked == "" {
		return resolveUser(i.user, users, groups)
	}
	return resolveAsked(i.asked, users, groups)
}

// resolveAsked finds the account that an operator has chosen. Root is refused whatever it is
// called, and never replaced (D25): who asks for it must not think to have got it. A number
// that the image does not know, without a group, is in the group of the same number and not,
// like an image's USER, in root's.
func resolveAsked(asked string, users []userLine, groups []groupLine) (resolved, error) {
	user, group, hasGroup := strings.Cut(asked, ":")
	line, known, err := findUser(user, users)
	if err != nil {
		return resolved{}, sandbox.Rejected("user", "the image has no user %s", strconv.Quote(oneLine(user, 64))).Because(err)
	}
	if !known {
		line.gid = line.uid
	}
	if hasGroup {
		if line.gid, err = findGroup(group, groups); err != nil {
			return resolved{}, sandbox.Rejected("user", "the image has no group %s", strconv.Quote(oneLine(group, 64))).Because(err)
		}
	}
	if line.uid <= 0 || hasGroup && line.gid == 0 {
		return resolved{}, sandbox.Rejected("user", "user %s is root in this image, and nothing runs as root", strconv.Quote(oneLine(asked, 64)))
	}
	r, err := resolveUser(strconv.Itoa(line.uid)+":"+strconv.Itoa(line.gid), users, groups)
	if known { // of two with one number, the one that was named
		r.name, r.home = line.name, line.home
	}
	return r, err
}
