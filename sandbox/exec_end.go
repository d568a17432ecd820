package sandbox

import "time"

// Output takes what the command printed. The provider's drain goroutine calls
// it, in order for each stream.
func (e *Exec) Output(s Stream, p []byte) { e.spool.Append(s, p) }

// OutputWhole tells that both streams have come to their end markers, so that nothing
// of the output is missing (D27); or, with false, that more came after all. The
// provider's drain goroutine calls it, after the Output that it is about. The stream's
// end and the exit code may be seconds away still.
func (e *Exec) OutputWhole(whole bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.isWhole == whole {
		return
	}
	e.isWhole = whole
	select { // the one token comes or goes with it
	case <-e.whole:
	default:
	}
	if whole {
		e.whole <- struct{}{}
	}
}

// CommandExited tells that the command's own process has exited with code while
// others still hold its output: it counts as running (D4), and the caller sees
// both.
func (e *Exec) CommandExited(code int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.view.Status != StatusRunning {
		return
	}
	e.view.CommandExitCode, e.view.OutputHeld = &code, true
	e.note(Note{"output_held", "the command has exited, but a process that it started still holds its output; redirect that process's output (>/dev/null 2>&1) to let the command end"})
	e.log.Debug("command exited, output held", "exec", ShortID(e.id), "code", code)
}

// StreamEnded tells that the command's stream has ended. The provider's drain
// goroutine calls it once, last.
func (e *Exec) StreamEnded(end StreamEnd) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.streamEnd != nil {
		return
	}
	e.streamEnd = &end
	close(e.streamDone)
	if e.stop == nil {
		e.finishNaturally()
	} // else the stop in flight finishes: it knows what it did
}

// Lose ends a running exec whose end nobody will see: its session was
// destroyed, its container is gone. note may be empty.
func (e *Exec) Lose(reason LostReason, note string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if note != "" && e.view.Status == StatusRunning {
		e.note(Note{string(reason), note})
	}
	e.finish(StatusLost, nil, reason)
}

// finishNaturally ends the exec as its stream did; e.mu is held and the stream
// has ended.
func (e *Exec) finishNaturally() {
	if e.streamEnd.Code != nil {
		e.finish(StatusExited, e.streamEnd.Code, "")
		return
	}
	e.finish(StatusLost, nil, e.streamEnd.Reason)
}

// finish ends the exec; the first call wins. e.mu is held.
func (e *Exec) finish(status Status, code *int, reason LostReason) {
	if e.view.Status != StatusRunning {
		return
	}
	e.view.Status, e.view.ExitCode, e.view.LostReason = status, code, reason
	e.view.EndedAt = time.Now()
	switch end := e.streamEnd; {
	case end != nil:
		e.view.OutputComplete, e.view.OutputHeld = end.Complete, false
		if status == StatusExited || status == StatusKilled {
			e.view.OOMKilled = end.OOM
		}
		for _, n := range end.Notes {
			e.note(n)
		}
	case e.isWhole:
		e.view.OutputComplete, e.view.OutputHeld = true, false
	}
	if code != nil {
		e.view.CommandExitCode = nil // said by ExitCode now
	}
	if e.timer != nil && e.timer.Stop() {
		e.work.Done()
	}
	e.spool.Seal()
	e.spool.pool.Ended(e.spool)
	e.endLife()
	close(e.done)
	e.log.Debug("exec ended", "exec", ShortID(e.id), "status", status, "stdout_bytes", e.spool.Total(Stdout), "stderr_bytes", e.spool.Total(Stderr))
}
