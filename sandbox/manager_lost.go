package sandbox

import (
	"context"
	"errors"
	"io"
)

// lose marks a session as gone. Its execs end as lost, its place is free.
func (m *Manager) lose(id string, e *entry, reason string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.loseLocked(id, e, reason)
}

// reasonOf is why a call found its session gone, in the provider's words.
func reasonOf(err error) string {
	var e *Error
	if errors.As(err, &e) && e.Text != "" {
		return e.Text
	}
	return containerGone
}

const containerGone = "its container is gone from the engine"

// loseLocked takes a lost session off our books and, as far as anything of it
// is left (a container that stops as soon as it is started), off the engine: no
// handle leads there any more, so nobody else could.
func (m *Manager) loseLocked(id string, e *entry, reason string) {
	if m.sessions[id] != e || e.leaving {
		return
	}
	m.work.Go(func() {
		ctx, cancel := context.WithTimeout(context.Background(), destroyLimit) // no caller's: it has had its answer
		defer cancel()
		if _, err := m.provider.Destroy(ctx, id); err != nil {
			m.log.Warn("remains of a lost session not destroyed", "session", ShortID(id), "error", err)
		}
	})
	m.observer.SessionEnded(true)
	m.log.Warn("session lost", "session", ShortID(id), "reason", reason)
	m.forget(id, e, reason)
	for _, r := range m.execs.byID {
		if r.exec.SessionID() == id {
			r.exec.Lose(LostContainerGone, "the session's container is gone")
		}
	}
}

func (m *Manager) loseExecs(id, note string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, r := range m.execs.byID {
		if r.exec.SessionID() == id {
			r.exec.Lose(LostContainerGone, note)
		}
	}
}

// watchedSession tells the manager when a call finds the session's container
// gone, so that the next listing agrees (EX-07).
type watchedSession struct {
	Session
	m  *Manager
	id string
	e  *entry
}

func (w *watchedSession) seen(err error) {
	if err != nil && KindOf(err) == KindSessionLost {
		w.m.lose(w.id, w.e, reasonOf(err))
	}
}

func (w *watchedSession) WriteFiles(ctx context.Context, files []FileWrite) ([]FileWritten, error) {
	written, err := w.Session.WriteFiles(ctx, files)
	w.seen(err)
	return written, err
}

func (w *watchedSession) WriteArchive(ctx context.Context, path string, tar io.Reader) ([]FileWritten, error) {
	written, err := w.Session.WriteArchive(ctx, path, tar)
	w.seen(err)
	return written, err
}

func (w *watchedSession) ReadFile(ctx context.Context, read FileRead) (FileContent, error) {
	content, err := w.Session.ReadFile(ctx, read)
	w.seen(err)
	return content, err
}

func (w *watchedSession) ReadDir(ctx context.Context, path string, recursive bool, limit int) ([]DirEntry, bool, error) {
	entries, more, err := w.Session.ReadDir(ctx, path, recursive, limit)
	w.seen(err)
	return entries, more, err
}
