//go:build linux

// Command seccomp writes the seccomp profile that every container of ours gets,
// to standard output. `go generate` in sandbox/docker runs it.
package main

import (
	"fmt"
	"os"
)

func main() {
	profile, err := render()
	if err == nil {
		_, err = os.Stdout.Write(profile)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "seccomp:", err)
		os.Exit(1)
	}
}
