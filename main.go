// Command caisson is an MCP server that gives LLM agents hardened containers on
// a remote Docker engine.
package main

import (
	"context"
	"os"

	"caisson/cli"
)

func main() {
	os.Exit(cli.Run(context.Background(), cli.Process{
		Args: os.Args[1:], Environ: os.Environ(), Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr,
	}))
}
