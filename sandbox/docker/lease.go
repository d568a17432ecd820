package docker

import (
	"context"
	"strings"
	"time"

	"github.com/containerd/errdefs"

	"caisson/sandbox"
)

// TakeLease makes this server the holder of its instance's lease (sandbox.Leaser).
// Epochs are the engine's time in milliseconds, or one more than the highest that
// stands where that is later: so they rise even across a time without a lease.
func (p *Provider) TakeLease(ctx context.Context, length time.Duration) (sandbox.Lease, error) {
	const op = "take the lease"
	if !instanceForm.MatchString(p.cfg.Instance) {
		return sandbox.Lease{}, badSetting("SANDBOX_DOCKER_INSTANCE", "has characters other than letters, digits, dots, dashes and underscores")
	}
	if err := p.connect(ctx); err != nil {
		return sandbox.Lease{}, err
	}
	ctx, cancel := context.WithTimeout(ofLease(ctx), createLimit)
	defer cancel()
	began := time.Now()
	l, err := p.makeLease(ctx, 0, length)
	if err != nil {
		return sandbox.Lease{}, p.failed(op, err)
	}
	p.fence.hold(l, length, began)
	return l, nil
}

// makeLease makes a lease above all that stand, and the held one's epoch.
func (p *Provider) makeLease(ctx context.Context, above int64, length time.Duration) (sandbox.Lease, error) {
	now, err := p.engineTime(ctx)
	if err != nil {
		return sandbox.Lease{}, err
	}
	standing, err := p.standing(ctx)
	if err != nil {
		return sandbox.Lease{}, err
	}
	l := sandbox.Lease{Instance: p.cfg.Instance, Epoch: max(above+1, now.UnixMilli()), Expires: leaseEnd(now, length)}
	for _, other := range standing {
		if other.Instance == l.Instance {
			l.Epoch = max(l.Epoch, other.Epoch+1)
		}
	}
	if l.Ref, err = p.createLease(ctx, l, now); err != nil {
		return sandbox.Lease{}, err
	}
	if err := p.settleLease(ctx, l); err != nil {
		p.giveUpLease(ctx, l.Ref)
		return sandbox.Lease{}, err
	}
	return l, nil
}

// settleLease says KindFenced where another lease of the instance outranks this
// one, and removes those that it outranks.
func (p *Provider) settleLease(ctx context.Context, l sandbox.Lease) error {
	standing, err := p.standing(ctx)
	if err != nil {
		return err
	}
	var older []sandbox.Lease
	for _, other := range standing {
		switch {
		case other.Instance != l.Instance || other.Ref == l.Ref:
		case outranks(other, l):
			return fenced(l.Instance)
		default:
			older = append(older, other)
		}
	}
	for _, other := range older {
		if err := p.remove(ctx, other.Ref); err != nil {
			// It is outranked all the same, and the next renewal removes it.
			p.log.Warn("an older lease could not be removed", "lease", leaseName(other), "error", err)
		}
	}
	return nil
}

func fenced(instance string) *sandbox.Error {
	return sandbox.Errorf("keep the lease", sandbox.KindFenced, "another server has taken the lease of the instance %q", instance)
}

// giveUpLease removes a lease of ours that does not hold. Where that fails whoever
// holds the lease removes it.
func (p *Provider) giveUpLease(ctx context.Context, ref string) {
	ctx, cancel := cleanup(ctx)
	defer cancel()
	if err := p.remove(ctx, ref); err != nil {
		p.log.Warn("a lease that was given up could not be removed", "lease", ref, "error", err)
	}
}

// RenewLease lets a held lease end length from now (sandbox.Leaser). The name is
// changed by the container's id, so that a renewal whose answer was lost does not
// hinder the next one.
func (p *Provider) RenewLease(ctx context.Context, held sandbox.Lease, length time.Duration) (sandbox.Lease, error) {
	return p.renew(ctx, held, length, func() bool { return true })
}

// renew is RenewLease where needed says so once it is this call's turn; else the lease is
// returned as it is.
func (p *Provider) renew(ctx context.Context, held sandbox.Lease, length time.Duration, needed func() bool) (sandbox.Lease, error) {
	const op = "renew the lease"
	if err := p.connect(ctx); err != nil {
		return sandbox.Lease{}, err
	}
	ctx, cancel := context.WithTimeout(ofLease(ctx), createLimit)
	defer cancel()
	if err := p.fence.enter(ctx); err != nil {
		return sandbox.Lease{}, p.failed(op, err)
	}
	defer p.fence.leave()
	held = p.fence.newest(held)
	if !needed() {
		return held, nil
	}
	began := time.Now()
	l, err := p.renewLease(ctx, held, length)
	if sandbox.KindOf(err) == sandbox.KindFenced {
		p.fence.lose(held)
	}
	if err != nil {
		return sandbox.Lease{}, p.failed(op, err)
	}
	if l.Ref != held.Ref {
		p.fence.replace(held, l)
	}
	p.fence.hold(l, length, began)
	return l, nil
}

func (p *Provider) renewLease(ctx context.Context, held sandbox.Lease, length time.Duration) (sandbox.Lease, error) {
	now, err := p.engineTime(ctx)
	if err != nil {
		return sandbox.Lease{}, err
	}
	next := held
	next.Expires = leaseEnd(now, length)
	err = p.api.ContainerRename(ctx, held.Ref, leaseName(next))
	gone := errdefs.IsNotFound(err)
	if err != nil && !gone && !isSameName(err) {
		return sandbox.Lease{}, err
	}
	if err := p.settleLease(ctx, held); err != nil {
		if !gone && sandbox.KindOf(err) == sandbox.KindFenced {
			p.giveUpLease(ctx, held.Ref)
		}
		return sandbox.Lease{}, err
	}
	if gone {
		p.log.Warn("the lease was removed by somebody who took none; it is made again", "lease", leaseName(held))
		return p.makeLease(ctx, held.Epoch, length)
	}
	return next, nil
}

// isSameName says whether a rename failed because the name is as it was asked for.
func isSameName(err error) bool {
	return strings.Contains(err.Error(), "same name as its current name")
}

// DropLease removes a lease (sandbox.Leaser). Another instance's that was renewed
// since it was read is not removed: KindBusy.
func (p *Provider) DropLease(ctx context.Context, l sandbox.Lease) error {
	const op = "drop the lease"
	if err := p.connect(ctx); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ofLease(ctx), createLimit)
	defer cancel()
	if l.Instance == p.cfg.Instance {
		l = p.fence.newest(l)
		defer p.fence.drop(l)
	}
	c, err := p.api.ContainerInspect(ctx, l.Ref)
	if errdefs.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return p.failed(op, err)
	}
	now, ok := readLease(c.ID, strings.TrimPrefix(c.Name, "/"), c.Config.Labels)
	switch {
	case !ok || now.Instance != l.Instance || now.Epoch != l.Epoch:
		return sandbox.Errorf(op, sandbox.KindInternal, "what the lease names is another lease, or none")
	case l.Instance != p.cfg.Instance && now.Expires.After(l.Expires):
		return sandbox.Errorf(op, sandbox.KindBusy, "the lease of the instance %q was renewed meanwhile", l.Instance)
	}
	if err := p.remove(ctx, l.Ref); err != nil {
		return p.failed(op, err)
	}
	return nil
}

// Leases returns the newest lease of each instance, and the engine's time
// (sandbox.Leaser). The time is asked for first: a slow answer makes no lease look
// older than it is.
func (p *Provider) Leases(ctx context.Context) ([]sandbox.Lease, time.Time, error) {
	const op = "list leases"
	if err := p.connect(ctx); err != nil {
		return nil, time.Time{}, err
	}
	now, err := p.engineTime(ctx)
	if err != nil {
		return nil, time.Time{}, p.failed(op, err)
	}
	standing, err := p.standing(ctx)
	if err != nil {
		return nil, time.Time{}, p.failed(op, err)
	}
	newest := map[string]sandbox.Lease{}
	for _, l := range standing {
		if other, ok := newest[l.Instance]; !ok || outranks(l, other) {
			newest[l.Instance] = l
		}
	}
	leases := make([]sandbox.Lease, 0, len(newest))
	for _, l := range newest {
		leases = append(leases, l)
	}
	return leases, now, nil
}
