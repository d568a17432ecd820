// Command demo shows Caisson's main job to a newcomer. It is a real MCP client:
// it starts the built program as its stdio server, as Claude Desktop or an
// editor would, and works on the engine that the SANDBOX_DOCKER_ variables name.
//
// Every step says what it does, what came back and how long it took, and checks
// it. The exit status is 0 only if every step held.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	program := flag.String("caisson", "bin/caisson", "the built program")
	project := flag.String("project", "testdata/demo-project", "the project that is worked on")
	pictures := flag.String("out", "e2e/demo-out", "where the picture goes")
	flag.Parse()
	err := run(ctx, os.Stdout, os.Environ(), *program, *project, *pictures)
	if err != nil {
		fmt.Fprintln(os.Stderr, "demo:", err)
		stop()
		os.Exit(1)
	}
}

// run starts the server, plays all steps and ends the server.
func run(ctx context.Context, out io.Writer, environ []string, program, project, pictures string) (err error) {
	d := &demo{show: show{out: out}, project: project, pictures: pictures}
	d.title("Caisson: a real MCP client works in a sandbox on a remote engine")
	if err := d.connect(ctx, environ, program); err != nil {
		return err
	}
	defer func() {
		err = errors.Join(err, d.disconnect())
		if err == nil {
			d.title("All steps held.")
		}
	}()
	for _, s := range []step{
		{"Look at what the server offers", d.lookAround},
		{"Make a sandbox", d.makeSession},
		{"Upload a small Python project", d.upload},
		{"Run its tests: one fails, and that is a result, not an error", d.testsFail},
		{"Mend the fault", d.mend},
		{"Run the tests again: all pass", d.testsPass},
		{"Stop a runaway command at its timeout, and keep what it printed", d.runaway},
		{"Start a command in the background, look at it, kill it", d.background},
		{"Draw a picture inside and download it", d.picture},
		{"Look at the walls from inside", d.walls},
		{"Destroy the sandbox, and ask the engine itself what is left", d.destroy},
	} {
		if err := d.play(ctx, s); err != nil {
			return fmt.Errorf("step %d, %q: %w", d.steps, s.name, err)
		}
	}
	return nil
}
