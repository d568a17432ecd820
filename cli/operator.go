package cli

import (
	"context"
	"os"
	"os/signal"
	"sync"
	"syscall"

	"caisson/sandbox"
)

// reload is something that is read again at SIGHUP.
type reload struct {
	name string // what it is, for the log
	do   func(ctx context.Context) error
	told bool // it logs itself what is wrong
}

// obey follows the operator's signals: SIGUSR1 halts (R35), SIGHUP reads again
// what can be read again. It does so until the returned function is called, so
// also while the server ends; that waits for what is being done.
func (v *serving) obey(ctx context.Context) (stop func()) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	halts, hangups := make(chan os.Signal, 1), make(chan os.Signal, 1)
	signal.Notify(halts, syscall.SIGUSR1)
	signal.Notify(hangups, syscall.SIGHUP)
	var watch sync.WaitGroup
	follow := func(signals <-chan os.Signal, do func(context.Context)) {
		watch.Go(func() { // until stop; a halt does not wait for a reload
			for {
				select {
				case <-ctx.Done():
					return
				case <-signals:
					do(ctx)
				}
			}
		})
	}
	follow(halts, func(ctx context.Context) { _, _ = v.server.Halt(ctx) }) // it logs and records how it went
	follow(hangups, v.reload)
	return func() {
		signal.Stop(halts)
		signal.Stop(hangups)
		cancel()
		watch.Wait()
	}
}

// reload reads everything again that can be. What cannot be read stays as it
// was, and holds up nothing else.
func (v *serving) reload(ctx context.Context) {
	var failure error
	for _, r := range v.reloads {
		if err := r.do(ctx); err != nil {
			failure = sandbox.Errorf("read again", sandbox.KindInvalid, "%s is at fault; what was read before stays in force", r.name).Because(err)
			log := v.log
			if !r.told {
				log = log.With("error", err)
			}
			log.Error("not read again; what was read before stays in force", "what", r.name)
			continue
		}
		v.log.Info("read again", "what", r.name)
	}
	v.server.OperatorDid("reload", failure)
}

// auditReload opens the audit log's file again, for whoever has renamed it away.
func (v *serving) auditReload() {
	if v.audit != nil && v.settings.MCP.AuditFile != "" {
		v.reloads = append(v.reloads, reload{name: "the audit log's file", do: func(context.Context) error { return v.audit.Reopen() }})
	}
}
