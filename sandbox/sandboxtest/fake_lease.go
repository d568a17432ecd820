package sandboxtest

import (
	"context"
	"time"

	"caisson/sandbox"
)

// TakeLease implements sandbox.Leaser.
func (f *Fake) TakeLease(ctx context.Context, length time.Duration) (sandbox.Lease, error) {
	if err := f.pass(ctx, OpLease); err != nil {
		return sandbox.Lease{}, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	l := sandbox.Lease{Instance: f.instance, Epoch: f.leases[f.instance].Epoch + 1, Expires: f.now().Add(length)}
	f.leases[f.instance] = l
	return l, nil
}

// RenewLease implements sandbox.Leaser.
func (f *Fake) RenewLease(ctx context.Context, held sandbox.Lease, length time.Duration) (sandbox.Lease, error) {
	if err := f.pass(ctx, OpLease); err != nil {
		return sandbox.Lease{}, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.leases[f.instance].Epoch > held.Epoch {
		return sandbox.Lease{}, sandbox.Errorf("renew the lease", sandbox.KindFenced, "another server has taken the lease of %q", f.instance)
	}
	held.Expires = f.now().Add(length)
	f.leases[f.instance] = held
	return held, nil
}

// DropLease implements sandbox.Leaser.
func (f *Fake) DropLease(ctx context.Context, lease sandbox.Lease) error {
	if err := f.pass(ctx, OpLease); err != nil {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.leases[lease.Instance].Epoch == lease.Epoch {
		delete(f.leases, lease.Instance)
	}
	return nil
}

// Leases implements sandbox.Leaser.
func (f *Fake) Leases(ctx context.Context) ([]sandbox.Lease, time.Time, error) {
	if err := f.pass(ctx, OpLease); err != nil {
		return nil, time.Time{}, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	var all []sandbox.Lease
	for _, l := range f.leases {
		all = append(all, l)
	}
	return all, f.now(), nil
}

// now is the engine's time; f.mu is held.
func (f *engine) now() time.Time { return time.Now().Add(f.skew) }

// Skew sets the engine's clock ahead of the machine's.
func (f *Fake) Skew(by time.Duration) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.skew = by
}

// Prune implements sandbox.Provider. There is never anything beside the sessions.
func (f *Fake) Prune(ctx context.Context, _ time.Duration, _ func(string) bool) ([]string, error) {
	return nil, f.pass(ctx, OpList)
}
