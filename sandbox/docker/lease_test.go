package docker

import (
	"testing"
	"time"

	"caisson/sandbox"
)

func TestD14_LeaseNamesAreReadStrictly(t *testing.T) {
	t.Parallel()
	for _, instance := range []string{"a", "host.example-2", "x-1-2", "stdio-abc_d", "7"} {
		l := sandbox.Lease{Instance: instance, Epoch: 1796003768784, Expires: time.Unix(1796003798, 0), Ref: "c"}
		labels := map[string]string{labelSandbox: "1", labelRole: roleLease, labelInstance: instance}
		got, ok := readLease("c", leaseName(l), labels)
		if !ok || got != l {
			t.Errorf("%s: %v, %+v", leaseName(l), ok, got)
		}
	}
	good := map[string]string{labelSandbox: "1", labelRole: roleLease, labelInstance: "a-1"}
	if _, ok := readLease("c", "caisson-lease-a-1-2-3", good); !ok {
		t.Fatal("the control")
	}
	for _, name := range []string{
		"", "caisson-lease-", "caisson-lease-a-1-2", "caisson-lease-a-2-3", "caisson-lease-b-1-2-3", "caisson-lease-a-1-0-3", "caisson-lease-a-1-2-0",
		"caisson-lease-a-1--2-3", "caisson-lease-a-1-2-3-", "caisson-lease-a-1-02-3", "caisson-lease-a-1-2-3x", "caisson-lease-a-1-2-9999999999999",
		"caisson-lease-a-1-99999999999999999999-3", "caisson-a-1-2-3", "x-caisson-lease-a-1-2-3", "caisson-lease-a-1-2-3\n",
	} {
		if l, ok := readLease("c", name, good); ok {
			t.Errorf("%q is read as %+v", name, l)
		}
	}
	for label, value := range map[string]string{labelSandbox: "", labelRole: roleSession, labelInstance: "a"} {
		labels := map[string]string{labelSandbox: "1", labelRole: roleLease, labelInstance: "a-1"}
		labels[label] = value
		if l, ok := readLease("c", "caisson-lease-a-1-2-3", labels); ok {
			t.Errorf("with %s=%q it is read as %+v", label, value, l)
		}
	}
}

func TestD14_LeasesEndNoEarlierThanAsked(t *testing.T) {
	t.Parallel()
	now := time.Unix(100, 1)
	if got := leaseEnd(now, 10*time.Second); got != time.Unix(111, 0) {
		t.Error(got)
	}
	if got := leaseEnd(time.Unix(100, 0), 10*time.Second); got != time.Unix(110, 0) {
		t.Error(got)
	}
}
