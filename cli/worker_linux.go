package cli

import "caisson/executor/worker"

// work runs the worker, and returns its exit status.
func (p Process) work(args []string) int {
	return worker.Main(args, p.Stdin, p.Stdout, p.Stderr)
}
