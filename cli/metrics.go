package cli

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"time"

	"caisson/mcp"
	"caisson/settings"
)

// metricsPage serves /metrics on an address of its own.
type metricsPage struct {
	server *http.Server
	ended  chan error
}

// openMetrics listens where metrics are read, and serves them to whoever comes
// until close. Without an address there is no page.
func openMetrics(ctx context.Context, addr string, handler http.Handler, log *slog.Logger) (*metricsPage, error) {
	if addr == "" {
		return nil, nil //nolint:nilnil // a page that nobody wants is no error, and close takes nil
	}
	var config net.ListenConfig
	listener, err := config.Listen(ctx, "tcp", addr)
	if err != nil {
		return nil, err
	}
	p := &metricsPage{ended: make(chan error, 1), server: &http.Server{
		Handler:           handler,
		ReadHeaderTimeout: readHeaderTimeout,
		ReadTimeout:       readHeaderTimeout,
		WriteTimeout:      time.Minute,
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    maxHeaderBytes,
		ErrorLog:          slog.NewLogLogger(log.Handler(), slog.LevelDebug),
	}}
	go func() { p.ended <- p.server.Serve(listener) }() // ends with close
	log.Info("metrics are served", "address", "http://"+listener.Addr().String()+"/metrics")
	return p, nil
}

// close ends the page, at once for whoever reads it.
func (p *metricsPage) close() error {
	if p == nil {
		return nil
	}
	err := p.server.Close()
	if served := <-p.ended; !errors.Is(served, http.ErrServerClosed) {
		err = errors.Join(err, served)
	}
	return err
}

// openSeen opens what shows what the server does: the audit log and the page of
// metrics. What cannot be opened is a fault of its setting, and nothing is open
// then.
func (v *serving) openSeen(ctx context.Context, faults settings.Faults) settings.Faults {
	m := v.settings.MCP
	audit, err := mcp.NewAuditLog(m.AuditFile, v.log)
	if err != nil {
		faults = faults.With(settings.MCPPrefix+"AUDIT_FILE", "cannot be written: "+err.Error())
	} else {
		v.audit = audit
		v.auditReload()
	}
	page, err := openMetrics(ctx, m.MetricsAddr, v.metrics.Handler(), v.log)
	if err != nil {
		faults = faults.With(settings.MCPPrefix+"METRICS_ADDR", "cannot be listened on: "+err.Error())
	}
	v.page = page
	if len(faults) > 0 {
		_ = v.closeSeen() // nothing was written or read yet
	}
	return faults
}

// closeSeen closes what openSeen has opened. It may be called again.
func (v *serving) closeSeen() error {
	err := v.page.close()
	if v.audit != nil {
		err = errors.Join(err, v.audit.Close())
	}
	v.audit, v.page, v.reloads = nil, nil, nil
	return err
}
