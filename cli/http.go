package cli

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"

	"caisson/settings"
)

// Bounds of the HTTP server. There is none on writing: a result or a stream may
// take as long as its command, and one deadline would cut it in silence. The handler
// gives each piece of an answer its own.
const (
	readHeaderTimeout = 10 * time.Second
	idleTimeout       = 2 * time.Minute
	maxHeaderBytes    = 64 << 10
	// drainLimit is how long calls may take to end once they have been
	// cancelled: as long as a stop may (STP-12), and a moment more.
	drainLimit = 6 * time.Second
)

// serveHTTP listens first and says where, so that whoever asked for port 0
// learns which it is, then serves until ctx ends.
func (v *serving) serveHTTP(ctx context.Context) error {
	var config net.ListenConfig
	listener, err := config.Listen(ctx, "tcp", v.settings.MCP.Addr)
	if err != nil {
		return fmt.Errorf("listen on SANDBOX_MCP_ADDR: %w", err)
	}
	web := &http.Server{
		Handler:           v.certificate.guard(v.server.Handler()),
		ReadHeaderTimeout: readHeaderTimeout,
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    maxHeaderBytes,
		Protocols:         protocols(),
		ErrorLog:          slog.NewLogLogger(v.log.Handler(), slog.LevelDebug),
	}
	serve, scheme := web.Serve, "http"
	if v.certificate != nil {
		web.TLSConfig, scheme = v.certificate.server(), "https"
		serve = func(l net.Listener) error { return web.ServeTLS(l, "", "") }
	}
	told := v.settings.MCP
	told.LogLevel = "info" // whoever starts us needs the address, whatever else is logged
	settings.NewLogger(v.stderr, told).Info(fmt.Sprintf("listening on %s://%s (/mcp, /sse)", scheme, listener.Addr()))
	v.recover(ctx)
	defer v.door.watch(ctx)()
	ended := make(chan error, 1)
	go func() {
		ended <- serve(newConnections(listener, v.settings.MCP.MaxConnections, v.settings.MCP.MaxConnectionsPerAddress))
	}()
	select {
	case err = <-ended:
		return err // nobody asked it to end
	case <-ctx.Done():
	}
	err = v.drain(ctx, web)
	if served := <-ended; !errors.Is(served, http.ErrServerClosed) {
		err = errors.Join(err, served)
	}
	return err
}

// drain takes no more connections, ends the calls and streams there are, and
// gives their answers a moment to leave.
func (v *serving) drain(ctx context.Context, web *http.Server) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), drainLimit)
	defer cancel()
	down := make(chan error, 1)
	go func() { down <- web.Shutdown(ctx) }()
	err := v.server.Close(ctx)
	if <-down != nil {
		_ = web.Close() // whoever has not read its answer by now does not get it
	}
	return err
}

// protocols is HTTP/1.1 alone. Of HTTP/2 a client needs nothing here, and its server in
// the standard library has had faults by which a client uses up memory and processor.
func protocols() *http.Protocols {
	var p http.Protocols
	p.SetHTTP1(true)
	return &p
}
