package docker

import (
	"context"
	"io"

	"caisson/sandbox"
)

// transfer moves files by the way that SANDBOX_DOCKER_FILE_TRANSFER names: auto
// is by scripts, unless the image lacks a command for them (D19).
func (s *Session) transfer(byScript func(fileTools) error, byArchive func(archiveTools) error) error {
	way := s.p.cfg.FileTransfer
	if way != TransferArchive {
		err := byScript(fileTools{run: s, root: workspacePath})
		if way != TransferAuto || !lacksAny(err) {
			return err
		}
	}
	s.note(noteArchive)
	return byArchive(s.archive())
}

// WriteFiles writes files as the session's user (sandbox.Session).
func (s *Session) WriteFiles(ctx context.Context, files []sandbox.FileWrite) (written []sandbox.FileWritten, err error) {
	err = s.transfer(func(t fileTools) (err error) {
		written, err = t.WriteFiles(ctx, files)
		return err
	}, func(a archiveTools) (err error) {
		written, err = a.WriteFiles(ctx, files)
		return err
	})
	return written, err
}

// WriteArchive lays out a plain tar below a directory (sandbox.Session).
func (s *Session) WriteArchive(ctx context.Context, path string, tar io.Reader) (written []sandbox.FileWritten, err error) {
	err = s.transfer(func(t fileTools) (err error) {
		// The archive can be read once: whether the script can run has to be
		// known before.
		if s.p.cfg.FileTransfer == TransferAuto {
			if err := t.canExtract(ctx); err != nil {
				return err
			}
		}
		written, err = t.WriteArchive(ctx, path, tar)
		return err
	}, func(a archiveTools) (err error) {
		written, err = a.WriteArchive(ctx, path, tar)
		return err
	})
	return written, err
}

// ReadFile reads a piece of a file, or a whole directory as a tar (sandbox.Session).
func (s *Session) ReadFile(ctx context.Context, read sandbox.FileRead) (content sandbox.FileContent, err error) {
	err = s.transfer(func(t fileTools) (err error) {
		content, err = t.ReadFile(ctx, read)
		return err
	}, func(a archiveTools) (err error) {
		content, err = a.ReadFile(ctx, read)
		return err
	})
	return content, err
}

// ReadDir lists a directory (sandbox.Session).
func (s *Session) ReadDir(ctx context.Context, path string, recursive bool, limit int) (entries []sandbox.DirEntry, more bool, err error) {
	err = s.transfer(func(t fileTools) (err error) {
		entries, more, err = t.ReadDir(ctx, path, recursive, limit)
		return err
	}, func(a archiveTools) (err error) {
		entries, more, err = a.ReadDir(ctx, path, recursive, limit)
		return err
	})
	return entries, more, err
}

func (s *Session) archive() archiveTools { return archiveTools{s} }
