// Command caisson-worker runs one tool call inside a tool's container.
package main

import (
	"os"

	"caisson/executor/worker"
)

func main() { os.Exit(worker.Main(os.Args[1:], os.Stdin, os.Stdout, os.Stderr)) }
