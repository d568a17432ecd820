package sandbox

import (
	"context"
	"errors"
	"time"
)

// stop is one stop in flight. reported is closed once killed and err are known,
// over once the exec has been ended by it, or has been given back to run on.
type stop struct {
	reported chan struct{}
	over     chan struct{}
	killed   bool
	err      error
}

// Kill sends sig to the command's process group. SignalKill ends the exec with
// what the stop found (KIL-1 to KIL-12); concurrent calls share one stop
// (trap 32), and the caller's context does not cut it short (STP-13): the call
// is bounded by StopLimit. killed says that the signal came before the
// command's own exit. A command that has ended already is success. One whose end
// nobody saw (its stream was cut, its timeout's stop failed) is stopped too, and
// its record stays as it is (STR-9). A stop that fails is KindKillFailed, and the
// command may still run.
func (e *Exec) Kill(sig Signal) (killed bool, err error) {
	if sig != SignalKill {
		return e.signal(sig)
	}
	e.mu.Lock()
	if !e.stoppable() {
		e.mu.Unlock()
		return false, nil
	}
	s := e.stop
	if s == nil {
		s = e.beginStop(true, e.afterKill)
	}
	e.mu.Unlock()
	<-s.reported
	if s.err == nil {
		e.settle(settleWait)
	}
	return s.killed, s.err
}

// stoppable says whether there may be something to stop; e.mu is held.
func (e *Exec) stoppable() bool {
	if e.backend == nil || e.closed {
		return false
	}
	switch e.view.Status {
	case StatusRunning:
		return true
	case StatusLost:
		return e.view.LostReason != LostContainerGone
	case StatusTimedOut:
		return e.unstopped
	default:
		return false
	}
}

// beginStop starts the one stop that may be in flight; e.mu is held. after runs
// when it has reported and ends the exec as its cause asks; kill says that a caller asked.
func (e *Exec) beginStop(kill bool, after func(StopReport, error)) *stop {
	s := &stop{reported: make(chan struct{}), over: make(chan struct{})}
	e.stop = s
	e.work.Go(func() {
		// Detached from every caller: a cancelled call must not leave the
		// command running (STP-13). Bounded, so that a shutdown is too.
		ctx, cancel := context.WithTimeout(context.Background(), StopLimit)
		defer cancel()
		report, err := e.provider().Stop(ctx, SignalKill)
		if err != nil {
			s.err = killFailed(err)
			e.log.Warn("stop failed", "exec", ShortID(e.id), "error", err)
		} else {
			s.killed = report.Found && report.Status != nil && *report.Status == killedStatus
		}
		if err != nil && kill {
			// Before anyone hears of it: who kills again must not be given this failure.
			after(report, err)
			close(s.reported)
		} else {
			close(s.reported)
			after(report, err)
		}
		close(s.over)
		e.closeBackendIfEnded()
	})
	return s
}

// killedStatus is the status of a command that SIGKILL ended.
const killedStatus = 128 + 9

// afterKill ends the exec by what a kill found.
func (e *Exec) afterKill(r StopReport, err error) {
	switch {
	case e.ended():
		e.mu.Lock()
		defer e.mu.Unlock()
		e.stop = nil // the next kill looks for itself
		e.unstopped = e.unstopped && err != nil
		return
	case err != nil:
		e.mu.Lock()
		defer e.mu.Unlock()
		e.stop = nil // the next kill may succeed
		e.note(Note{"kill_failed", KillText(err)})
		if e.streamEnd != nil {
			e.finishNaturally()
		}
		return
	case r.Gone:
		e.Lose(LostContainerGone, "the session's container is gone or stopped; the command ended with it")
		return
	}
	e.awaitOutput(r)
	e.mu.Lock()
	defer e.mu.Unlock()
	e.noteHeld(r)
	if r.Found && !r.Held && e.streamEnd == nil && !e.isWhole {
		e.note(Note{"count_may_miss_output", "the output had not ended 4 s after the stop: the byte counts may miss some of it"})
	}
	switch {
	case r.Found && r.Status != nil && *r.Status == killedStatus:
		e.finish(StatusKilled, r.Status, "")
	case r.Found && r.Status != nil:
		e.finish(StatusExited, r.Status, "") // KIL-2: it had exited before the kill landed
	case e.streamEnd != nil:
		e.finishNaturally() // KIL-5
	case r.Status != nil && e.isWhole:
		e.finish(StatusExited, r.Status, "") // its wrapper told both; only the engine's word is not here
	default:
		e.finish(StatusLost, nil, LostStatusUnknown) // KIL-4, KIL-6
	}
}

// timeout is the timer's goroutine.
func (e *Exec) timeout() {
	defer e.work.Done()
	for {
		e.mu.Lock()
		if e.view.Status != StatusRunning || e.streamEnd != nil && e.stop == nil {
			e.mu.Unlock()
			return
		}
		if s := e.stop; s != nil {
			// A kill came first: it ends the command, or fails and leaves that to us.
			e.mu.Unlock()
			<-s.over
			continue
		}
		e.beginStop(false, e.afterTimeout)
		e.mu.Unlock()
		return
	}
}

// afterTimeout ends the exec by what its timeout's stop found (TMO-4 to TMO-9).
func (e *Exec) afterTimeout(r StopReport, err error) {
	if err == nil && r.Gone {
		e.Lose(LostContainerGone, "the session's container is gone or stopped; the command ended with it")
		return
	}
	e.awaitOutput(r)
	e.mu.Lock()
	defer e.mu.Unlock()
	if err != nil {
		e.note(Note{"kill_failed", KillText(err)})
		e.unstopped, e.stop = true, nil
	}
	e.noteHeld(r)
	if err == nil && !r.Found && !r.Held && e.endedBefore(r) {
		return
	}
	if e.streamEnd == nil && !r.Held && !e.isWhole {
		e.note(Note{"count_may_miss_output", "the output had not ended 4 s after the timeout's stop: the byte counts may miss some of it"})
	}
	e.finish(StatusTimedOut, nil, "")
}

// endedBefore ends the exec naturally where it had ended just before its timeout's
// stop came, which found nothing (TMO-10). One that ended with SIGKILL's status did
// not: that was the stop, whose report was lost. e.mu is held.
func (e *Exec) endedBefore(r StopReport) bool {
	switch {
	case e.streamEnd != nil:
		if e.streamEnd.Code == nil || *e.streamEnd.Code == killedStatus {
			return false
		}
		e.finishNaturally()
	case e.isWhole && r.Status != nil && *r.Status != killedStatus:
		e.finish(StatusExited, r.Status, "")
	default:
		return false
	}
	return true
}

// noteHeld notes what is left; e.mu is held. What a holder prints is not waited for, so
// that no end marker speaks for it.
func (e *Exec) noteHeld(r StopReport) {
	if !r.Held {
		return
	}
	e.isWhole = false
	e.view.OutputHeld = true
	e.note(Note{"output_still_held", "a process that the command started left its process group, was not stopped and still holds the output; what it prints from here on is not kept"})
	e.log.Warn("output still held after a stop", "exec", e.id)
}

// signal delivers a polite signal and waits a little for its effect.
func (e *Exec) signal(sig Signal) (bool, error) {
	e.mu.Lock()
	b, running := e.backend, e.view.Status == StatusRunning
	if running && b != nil {
		e.work.Add(1)
		defer e.work.Done()
	}
	e.mu.Unlock()
	if !running || b == nil {
		return false, nil
	}
	ctx, cancel := context.WithTimeout(e.life, StopLimit)
	defer cancel()
	report, err := b.Stop(ctx, sig)
	if err != nil {
		select {
		case <-e.done: // it ended meanwhile, and with it the need
			return false, nil
		default:
			return false, killFailed(err)
		}
	}
	e.settle(signalWait)
	return report.Found, nil
}

func (e *Exec) ended() bool {
	select {
	case <-e.done:
		return true
	default:
		return false
	}
}

func (e *Exec) settle(limit time.Duration) {
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case <-e.done:
	case <-timer.C:
	}
}

// awaitOutput waits for the rest of the output after a stop. A command whose status
// the stop has told is over with its last byte: the engine may take seconds more to end
// its stream, one command's after another's. Without the status, its end tells it.
func (e *Exec) awaitOutput(r StopReport) {
	if r.Held {
		return
	}
	whole := e.whole
	if r.Status == nil {
		whole = nil
	}
	timer := time.NewTimer(EndGrace)
	defer timer.Stop()
	select {
	case <-e.streamDone:
	case <-whole:
	case <-e.done:
	case <-timer.C:
	}
}

// closeBackendIfEnded cuts a stream that a stop has ended for us, but that
// something else still holds open.
func (e *Exec) closeBackendIfEnded() {
	if e.ended() {
		e.provider().Close()
	}
}

// KillText is what a failed stop tells a caller.
func KillText(err error) string {
	var e *Error
	if errors.As(err, &e) && e.Text != "" {
		return e.Text
	}
	return "the stop did not finish within its time limit"
}

func killFailed(err error) *Error {
	return Errorf("stop command", KindKillFailed, "%s; the command may still be running", KillText(err)).Because(err)
}
