package sandbox

import "context"

// WriteStdin sends p to the command, whole and in order, not mixed with another
// write (API-6). It returns how much was taken: less than all of p when ctx or
// the command ends before. KindStdinClosed when the command takes no input (any
// more).
func (e *Exec) WriteStdin(ctx context.Context, p []byte) (int, error) {
	if err := e.takesStdin(); err != nil {
		return 0, err
	}
	select {
	case e.stdinOne <- struct{}{}:
		defer func() { <-e.stdinOne }()
	case <-ctx.Done():
		return 0, ctx.Err()
	case <-e.done:
		return 0, stdinClosed()
	}
	if err := e.takesStdin(); err != nil {
		return 0, err
	}
	n, err := e.provider().WriteStdin(ctx, p)
	if err != nil && ctx.Err() == nil {
		return n, stdinClosed().Because(err)
	}
	return n, err
}

// CloseStdin lets the command see the end of its input, after what was written
// before. Closing twice, or after the end, is harmless.
func (e *Exec) CloseStdin(ctx context.Context) error {
	if !e.keepsStdin {
		return nil
	}
	select {
	case e.stdinOne <- struct{}{}:
		defer func() { <-e.stdinOne }()
	case <-ctx.Done():
		return ctx.Err()
	case <-e.done:
		return nil
	}
	return e.closeStdin()
}

// closeStdin half-closes; the caller holds the stdin token.
func (e *Exec) closeStdin() error {
	e.mu.Lock()
	closed := e.stdinClosed || e.view.Status != StatusRunning
	e.stdinClosed = true
	e.mu.Unlock()
	if closed {
		return nil
	}
	return e.provider().CloseStdin()
}

func (e *Exec) takesStdin() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if !e.spec.StdinOpen || e.stdinClosed || e.view.Status != StatusRunning || e.streamEnd != nil {
		return stdinClosed()
	}
	return nil
}

// sendFirstStdin writes what the spec carries. A command that ends without
// reading it is no error (EN-06), so a failed write needs no report: the
// command's own end tells the rest.
func (e *Exec) sendFirstStdin() {
	defer func() { <-e.stdinOne }()
	if len(e.spec.Stdin) > 0 {
		if _, err := e.provider().WriteStdin(e.life, e.spec.Stdin); err != nil {
			return
		}
	}
	if !e.spec.StdinOpen {
		_ = e.closeStdin() // likewise
	}
}

func stdinClosed() *Error {
	return Errorf("write stdin", KindStdinClosed, "the command takes no input (any more): start it with stdin_open to write to it while it runs")
}
