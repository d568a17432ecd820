package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"
)

// stopSignals ask the program to end.
func stopSignals() []os.Signal { return []os.Signal{os.Interrupt, syscall.SIGTERM} }

// untilSignal ends the context at the first SIGINT or SIGTERM; a second one has its
// default effect and ends the process at once, however soon after the first it comes.
// A client that has gone breaks our pipes; without a handler for SIGPIPE the first line
// written then would end the process before it had tidied up.
func untilSignal(ctx context.Context) (context.Context, context.CancelFunc) {
	signal.Ignore(syscall.SIGPIPE)
	ctx, cancel := context.WithCancel(ctx)
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, stopSignals()...)
	over := make(chan struct{})
	var watch sync.WaitGroup
	watch.Go(func() {
		for first := true; ; first = false {
			select {
			case <-over:
				return
			case s := <-signals:
				cancel()
				if !first {
					signal.Reset(s)
					_ = syscall.Kill(os.Getpid(), s.(syscall.Signal)) // it can only end us
				}
			}
		}
	})
	return ctx, sync.OnceFunc(func() {
		signal.Stop(signals)
		close(over)
		watch.Wait()
		cancel()
	})
}

// drainGrace is how long commands that run may go on when the server is asked to end.
const drainGrace = 3 * time.Second

// errReplaced ends a server whose place another has taken. It has an exit status of its
// own: started again it would take the place back, and the two would take turns for ever.
var errReplaced = errors.New("another server has been started under this one's SANDBOX_DOCKER_INSTANCE and has taken its sessions over")

// graceful returns the context that the server serves under. It ends when ctx has and the
// commands that ran then have ended or had their grace, or when another server has taken
// this one's place. The returned function waits for what watches over that, and tells of
// such an end.
func (v *serving) graceful(ctx context.Context) (context.Context, func() error) {
	serving, end := context.WithCancelCause(context.WithoutCancel(ctx))
	if v.manager == nil {
		stop := context.AfterFunc(ctx, func() { end(nil) })
		return serving, func() error {
			stop()
			return nil
		}
	}
	var watch sync.WaitGroup
	watch.Go(func() {
		select {
		case <-serving.Done():
		case <-v.manager.Fenced():
			end(errReplaced)
		case <-ctx.Done():
			grace, cancel := context.WithTimeout(serving, drainGrace)
			defer cancel()
			v.manager.Drain(grace)
			end(nil)
		}
	})
	return serving, func() error {
		end(nil)
		watch.Wait()
		if err := context.Cause(serving); !errors.Is(err, context.Canceled) {
			return err
		}
		return nil
	}
}

// recover waits a moment for the sessions of the server before, so that a client that
// comes right after a restart finds its own. A stdio server's client waits for its answer
// to the first message, so there nobody waits.
func (v *serving) recover(ctx context.Context) {
	if v.manager == nil || v.settings.UniqueInstance {
		return
	}
	if v.settings.MCP.Transport != "http" {
		v.manager.BeginRecovery()
		return
	}
	ctx, cancel := context.WithTimeout(ctx, recoverWait)
	defer cancel()
	if err := v.manager.Recover(ctx); err != nil {
		v.log.Warn("the sessions of the server before are not back yet; trying on", "error", err)
	}
}

const recoverWait = 3 * time.Second

// end destroys what sessions are not kept. It runs when ctx is over, so on a clock
// of its own.
func (v *serving) end(ctx context.Context) error {
	if v.manager == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), shutdownLimit)
	defer cancel()
	var tools error
	if v.toolbox != nil {
		tools = v.toolbox.Close(ctx) // while there is a manager to end its sessions with
	}
	if err := errors.Join(tools, v.manager.Close(ctx), v.parts.provider.Close()); err != nil {
		return fmt.Errorf("shut down: %w", err)
	}
	return nil
}
