//go:build !linux

package cli

import "fmt"

// notHere is the worker's own status for a call that it could not run.
const notHere = 3

// work says that there is no worker: it is made of Linux's own means, and the local
// executor, which would run it, is there on Linux alone.
func (p Process) work([]string) int {
	_, _ = fmt.Fprintln(p.Stderr, "caisson: tool calls run on Linux alone")
	return notHere
}
