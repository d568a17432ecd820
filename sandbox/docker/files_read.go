package docker

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"io/fs"
	"strconv"

	"caisson/sandbox"
)

const (
	opRead    = "read a file"
	readBlock = 64 << 10 // of the read script
	// treeMost is how much of a directory's raw tar is taken: more than a call
	// carries, since special files and odd headers are left out of it.
	treeMost = 2 * sandbox.FilePieceLimit
)

// offsetMost is past the end of any file (16 TiB); beyond it seeks fail on some
// file systems, where a piece past the end is just empty.
const offsetMost = 1 << 43

// ReadFile reads a piece of a file, or a whole directory as a tar
// (sandbox.Session). Without a limit it is as much as one call carries.
func (t fileTools) ReadFile(ctx context.Context, read sandbox.FileRead) (sandbox.FileContent, error) {
	if err := checkRead(&read); err != nil {
		return sandbox.FileContent{}, err
	}
	at, err := t.place(read.Path)
	if err != nil {
		return sandbox.FileContent{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, transferLimit)
	defer cancel()
	id := transferID()
	unit, from := "bytes", min(read.Offset, offsetMost)
	if read.StartLine > 0 {
		unit, from = "lines", read.StartLine
	}
	args := []string{
		id, t.root, at.anchor, at.rel, unit, strconv.FormatInt(from, 10), strconv.FormatInt(read.LineCount, 10),
		strconv.FormatInt(read.Limit, 10), strconv.Itoa(treeMost + 1),
	}
	// A directory brings more than a file's piece may; which it is, nobody knows yet.
	got, err := t.fetch(ctx, opRead, id, readScript(), args, treeMost+1)
	if err != nil {
		return sandbox.FileContent{}, about(err, read.Path)
	}
	if got.dir {
		content, err := tree(got)
		content.Path = at.abs
		return content, about(err, read.Path)
	}
	content, err := piece(got, read)
	content.Path = at.abs
	return content, about(err, read.Path)
}

func checkRead(read *sandbox.FileRead) error {
	switch {
	case read.Limit < 0 || read.Limit > sandbox.FilePieceLimit:
		return sandbox.Invalid("limit", "limit is 1 to %d bytes", sandbox.FilePieceLimit)
	case read.StartLine < 0:
		return sandbox.Invalid("start_line", "start_line counts from 1")
	case read.LineCount < 0:
		return sandbox.Invalid("line_count", "line_count is negative")
	}
	if read.Limit == 0 {
		read.Limit = sandbox.FilePieceLimit
	}
	if read.LineCount > 0 && read.StartLine == 0 {
		read.StartLine = 1
	}
	return nil
}

// piece cuts out of the blocks that came what was asked for.
func piece(got framed, read sandbox.FileRead) (sandbox.FileContent, error) {
	mode, modeErr := parseMode(got.mode)
	// What has no size is read through a pipe, whose status is not its reader's.
	if got.size == 0 && errnoFailure(opRead, got.stderr) != nil {
		got.status = 1
	}
	if got.status != 0 || modeErr != nil || got.size < 0 || got.off < got.start || got.start < 0 {
		if err := errnoFailure(opRead, got.stderr); err != nil {
			return sandbox.FileContent{}, err.Because(&reportError{word: "read", stderr: got.stderr, code: got.status})
		}
		return sandbox.FileContent{}, errCut(opRead).Because(modeErr)
	}
	content := got.content[min(got.off-got.start, int64(len(got.content))):]
	content = bytes.Clone(content[:min(read.Limit, int64(len(content)))]) // so that the blocks around it can go
	out := sandbox.FileContent{Size: got.size, Offset: got.off, Content: content, SHA256: got.sum, Mode: mode}
	end := got.off + int64(len(content))
	switch {
	case got.size > 0:
		out.EOF = end >= got.size
	case read.StartLine > 0: // a file of /proc has no size, whatever is in it
		out.EOF = int64(len(content)) < read.Limit && (read.LineCount == 0 || int64(bytes.Count(content, []byte("\n"))) < read.LineCount)
	default:
		out.EOF = int64(len(content)) < read.Limit
	}
	if out.Size == 0 && out.EOF {
		out.Size = end
	}
	if out.EOF && got.off == 0 {
		out.SHA256 = sumOf(content)
	}
	if !out.EOF {
		out.SHA256 = ""
	}
	return out, nil
}

// parseMode reads permission and set-id bits in octal, or as ls shows them.
func parseMode(text string) (fs.FileMode, error) {
	if len(text) >= 10 {
		return listedMode(text), nil
	}
	bits, err := strconv.ParseUint(text, 8, 16)
	if err != nil {
		return 0, err
	}
	return unixMode(uint32(bits)), nil
}

func unixMode(bits uint32) fs.FileMode {
	mode := fs.FileMode(bits) & fs.ModePerm
	for _, b := range []struct {
		bit  uint32
		mode fs.FileMode
	}{{0o4000, fs.ModeSetuid}, {0o2000, fs.ModeSetgid}, {0o1000, fs.ModeSticky}} {
		if bits&b.bit != 0 {
			mode |= b.mode
		}
	}
	return mode
}

// listedMode reads a mode as ls shows it, like -rwsr-x--t.
func listedMode(text string) fs.FileMode {
	var bits uint32
	special := [3]uint32{0o4000, 0o2000, 0o1000}
	for _, c := range text[1:10] {
		bits <<= 1
		switch c {
		case 'r', 'w', 'x', 's', 't':
			bits |= 1
		}
	}
	for i, extra := range special {
		if c := text[3+3*i]; c == 's' || c == 'S' || c == 't' || c == 'T' {
			bits |= extra
		}
	}
	return unixMode(bits)
}

func sumOf(content []byte) string {
	sum := sha256.Sum256(content)
	return hex.EncodeToString(sum[:])
}
