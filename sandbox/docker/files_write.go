package docker

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"strconv"
	"strings"

	"caisson/sandbox"
)

const (
	writesMost   = 1000                       // files of one call
	writesTotal  = 4 * sandbox.FilePieceLimit // their contents
	writeArgsMax = 512 << 10                  // their paths, on a command line
	opWrite      = "write files"
)

// writePlan is one call's files as the write script takes them.
type writePlan struct {
	id      string
	files   []sandbox.FileWrite
	written []sandbox.FileWritten
	args    []string // seven for each file
}

// WriteFiles writes files as the session's user (sandbox.Session). All are
// staged beside their targets and checked before the first one is put in place.
func (t fileTools) WriteFiles(ctx context.Context, files []sandbox.FileWrite) ([]sandbox.FileWritten, error) {
	plan, err := t.planWrite(files)
	if err != nil || len(files) == 0 {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, transferLimit)
	defer cancel()
	report, err := t.send(ctx, plan)
	if err != nil {
		t.cleanWrite(ctx, plan, err)
		return nil, plan.named(err)
	}
	if err := plan.read(report); err != nil {
		return nil, err
	}
	return plan.written, nil
}

func (t fileTools) send(ctx context.Context, plan *writePlan) (string, error) {
	if len(plan.files) == 1 {
		return t.command(ctx, opWrite, writeScript(), plan.argv(t.root, "stdin"), bytes.NewReader(plan.files[0].Content))
	}
	report, err := t.command(ctx, opWrite, writeScript(), plan.argv(t.root, "tar"), tarOf(plan.files))
	if !lacks(err, "tar") {
		return report, err
	}
	for i, f := range plan.files {
		args := []string{plan.id, t.root, strconv.Itoa(i + 1)}
		if _, err := t.command(ctx, opWrite, stageScript(), args, bytes.NewReader(f.Content)); err != nil {
			return "", err
		}
	}
	return t.command(ctx, opWrite, writeScript(), plan.argv(t.root, "staged"), nil)
}

// cleanWrite takes away what a transfer that did not end by its own report has
// left. A script that reported has done so itself. It runs on its own context,
// since the caller's may be what ended the transfer.
func (t fileTools) cleanWrite(ctx context.Context, plan *writePlan, err error) {
	var report *reportError
	if errors.As(err, &report) && report.word != "" && len(plan.files) == 1 || sandbox.KindOf(err) == sandbox.KindSessionLost {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanupLimit)
	defer cancel()
	// The transfer's own failure is the one that the caller hears of.
	_, _ = t.command(ctx, opWrite, writeScript(), plan.argv(t.root, "clean"), nil)
}

func (t fileTools) planWrite(files []sandbox.FileWrite) (*writePlan, error) {
	plan := &writePlan{id: transferID(), files: files}
	if len(files) > writesMost {
		return nil, sandbox.Errorf(opWrite, sandbox.KindTooLarge, "%d files in one call, and %d are the most", len(files), writesMost)
	}
	seen := make(map[string]bool, len(files))
	total, argBytes := 0, 0
	for _, f := range files {
		if err := checkWrite(f, len(files)); err != nil {
			return nil, err
		}
		at, err := t.target(f.Path)
		if err != nil {
			return nil, err
		}
		if seen[at.abs] {
			return nil, sandbox.Invalid("path", "%q is there twice", f.Path)
		}
		seen[at.abs] = true
		plan.add(f, at)
		total += len(f.Content)
		argBytes += len(at.rel) + 160
	}
	for at := range seen {
		for dir := path.Dir(at); dir != "/" && dir != "."; dir = path.Dir(dir) {
			if seen[dir] {
				return nil, sandbox.Invalid("files", "%q is a file here, and cannot hold %q as well", dir, at)
			}
		}
	}
	if total > writesTotal || argBytes > writeArgsMax {
		return nil, sandbox.Errorf(opWrite, sandbox.KindTooLarge, "the files are more than one call can carry (%d bytes): send fewer at once", writesTotal)
	}
	return plan, nil
}

func checkWrite(f sandbox.FileWrite, files int) error {
	switch {
	case len(f.Content) > sandbox.FilePieceLimit:
		return sandbox.Errorf(opWrite, sandbox.KindTooLarge, "%d bytes for %q, and a piece is at most %d: append the rest", len(f.Content), f.Path, sandbox.FilePieceLimit)
	case f.Mode != nil && *f.Mode&^fs.ModePerm != 0:
		return sandbox.Invalid("mode", "mode takes permission bits, 0000 to 0777")
	case f.Append && files > 1:
		return sandbox.Invalid("append", "append takes one file at a time")
	case f.ExpectedSize != nil && !f.Append:
		return sandbox.Invalid("expected_size", "expected_size goes with append")
	case f.ExpectedSize != nil && *f.ExpectedSize < 0:
		return sandbox.Invalid("expected_size", "expected_size is negative")
	}
	return nil
}

func (p *writePlan) add(f sandbox.FileWrite, at place) {
	w := sandbox.FileWritten{Path: at.abs, Bytes: int64(len(f.Content)), SHA256: sumOf(f.Content)}
	p.written = append(p.written, w)
	how, mode, before := "write", "", ""
	if f.Append {
		how = "append"
	}
	if f.Mode != nil {
		mode = fmt.Sprintf("%o", f.Mode.Perm())
	}
	if f.ExpectedSize != nil {
		before = strconv.FormatInt(*f.ExpectedSize, 10)
	}
	p.args = append(p.args, at.anchor, at.rel, how, mode, strconv.Itoa(len(f.Content)), w.SHA256, before)
}

func (p *writePlan) argv(root, from string) []string {
	return append([]string{p.id, root, from}, p.args...)
}

// read takes the sizes from the script's report.
func (p *writePlan) read(report string) error {
	lines := strings.Split(report, "\n")
	if len(lines) != len(p.written)+2 {
		return errCut(opWrite)
	}
	for i := range p.written {
		if _, err := fmt.Sscanf(lines[i], "W %d", &p.written[i].Size); err != nil {
			return errCut(opWrite).Because(err)
		}
	}
	return nil
}

// named puts the path of the file at fault into the error.
func (p *writePlan) named(err error) error {
	var report *reportError
	if !errors.As(err, &report) {
		return err
	}
	switch {
	case report.file >= 1 && report.file <= len(p.files):
		return about(err, p.files[report.file-1].Path)
	case len(p.files) == 1:
		return about(err, p.files[0].Path)
	}
	return err
}

// tarOf is a plain tar of the contents, under the names 1, 2 and so on, without
// a copy of them.
func tarOf(files []sandbox.FileWrite) io.Reader {
	var parts []io.Reader
	for i, f := range files {
		var head bytes.Buffer
		// A header of this form always fits its block, and a buffer takes it.
		_ = tar.NewWriter(&head).WriteHeader(&tar.Header{
			Typeflag: tar.TypeReg, Name: strconv.Itoa(i + 1), Mode: 0o600, Size: int64(len(f.Content)), Format: tar.FormatUSTAR,
		})
		pad := make([]byte, -len(f.Content)&511)
		parts = append(parts, &head, bytes.NewReader(f.Content), bytes.NewReader(pad))
	}
	return io.MultiReader(append(parts, bytes.NewReader(make([]byte, 1024)))...)
}
