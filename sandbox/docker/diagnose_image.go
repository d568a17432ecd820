package docker

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"caisson/sandbox"
)

// missingFromImage lists what an image lacks of the contract.
type missingFromImage []string

func (m missingFromImage) Error() string { return "missing: " + strings.Join(m, ", ") }

// checkImage makes a session of the image, which looks at all that it needs, and
// tells of each command of the contract whether it is there.
func (p *Provider) checkImage(ctx context.Context, image string) []Check {
	c := Check{Name: "image " + image, Mend: "docs/images.md says what an image must have, and how the default one is built on the engine"}
	p.images.forget()
	id := sandbox.NewSessionID()
	s, err := p.Create(ctx, id, sandbox.Spec{Owner: sandbox.Owner{Name: "doctor"}, Image: image, Network: sandbox.NetworkNone, Durability: sandbox.Ephemeral, TTL: time.Minute}, nil)
	if err != nil {
		c.Detail = textOf(err)
		if sandbox.KindOf(err) == sandbox.KindFirewall {
			c.Detail, c.Mend = "not looked at: no session is made while the egress firewall is not proved", "mend that first, and ask again"
		}
		return append([]Check{c}, checkCommands(err)...)
	}
	ctx, cancel := cleanup(ctx)
	defer cancel()
	info := s.Info()
	if _, err := p.Destroy(ctx, id); err != nil {
		c.Detail = textOf(err)
		return []Check{c}
	}
	c.OK, c.Mend = true, ""
	user := s.(*Session).user
	c.Detail = fmt.Sprintf("has all that a session needs; commands run as %s (%s), home %s", user.name, user, user.home)
	if !info.HasBash {
		c.Detail += ", shell sh (there is no bash)"
	}
	checks := []Check{}
	for _, n := range info.Notes {
		if limit, ok := checkDisk(n); ok {
			checks = append(checks, limit)
			continue
		}
		c.Warn, c.Detail = true, c.Detail+"; "+n.Text
	}
	return slices.Concat([]Check{c}, checks, checkCommands(nil))
}

// checkDisk reads from a session's note how its disk is limited (D32).
func checkDisk(n sandbox.Note) (Check, bool) {
	c := Check{Name: "limit on disk", OK: true, Detail: n.Text}
	switch n.Code {
	case sandbox.NoteDiskQuota:
		return c, true
	case sandbox.NoteDiskWatched:
		c.Warn = true
		c.Mend = "for real quotas keep the engine's data on xfs that is mounted with pquota: docs/disk.md"
		return c, true
	}
	return Check{}, false
}

// checkCommands has a line for each thing of the image contract. It has none
// where the check of the image never came so far as to look.
func checkCommands(err error) []Check {
	var missing missingFromImage
	if err != nil && !errors.As(err, &missing) {
		return nil
	}
	names := append(slices.Clone(contractCommands), contractRest...)
	checks := make([]Check, len(names))
	for i, name := range names {
		checks[i] = Check{Name: "image: " + name, OK: true, Detail: "there"}
		if slices.Contains(missing, name) {
			checks[i].OK, checks[i].Detail, checks[i].Mend = false, "missing", "add it to the image, on /usr/bin:/bin:/usr/sbin:/sbin"
		}
	}
	return checks
}
