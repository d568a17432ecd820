package mcp_test

import (
	"os/signal"
	"syscall"
	"testing"
)

// limitFiles bounds the size of files that the test's process writes. It is the process'
// own limit: such tests do not run beside others.
func limitFiles(t *testing.T, limit syscall.Rlimit) {
	t.Helper()
	signal.Ignore(syscall.SIGXFSZ) // the write's error is what counts
	var before syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_FSIZE, &before); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &limit); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = syscall.Setrlimit(syscall.RLIMIT_FSIZE, &before) })
}
