package worker

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"runtime/debug"
	"syscall"
	"time"

	"caisson/executor/wire"
)

// The exit statuses (ENV-7): a result that says what went wrong is none of the
// worker's own failures.
const (
	exitResult     = 0
	exitUnreadable = 2
	exitCrash      = 3
)

// program is one run of the worker.
type program struct {
	options options
	stdin   io.Reader
	out     *printer
	log     *slog.Logger
}

// options are what the command line says. Nothing of the envelope is ever in it.
type options struct {
	envelope    string // a path, or - for standard input
	resident    bool   // toolkits and REPLs live in the resident process
	residentDir string // of the resident's socket; empty: one of this user's below /tmp
	end         bool   // end the resident instead
	serve       bool   // be the resident
	agents      string // the folder of registered agents
	level       slog.Level
	self        []string // argv that starts this program
}

func readOptions(args []string, stderr io.Writer) (options, error) {
	o := options{level: slog.LevelWarn}
	set := flag.NewFlagSet("caisson-worker", flag.ContinueOnError)
	set.SetOutput(stderr)
	set.StringVar(&o.envelope, "envelope", "-", "`path` of the call's envelope, deleted once it is read; - is standard input")
	set.BoolVar(&o.resident, "resident", false, "keep servers and REPLs between calls, in a process of their own")
	set.StringVar(&o.residentDir, "resident-dir", "", "private `folder` of that process; it ends when the folder is removed")
	set.BoolVar(&o.end, "end-resident", false, "end that process and what runs in it; reads no envelope")
	set.BoolVar(&o.serve, "serve-resident", false, "be that process; for the worker's own use")
	set.StringVar(&o.agents, "agents", "/etc/caisson/agents", "`folder` of the registered agents")
	set.TextVar(&o.level, "log-level", o.level, "least `level` that is logged: DEBUG, INFO, WARN or ERROR")
	if err := set.Parse(args); err != nil {
		return o, err
	}
	if set.NArg() > 0 {
		err := fmt.Errorf("no argument is expected: %q", set.Arg(0))
		_, _ = fmt.Fprintln(stderr, "caisson-worker:", err)
		return o, err
	}
	if o.residentDir == "" {
		o.residentDir = fmt.Sprintf("/tmp/caisson-worker-%d", os.Getuid())
	}
	o.self = selfArgv(len(args))
	return o, nil
}

// selfArgv is what started this program without its last arguments: the binary, and
// the subcommand where it is one.
func selfArgv(own int) []string {
	path, err := os.Executable()
	if err != nil {
		path = os.Args[0]
	}
	return append([]string{path}, os.Args[1:max(1, len(os.Args)-own)]...)
}

// Main runs the worker and returns its exit status: 0 for any well-formed result, a
// failure of the tool included, 2 where the envelope cannot be read, 3 where the
// worker itself broke; 2 and 3 come with a result block as well where the call's
// nonce is known (ENV-7). What the tool prints never reaches stdout.
func Main(args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	o, err := readOptions(args, stderr)
	switch {
	case errors.Is(err, flag.ErrHelp):
		return exitResult
	case err != nil:
		return exitUnreadable
	}
	p := &program{options: o, stdin: stdin, out: newPrinter(stdout, stderr), log: slog.New(slog.NewTextHandler(stderr, &slog.HandlerOptions{Level: o.level}))}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP)
	defer stop()
	switch {
	case o.serve:
		return p.serveResident(ctx)
	case o.end:
		return p.endResident(ctx)
	default:
		return p.call(ctx)
	}
}

// call reads the envelope, runs the call and prints its result.
func (p *program) call(ctx context.Context) int {
	text, err := p.readEnvelope()
	if err != nil {
		p.out.log("the envelope cannot be read: " + err.Error())
		return exitUnreadable
	}
	e, err := wire.DecodeEnvelope(text)
	if err != nil {
		p.out.log(err.Error())
		p.out.result(wire.Failure(wire.StatusError, err.Error()), looseNonce(text))
		return exitUnreadable
	}
	p.log.Debug("call", "envelope", e)
	if p.options.resident && livesOn(e.ToolPath) {
		return p.forward(ctx, text, e)
	}
	h := newHost(p.options, p.log)
	code := h.answer(ctx, e, p.out)
	h.close()
	h.kits.flush(p.out.log)
	return code
}

// readEnvelope reads the envelope to its end. A file is deleted before anything in
// it is looked at (TX-18).
func (p *program) readEnvelope() ([]byte, error) {
	from := p.stdin
	if path := p.options.envelope; path != "-" && path != "" {
		f, err := os.Open(path)
		if err != nil {
			return nil, err
		}
		defer func() { _ = f.Close() }()
		if err := os.Remove(path); err != nil {
			p.log.Warn("the envelope is still there", "error", err)
		}
		from = f
	}
	text, err := io.ReadAll(io.LimitReader(from, wire.MostEnvelope+1))
	if err == nil && len(text) > wire.MostEnvelope {
		err = fmt.Errorf("it has more than %d bytes", wire.MostEnvelope)
	}
	return text, err
}

// looseNonce finds the nonce of an envelope that cannot be read otherwise.
func looseNonce(text []byte) string {
	var e struct {
		Nonce string `json:"result_nonce"`
	}
	_ = json.Unmarshal(text, &e) // a field of another type leaves the rest set
	return e.Nonce
}

// livesOn says whether what the path names is kept between calls.
func livesOn(path string) bool {
	return path == wire.REPLPath || path == wire.ToolkitPath || path == wire.ToolkitListPath
}

// answer runs a call and prints its result, whatever happens.
func (h *host) answer(ctx context.Context, e wire.Envelope, out *printer) (code int) {
	defer func() {
		if fault := recover(); fault != nil {
			out.log(fmt.Sprintf("the worker broke: %v\n%s", fault, debug.Stack()))
			out.result(wire.Failure(wire.StatusError, "the worker broke; its log says how"), e.Nonce)
			code = exitCrash
		}
	}()
	w := watch{progress: func(p wire.Progress) { out.progress(p, e.Nonce) }, stderr: out.log}
	r := h.call(ctx, e, w)
	if e.ToolPath != wire.ToolkitListPath { // which is for the server, and has bounds of its own
		r = wire.Bounded(r, wire.MostPrinted)
	}
	if !out.result(r, e.Nonce) {
		return exitCrash
	}
	return exitResult
}

// deadline is the time that a call of the worker has: a little less than the
// envelope's, so that a result which says so still arrives.
func deadline(timeout time.Duration) time.Duration {
	return timeout - min(timeout/10, time.Second)
}
