// Command bench measures what Caisson costs on top of the engine. In one run it
// takes turns: the engine's own call, the same through Caisson over stdio, and
// over Streamable HTTP, so that whatever else the machine does hits all three
// alike.
//
// The engine's own calls use the host configuration that Caisson gave to a
// session, read back from the engine.
package main

import (
	"context"
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
	o := options{environ: os.Environ()}
	flag.StringVar(&o.program, "caisson", "bin/caisson", "the built program, measured over stdio")
	flag.StringVar(&o.url, "http", "", "the address of a running `caisson serve --transport http`, measured over Streamable HTTP")
	flag.StringVar(&o.page, "page", "docs/benchmarks.md", "the page that is written; empty: none")
	flag.IntVar(&o.rounds, "rounds", 40, "how often each thing is measured; execs and files five times as often")
	flag.Parse()
	if err := run(ctx, os.Stdout, o); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		stop()
		os.Exit(1)
	}
}

// options say what is measured and how often.
type options struct {
	environ []string
	program string
	url     string
	page    string
	rounds  int
}

func run(ctx context.Context, out io.Writer, o options) error {
	b, err := open(ctx, o)
	if err != nil {
		return err
	}
	defer b.close(ctx)
	if err := b.measure(ctx, out, o.rounds); err != nil {
		return err
	}
	page := b.page()
	if _, err := io.WriteString(out, page); err != nil {
		return err
	}
	if o.page == "" {
		return nil
	}
	return os.WriteFile(o.page, []byte(page), 0o644)
}
