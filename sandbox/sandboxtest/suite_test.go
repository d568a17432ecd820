package sandboxtest_test

import (
	"testing"

	"caisson/sandbox/sandboxtest"
)

// TestFakePassesTheSuite runs what needs neither a kernel nor a line.
func TestFakePassesTheSuite(t *testing.T) {
	t.Parallel()
	sandboxtest.Run(t, sandboxtest.Harness{Provider: sandboxtest.NewFake()})
}
