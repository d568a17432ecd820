package docker

import (
	"context"
	"errors"
	"io"
	"path"

	"caisson/sandbox"
)

// WriteArchive lays out a plain tar below a directory, which is made where it
// is missing (sandbox.Session). What is there already stays, except files of
// the archive's names. The archive goes to a stage in that directory first; a
// refused or cut one leaves nothing.
//
// archive's Read must not block for ever: WriteArchive waits for it.
func (t fileTools) WriteArchive(ctx context.Context, dir string, archive io.Reader) ([]sandbox.FileWritten, error) {
	return t.extract(ctx, dir, archive, uploadLimits)
}

// canExtract says whether the image has what WriteArchive needs.
func (t fileTools) canExtract(ctx context.Context) error {
	_, err := t.command(ctx, opExtract, fileBase+"need tar mv rm mkdir readlink\necho OK\n", nil, nil)
	return err
}

func (t fileTools) extract(ctx context.Context, dir string, archive io.Reader, limits tarLimits) ([]sandbox.FileWritten, error) {
	at, err := t.place(dir)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, archiveLimit)
	defer cancel()

	pr, pw := io.Pipe()
	plain := newPlainTar(pw, limits)
	copied := make(chan error, 1)
	go func() {
		err := plain.copy(archive)
		// The script sees the end of its input, and that the list of sums is
		// missing when err is not nil: it then takes all back itself.
		_ = pw.Close() // never fails
		copied <- err
	}()
	id := transferID()
	_, err = t.command(ctx, opExtract, extractScript(), []string{id, t.root, at.anchor, at.rel}, pr)
	_ = pr.Close() // frees the copier from a script that ended early
	copyErr := <-copied

	var sent errSent // is no failure by itself: tar need not read to the last block
	if copyErr != nil && !errors.As(copyErr, &sent) {
		return nil, copyErr
	}
	if err != nil {
		t.cleanExtract(ctx, id, at, err)
		return nil, aboutEntry(err, dir)
	}
	for i := range plain.written {
		plain.written[i].Path = path.Join(at.abs, plain.written[i].Path)
	}
	return plain.written, nil
}

// cleanExtract takes away the stage of a run that did not end by its own report,
// on its own context: the caller's may be what ended it.
func (t fileTools) cleanExtract(ctx context.Context, id string, at place, err error) {
	var report *reportError
	if errors.As(err, &report) && report.word != "" || sandbox.KindOf(err) == sandbox.KindSessionLost {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanupLimit)
	defer cancel()
	// The transfer's own failure is the one that the caller hears of.
	_, _ = t.command(ctx, opExtract, extractScript(), []string{id, t.root, at.anchor, at.rel, "clean"}, nil)
}

// aboutEntry names the entry that could not take its place, or else the directory.
func aboutEntry(err error, dir string) error {
	var report *reportError
	if errors.As(err, &report) && report.detail != "" && report.word != "missing" {
		return about(err, path.Join(dir, report.detail))
	}
	return about(err, dir)
}
