package sandbox

import (
	"context"
	"time"
)

// Lease is what a server keeps on the engine while it lives, so that others can tell
// its sessions from those of one that is gone (D14): labels cannot record activity.
type Lease struct {
	Instance string
	Epoch    int64     // rises with each server that takes the instance's lease
	Expires  time.Time // by the engine's clock
	Ref      string    // the provider's own name of it
}

// Leaser is the part of a Provider that keeps leases. All methods may be called
// concurrently, are unblocked by their context and by the provider's own bounds,
// and return an *Error.
type Leaser interface {
	// TakeLease makes this server the holder of its instance's lease, at once and
	// whoever held it, with a higher epoch than any before. Of two servers that
	// take it together one gets KindFenced, or is told so when it renews.
	TakeLease(ctx context.Context, length time.Duration) (Lease, error)

	// RenewLease lets a held lease end length from now. It is KindFenced when
	// another server has taken the instance's lease since. One that was removed
	// by somebody who took none is made again.
	RenewLease(ctx context.Context, held Lease, length time.Duration) (Lease, error)

	// DropLease removes a lease, held or left behind. One that is gone is success.
	DropLease(ctx context.Context, lease Lease) error

	// Leases returns the newest lease of each instance on the engine, and the
	// engine's time.
	Leases(ctx context.Context) (leases []Lease, now time.Time, err error)
}
