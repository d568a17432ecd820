package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/spf13/cobra"

	"caisson/executor"
	"caisson/mcp"
	"caisson/sandbox"
	"caisson/settings"
)

// shutdownLimit bounds the tidying up when a server ends: calls are cancelled
// and sessions destroyed, all side by side.
const shutdownLimit = 20 * time.Second

func (p Process) serveCommand() *cobra.Command {
	var transport, addr, manifest string
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Serve MCP over stdio or HTTP",
		Long: "Serve MCP over stdio (the default), or over HTTP: Streamable HTTP on /mcp, SSE on /sse and /message, health on /healthz and /readyz.\n" +
			"The first SIGINT or SIGTERM ends it gracefully, the second at once. On stdio it ends with its standard input.\n" +
			"SIGUSR1 ends every session and refuses new ones until the server is started anew; SIGHUP reads again what can be read again.",
		Args: usageArgs(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			environ := p.Environ
			for flag, setting := range map[string]string{"transport": "TRANSPORT=" + transport, "addr": "ADDR=" + addr, "manifest": "MANIFEST=" + manifest} {
				if cmd.Flags().Changed(flag) {
					environ = append(environ[:len(environ):len(environ)], settings.MCPPrefix+setting)
				}
			}
			return p.serve(cmd.Context(), environ, cmd.Flags().Changed("addr"))
		},
	}
	cmd.Flags().StringVar(&transport, "transport", "", "stdio or http, over SANDBOX_MCP_TRANSPORT")
	cmd.Flags().StringVar(&addr, "addr", "", "host:port that http listens on, over SANDBOX_MCP_ADDR")
	cmd.Flags().StringVar(&manifest, "manifest", "", "file that declares tools and where they run, over SANDBOX_MCP_MANIFEST")
	return cmd
}

// serving is one running server.
type serving struct {
	settings settings.Settings
	environ  []string
	log      *slog.Logger
	stderr   io.Writer
	parts    engineParts
	manager  *sandbox.Manager                  // nil when a setting is wrong
	toolbox  *executor.Toolbox                 // nil without a manifest
	manifest atomic.Pointer[executor.Manifest] // in force; nil without one
	server   *mcp.Server
	metrics  *mcp.Metrics
	audit    *mcp.AuditLog // nil when a setting is wrong
	page     *metricsPage  // nil without METRICS_ADDR
	reloads  []reload      // what SIGHUP reads again, in this order

	policies    func() []string // the execution policies that a principal may have; nil: not known
	door        *door           // nil without principals
	certificate *certificate    // nil without TLS of our own
}

// serve runs a server until its client, a signal or ctx ends it.
//
// Wrong settings end an http server before it listens. A stdio server starts
// with them and gives them as the answer to every call: a client shows its user
// a failed tool, and rarely a failed start. addrGiven says that the command line
// names an address, which only http listens on.
func (p Process) serve(ctx context.Context, environ []string, addrGiven bool) error {
	s, err := settings.Load(environ)
	var faults settings.Faults
	if err != nil && !errors.As(err, &faults) {
		return err
	}
	out := newStderr(p.Stderr, func(w io.Writer, lines int) {
		settings.NewLogger(w, s.MCP).Warn("log lines were dropped: nobody reads standard error", "lines", lines)
	})
	defer out.close()
	log := settings.NewLogger(out, s.MCP)
	for _, warning := range s.Warnings {
		log.Warn(warning)
	}
	if addrGiven && s.MCP.Transport == "stdio" {
		log.Warn("--addr is ignored: stdio listens nowhere; --transport http does")
	}
	ctx, stop := untilSignal(ctx)
	defer stop()
	v := &serving{settings: s, environ: environ, log: log, stderr: out, metrics: mcp.NewMetrics(readBuild().version)}
	if err = v.setUp(ctx, faults); err != nil {
		if err = answerable(err); s.MCP.Transport != "stdio" || !errors.As(err, new(setupError)) {
			return err
		}
		_, _ = fmt.Fprintf(out, "caisson: %v\n", err)
	}
	if err == nil {
		if err := v.openEndpoint(); err != nil {
			return errors.Join(err, v.end(ctx), v.closeSeen())
		}
	}
	v.server = v.newServer(err)
	stopObeying := v.obey(ctx)
	serving, graceful := v.graceful(ctx)
	if s.MCP.Transport == "http" {
		err = v.serveHTTP(serving)
	} else {
		err = v.serveStdio(serving, p.Stdin, p.Stdout)
	}
	err = errors.Join(err, graceful(), v.end(ctx))
	stopObeying() // an operator may still want everything stopped while the server ends
	return errors.Join(err, v.closeSeen())
}

// setUp makes the parts and starts the manager and the toolbox. The error is
// settings.Faults when settings are wrong and executor.Faults when the manifest is;
// nothing is left running then.
func (v *serving) setUp(ctx context.Context, faults settings.Faults) error {
	faults = v.openSeen(ctx, faults)
	manifest, wrong := v.loadManifest()
	var unread settings.Faults
	if errors.As(wrong, &unread) {
		faults = append(faults, unread...)
	}
	parts, err := prepare(v.settings, faults, v.log, v.metrics)
	if err != nil {
		return errors.Join(err, v.closeSeen())
	}
	if err := parts.checkRuntimes(ctx, v.settings.Docker); err != nil {
		return errors.Join(err, parts.provider.Close(), v.closeSeen())
	}
	local, err := v.localWorker()
	if err = errors.Join(wrong, err); err != nil {
		return errors.Join(err, parts.provider.Close(), v.closeSeen())
	}
	v.parts, v.manager = parts, parts.manage(v.settings, v.log, v.metrics)
	v.warn()
	if manifest != nil {
		v.openToolbox(manifest, local)
	}
	return nil
}

// warn says what an operator has switched off.
func (v *serving) warn() {
	if !v.settings.Docker.TLSVerify {
		v.log.Warn("SANDBOX_DOCKER_TLS_VERIFY is false: the engine is not shown a client certificate, and tcp:// and http:// hosts are dialled without TLS")
	}
}

func (v *serving) newServer(setup error) *mcp.Server {
	o := mcp.Options{
		Manager: v.manager, Owner: v.settings.MCP.Owner, Version: readBuild().version, Log: v.log, SetupError: setup,
		Images:         append([]string{v.settings.Docker.DefaultImage}, v.settings.Docker.AllowedImages...),
		AllowedOrigins: v.settings.MCP.AllowedOrigins, MaxBody: v.settings.MCP.MaxBodyMB << 20,
		Audit: v.audit, Metrics: v.metrics, OpenMetrics: v.settings.MCP.OpenMetrics(),
	}
	if v.manager != nil {
		o.Ready = v.manager.Ready
	}
	v.admission(&o)
	if v.toolbox != nil {
		o.Toolbox = v.toolbox
	}
	return mcp.New(o)
}

// serveStdio serves the one client that started us, until it closes our
// standard input or ctx ends.
func (v *serving) serveStdio(ctx context.Context, in io.Reader, out io.Writer) error {
	v.recover(ctx)
	err := v.server.ServeStdio(ctx, in, out)
	if ctx.Err() != nil {
		err = nil // a signal ended it, as it should
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), drainLimit)
	defer cancel()
	return errors.Join(err, v.server.Close(ctx))
}
