package docker

import (
	"archive/tar"
	"bufio"
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"hash"
	"io"
	"io/fs"
	"strings"

	"caisson/sandbox"
)

const (
	// archiveSkip is how much of a file may come for nothing before a piece of
	// it: the engine has no way to start in the middle.
	archiveSkip = 1 << 30
	// archiveListBytes is how much of a directory's content may come for nothing
	// but its names.
	archiveListBytes = 64 << 20
)

// open gives the content of one file to use.
func (a archiveTools) open(ctx context.Context, op, name string, use func(size int64, r io.Reader) error) error {
	body, _, err := a.s.p.api.CopyFromContainer(ctx, a.s.containerID, name)
	if err != nil {
		return a.s.failed(op, err)
	}
	defer func() { _ = body.Close() }() // read or given up
	r := tar.NewReader(body)
	hdr, err := r.Next()
	if err != nil {
		return errCut(op).Because(err)
	}
	if err := use(hdr.Size, r); err != nil {
		var own *sandbox.Error
		if errors.As(err, &own) {
			return own
		}
		return errCut(op).Because(err)
	}
	return nil
}

// ReadFile is ReadFile of fileTools.
func (a archiveTools) ReadFile(ctx context.Context, read sandbox.FileRead) (content sandbox.FileContent, err error) {
	if err := checkRead(&read); err != nil {
		return content, err
	}
	at, err := fileTools{root: workspacePath}.place(read.Path)
	if err != nil {
		return content, err
	}
	err = a.frozen(ctx, opRead, func(ctx context.Context) error {
		found, err := a.locate(ctx, opRead, at)
		switch {
		case err != nil:
			return err
		case found.stat == nil:
			return sandbox.Errorf(opRead, sandbox.KindFileNotFound, "%q: no such file or directory", read.Path)
		case found.stat.Mode.IsDir():
			content, err = a.tree(ctx, found.path)
			return err
		case !found.stat.Mode.IsRegular():
			return sandbox.Invalid("path", "%q: not a regular file", read.Path)
		}
		content.Mode = found.stat.Mode & (fs.ModePerm | fs.ModeSetuid | fs.ModeSetgid | fs.ModeSticky)
		return a.open(ctx, opRead, found.path, func(size int64, r io.Reader) error { return cutOut(&content, size, r, read) })
	})
	content.Path = at.abs
	return content, err
}

// cutOut reads a piece out of a whole file as it comes.
func cutOut(content *sandbox.FileContent, size int64, r io.Reader, read sandbox.FileRead) error {
	sum := sha256.New()
	in := bufio.NewReaderSize(io.TeeReader(r, sum), 64<<10)
	content.Size = size
	off := read.Offset
	if off < 0 {
		off = max(0, size+off)
	}
	if read.StartLine > 0 {
		off = 0
		for line := int64(1); line < read.StartLine && off < size; line++ {
			n, err := skipLine(in, off)
			if off += n; err != nil {
				return err
			}
		}
	} else if min(off, size) > archiveSkip {
		return errSkip()
	} else if _, err := io.CopyN(io.Discard, in, min(off, size)); err != nil {
		return err
	}
	content.Offset = off
	var err error
	if read.LineCount > 0 {
		content.Content, err = takeLines(in, read.LineCount, read.Limit)
	} else {
		content.Content, err = io.ReadAll(io.LimitReader(in, read.Limit))
	}
	if err != nil {
		return err
	}
	content.EOF = off+int64(len(content.Content)) >= size
	if content.EOF {
		content.SHA256 = sumAtEnd(in, sum)
	}
	return nil
}

func errSkip() error {
	return sandbox.Errorf(opRead, sandbox.KindTooLarge, "with this image a file can be read up to its first %d bytes", archiveSkip)
}

func sumAtEnd(in io.Reader, sum hash.Hash) string {
	if _, err := io.Copy(io.Discard, in); err != nil {
		return ""
	}
	return hex.EncodeToString(sum.Sum(nil))
}

// skipLine reads past a line end, and says how many bytes that were.
func skipLine(in *bufio.Reader, before int64) (n int64, err error) {
	for {
		part, err := in.ReadSlice('\n')
		n += int64(len(part))
		switch {
		case err == nil || errors.Is(err, io.EOF):
			return n, nil
		case !errors.Is(err, bufio.ErrBufferFull):
			return n, err
		case before+n > archiveSkip:
			return n, errSkip()
		}
	}
}

func takeLines(in *bufio.Reader, count, limit int64) ([]byte, error) {
	var out bytes.Buffer
	for lines := int64(0); lines < count && int64(out.Len()) < limit; {
		part, err := in.ReadSlice('\n')
		out.Write(part[:min(int64(len(part)), limit-int64(out.Len()))])
		switch {
		case err == nil:
			lines++
		case errors.Is(err, io.EOF):
			return out.Bytes(), nil
		case !errors.Is(err, bufio.ErrBufferFull):
			return nil, err
		}
	}
	return out.Bytes(), nil
}

// tree is a directory as a tar; the engine's own has the directory's name in
// front of all others.
func (a archiveTools) tree(ctx context.Context, name string) (sandbox.FileContent, error) {
	body, _, err := a.s.p.api.CopyFromContainer(ctx, a.s.containerID, name)
	if err != nil {
		return sandbox.FileContent{}, a.s.failed(opRead, err)
	}
	defer func() { _ = body.Close() }() // read or given up
	var out bytes.Buffer
	w := treeWriter{tw: tar.NewWriter(&limited{w: &out, room: sandbox.FilePieceLimit}), files: map[string]bool{}, below: true}
	err = w.copy(tar.NewReader(&limitedIn{r: body, room: treeMost}))
	return w.content(&out, 0, err)
}

// limitedIn fails once more than room bytes were read.
type limitedIn struct {
	r    io.Reader
	room int64
}

func (l *limitedIn) Read(p []byte) (int, error) {
	n, err := l.r.Read(p)
	if l.room -= int64(n); l.room < 0 {
		return 0, errTreeFull
	}
	return n, err
}

// ReadDir is ReadDir of fileTools.
func (a archiveTools) ReadDir(ctx context.Context, dir string, recursive bool, limit int) (entries []sandbox.DirEntry, more bool, err error) {
	if limit < 0 || limit > listMax {
		return nil, false, sandbox.Invalid("limit", "limit is 1 to %d entries", listMax)
	}
	at, err := fileTools{root: workspacePath}.place(cmp.Or(dir, "."))
	if err != nil {
		return nil, false, err
	}
	list := &listing{limit: cmp.Or(limit, listDefault)}
	err = a.frozen(ctx, opList, func(ctx context.Context) error {
		found, err := a.locate(ctx, opList, at)
		switch {
		case err != nil:
			return err
		case found.stat == nil:
			return sandbox.Errorf(opList, sandbox.KindFileNotFound, "%q: no such directory", dir)
		case !found.stat.Mode.IsDir():
			return sandbox.Errorf(opList, sandbox.KindNotDirectory, "%q is not a directory", dir)
		}
		return a.listTar(ctx, found.path, recursive, list)
	})
	return list.sorted(), list.more, err
}

func (a archiveTools) listTar(ctx context.Context, name string, recursive bool, list *listing) error {
	body, _, err := a.s.p.api.CopyFromContainer(ctx, a.s.containerID, name)
	if err != nil {
		return a.s.failed(opList, err)
	}
	defer func() { _ = body.Close() }() // read or given up
	r := tar.NewReader(&limitedIn{r: body, room: archiveListBytes})
	for {
		hdr, err := r.Next()
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case errors.Is(err, errTreeFull):
			list.more = true
			return nil
		case err != nil:
			return errCut(opList).Because(err)
		}
		_, rest, _ := strings.Cut(strings.TrimSuffix(hdr.Name, "/"), "/")
		if rest == "" || !recursive && strings.Contains(rest, "/") {
			continue
		}
		list.take(sandbox.DirEntry{
			Path: rest, Type: tarTypes[hdr.Typeflag], Size: hdr.Size, Mode: unixMode(uint32(hdr.Mode & 0o7777)),
			ModifiedAt: hdr.ModTime.UTC(), LinkTarget: hdr.Linkname,
		})
	}
}

// tarTypes are the contract's names of tar's kinds. A hard link's second name is
// a file like the first.
var tarTypes = map[byte]string{
	tar.TypeReg: "file", tar.TypeLink: "file", tar.TypeDir: "directory", tar.TypeSymlink: "link", tar.TypeFifo: "fifo",
	tar.TypeBlock: "device", tar.TypeChar: "device",
}
