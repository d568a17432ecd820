package docker

import (
	"regexp"
	"strconv"
	"strings"
	"time"

	"caisson/sandbox"
)

// leasePrefix begins the name of a lease's container. The name holds what changes
// about a lease, since the engine renames a container and never relabels one (D14).
const leasePrefix = containerPrefix + "lease-"

// leaseName is caisson-lease-<instance>-<epoch>-<expiry in Unix seconds>.
func leaseName(l sandbox.Lease) string {
	return leasePrefix + l.Instance + "-" + strconv.FormatInt(l.Epoch, 10) + "-" + strconv.FormatInt(l.Expires.Unix(), 10)
}

var (
	// instanceForm is what the engine takes as the middle of a container's name.
	instanceForm  = regexp.MustCompile(`^[A-Za-z0-9_.-]+$`)
	leaseNameForm = regexp.MustCompile(`^([A-Za-z0-9_.-]+)-([1-9][0-9]{0,17})-([1-9][0-9]{0,11})$`)
)

// readLease reads a lease from its container. An instance's name may hold dashes
// and end in numbers: the last two fields are the lease's, and the label must say
// the same instance, so that no name is taken for another instance's.
func readLease(containerID, name string, labels map[string]string) (sandbox.Lease, bool) {
	if labels[labelSandbox] != "1" || labels[labelRole] != roleLease {
		return sandbox.Lease{}, false
	}
	rest, ours := strings.CutPrefix(name, leasePrefix)
	parts := leaseNameForm.FindStringSubmatch(rest)
	if !ours || parts == nil || parts[1] != labels[labelInstance] {
		return sandbox.Lease{}, false
	}
	epoch, errE := strconv.ParseInt(parts[2], 10, 64)
	expiry, errX := strconv.ParseInt(parts[3], 10, 64)
	if errE != nil || errX != nil {
		return sandbox.Lease{}, false
	}
	return sandbox.Lease{Instance: parts[1], Epoch: epoch, Expires: time.Unix(expiry, 0), Ref: containerID}, true
}

// outranks orders an instance's leases in the same way for every server that looks:
// of two with one epoch, which took it in the same millisecond, the container's id
// decides.
func outranks(a, b sandbox.Lease) bool {
	return a.Epoch > b.Epoch || a.Epoch == b.Epoch && a.Ref > b.Ref
}

// leaseEnd is length after now in whole seconds, which is what a name carries;
// never less than was asked for.
func leaseEnd(now time.Time, length time.Duration) time.Time {
	return time.Unix(now.Add(length+time.Second-1).Unix(), 0)
}
