package cli

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"syscall"
	"time"

	"caisson/mcp"
	"caisson/settings"
)

// metricsPage serves /metrics on an address of its own.
type metricsPage struct {
	listener net.Listener
	server   *http.Server
	ended    chan error // nil until it serves
}

// errEverywhere is why an address is not listened on: metrics are for one that was chosen.
var errEverywhere = errors.New("it stands for all addresses of this machine; name one of them")

// openMetrics takes the address where metrics are read; serve then answers who comes,
// until close. A name that stands for all addresses is refused before any of them is
// listened on. Without an address there is no page.
func openMetrics(ctx context.Context, addr string, handler http.Handler) (*metricsPage, error) {
	if addr == "" {
		return nil, nil //nolint:nilnil // a page that nobody wants is no error, and close takes nil
	}
	config := net.ListenConfig{Control: func(_, bound string, _ syscall.RawConn) error {
		at, err := netip.ParseAddrPort(bound) // what the name has been resolved to
		if err != nil || at.Addr().WithZone("").Unmap().IsUnspecified() {
			return errEverywhere
		}
		return nil
	}}
	listener, err := config.Listen(ctx, "tcp", addr)
	if err != nil {
		return nil, err
	}
	return &metricsPage{listener: listener, server: &http.Server{
		Handler:           handler,
		ReadHeaderTimeout: readHeaderTimeout,
		ReadTimeout:       readHeaderTimeout,
		WriteTimeout:      time.Minute,
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    maxHeaderBytes,
	}}, nil
}

// serve answers whoever comes to the page, and says where it is. It returns at once.
func (p *metricsPage) serve(log *slog.Logger) {
	if p == nil {
		return
	}
	p.server.ErrorLog = slog.NewLogLogger(log.Handler(), slog.LevelDebug)
	p.ended = make(chan error, 1)
	go func() { p.ended <- p.server.Serve(p.listener) }() // ends with close
	log.Info("metrics are served", "address", "http://"+p.listener.Addr().String()+"/metrics")
}

// close ends the page, at once for whoever reads it.
func (p *metricsPage) close() error {
	if p == nil {
		return nil
	}
	if p.ended == nil {
		return p.listener.Close()
	}
	err := p.server.Close()
	if served := <-p.ended; !errors.Is(served, http.ErrServerClosed) {
		err = errors.Join(err, served)
	}
	return err
}

// openSeen opens what shows what the server does: the audit log and the page of
// metrics. What cannot be opened is a fault of its setting, and nothing is open
// then. What has a fault already is not opened at all: no file is made and no address
// listened on by a setting that is refused. Metrics are served only when no setting is wrong.
func (v *serving) openSeen(ctx context.Context, faults settings.Faults) settings.Faults {
	m := v.settings.MCP
	const file, addr = settings.MCPPrefix + "AUDIT_FILE", settings.MCPPrefix + "METRICS_ADDR"
	if !faults.Has(file) {
		audit, err := mcp.NewAuditLog(m.AuditFile, v.log)
		if err != nil {
			faults = faults.With(file, "cannot be written: "+err.Error())
		} else {
			v.audit = audit
			v.auditReload()
		}
	}
	if !faults.Has(addr) {
		page, err := openMetrics(ctx, m.MetricsAddr, v.metrics.Handler())
		if err != nil {
			faults = faults.With(addr, "cannot be listened on: "+err.Error())
		}
		v.page = page
	}
	if len(faults) > 0 {
		_ = v.closeSeen() // nothing was written or read yet
	} else {
		v.page.serve(v.log)
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
