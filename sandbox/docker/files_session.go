package docker

import (
	"context"
	"io"

	"caisson/sandbox"
)

func (s *Session) files() fileTools { return fileTools{run: s, root: workspacePath} }

// WriteFiles writes files as the session's user (sandbox.Session).
func (s *Session) WriteFiles(ctx context.Context, files []sandbox.FileWrite) ([]sandbox.FileWritten, error) {
	return s.files().WriteFiles(ctx, files)
}

// WriteArchive lays out a plain tar below a directory (sandbox.Session).
func (s *Session) WriteArchive(ctx context.Context, path string, tar io.Reader) ([]sandbox.FileWritten, error) {
	return s.files().WriteArchive(ctx, path, tar)
}

// ReadFile reads a piece of a file, or a whole directory as a tar (sandbox.Session).
func (s *Session) ReadFile(ctx context.Context, read sandbox.FileRead) (sandbox.FileContent, error) {
	return s.files().ReadFile(ctx, read)
}

// ReadDir lists a directory (sandbox.Session).
func (s *Session) ReadDir(ctx context.Context, path string, recursive bool, limit int) ([]sandbox.DirEntry, bool, error) {
	return s.files().ReadDir(ctx, path, recursive, limit)
}
