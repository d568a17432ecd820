package main

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"time"

	"github.com/mark3labs/mcp-go/client/transport"

	"caisson/e2e/internal/rawengine"
)

// The ways that are compared.
const (
	viaEngine  = "engine"
	viaWrapper = "wrapper" // the engine's own calls, of what Caisson has it run
	viaStdio   = "stdio"
	viaHTTP    = "HTTP"
)

// The things that are measured, in the order of the page.
const (
	create   = "make a session: create and start"
	noop     = "run `true` and learn its exit code"
	stop     = "stop a running command"
	crowded  = "stop one beside 2,000 processes"
	upload   = "upload 1 MiB"
	download = "download 1 MiB"
	small    = "run `true` in a session as small as a tool's container"
	warmTool = "call a warm tool that runs `true`"
)

const (
	fileName = "bench.bin"
	fileSize = 1 << 20
	often    = 5 // execs and file transfers in each round
)

// bench is one run.
type bench struct {
	raw     *raw
	ours    map[string]*ours // by way
	samples map[string]map[string][]time.Duration
	engine  string
	loads   [2]string // of the machine, before and after
	data    []byte
	base64  string
}

func open(ctx context.Context, o options) (*bench, error) {
	b := &bench{raw: &raw{}, ours: map[string]*ours{}, samples: map[string]map[string][]time.Duration{}, data: make([]byte, fileSize)}
	_, _ = rand.NewChaCha8([32]byte{}).Read(b.data)
	b.base64 = base64.StdEncoding.EncodeToString(b.data)
	var err error
	if b.raw.api, err = rawengine.Connect(o.environ); err != nil {
		return nil, err
	}
	version, err := b.raw.api.ServerVersion(ctx)
	if err != nil {
		return nil, err
	}
	b.engine = version.Version
	if b.loads[0], err = load(); err != nil {
		return nil, err
	}
	if b.ours[viaStdio], err = dial(ctx, transport.NewStdioWithOptions(o.program, o.environ, []string{"serve"})); err != nil {
		return nil, fmt.Errorf("over stdio: %w", err)
	}
	if o.url != "" {
		link, err := transport.NewStreamableHTTP(o.url + "/mcp")
		if err == nil {
			b.ours[viaHTTP], err = dial(ctx, link)
		}
		if err != nil {
			return nil, errors.Join(fmt.Errorf("over HTTP: %w", err), b.close(ctx))
		}
	}
	if err := b.raw.like(ctx, b.ours[viaStdio].session); err != nil {
		return nil, errors.Join(err, b.close(ctx))
	}
	return b, nil
}

// close removes all that was made. The run may have been interrupted, so it has
// a clock of its own.
func (b *bench) close(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Minute)
	defer cancel()
	var all []error
	for _, o := range b.ours {
		all = append(all, o.remove(ctx, o.session), o.remove(ctx, o.small), o.Close())
	}
	if b.raw.box != "" {
		all = append(all, b.raw.remove(ctx, b.raw.box))
	}
	return errors.Join(append(all, b.raw.api.Close())...)
}

// sample times one thing done one way.
func (b *bench) sample(what, way string, do func() error) error {
	began := time.Now()
	if err := do(); err != nil {
		return fmt.Errorf("%s, %s: %w", what, way, err)
	}
	took := time.Since(began)
	if b.samples[what] == nil {
		b.samples[what] = map[string][]time.Duration{}
	}
	b.samples[what][way] = append(b.samples[what][way], took)
	return nil
}

// measure does everything in turns. A first round warms caches and is dropped.
func (b *bench) measure(ctx context.Context, out io.Writer, rounds int) error {
	for round := range rounds + 1 {
		if err := b.creates(ctx); err != nil {
			return err
		}
		for range often {
			if err := errors.Join(b.execs(ctx), b.calls(ctx), b.stops(ctx, stop), b.files(ctx)); err != nil {
				return err
			}
		}
		if round == 0 {
			clear(b.samples)
		}
		if round%10 == 0 {
			_, _ = fmt.Fprintf(out, "round %d of %d\n", round, rounds)
		}
	}
	for _, o := range b.ours {
		if err := o.crowd(ctx); err != nil {
			return err
		}
	}
	for range rounds {
		if err := b.stops(ctx, crowded); err != nil {
			return err
		}
	}
	var err error
	b.loads[1], err = load()
	return err
}

func (b *bench) creates(ctx context.Context) error {
	var id string
	err := b.sample(create, viaEngine, func() (err error) { id, err = b.raw.create(ctx); return err })
	if err == nil {
		err = b.raw.remove(ctx, id)
	}
	for way, o := range b.ours {
		if err != nil {
			return err
		}
		err = b.sample(create, way, func() (err error) { id, err = o.create(ctx); return err })
		if err == nil {
			err = o.remove(ctx, id)
		}
	}
	return err
}

func (b *bench) execs(ctx context.Context) error {
	err := b.sample(noop, viaEngine, func() error { return b.raw.exec(ctx) })
	if err == nil {
		err = b.sample(noop, viaWrapper, func() error { return b.raw.wrapped(ctx) })
	}
	for way, o := range b.ours {
		if err == nil {
			err = b.sample(noop, way, func() error { return o.exec(ctx, o.session) })
		}
	}
	return err
}

// calls has a tool of the manifest do what an exec does as well, one after the other.
func (b *bench) calls(ctx context.Context) error {
	for way, o := range b.ours {
		err := b.sample(small, way, func() error { return o.exec(ctx, o.small) })
		if err == nil {
			err = b.sample(warmTool, way, func() error { return o.call(ctx) })
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// stops has a command run, and times its stop alone.
func (b *bench) stops(ctx context.Context, what string) error {
	for way, o := range b.ours {
		id, err := o.begin(ctx, o.session)
		if err == nil {
			err = b.sample(what, way, func() error { return o.kill(ctx, id) })
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (b *bench) files(ctx context.Context) error {
	err := b.sample(upload, viaEngine, func() error { return b.raw.put(ctx, fileName, b.data) })
	if err == nil {
		err = b.sample(download, viaEngine, func() error { return b.raw.get(ctx, fileName) })
	}
	for way, o := range b.ours {
		if err == nil {
			err = b.sample(upload, way, func() error { return o.put(ctx, fileName, b.base64) })
		}
		if err == nil {
			err = b.sample(download, way, func() error { return o.get(ctx, fileName, fileSize) })
		}
	}
	return err
}
