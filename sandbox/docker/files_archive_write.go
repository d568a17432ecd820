package docker

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"path"
	"strings"
	"time"

	"github.com/docker/docker/api/types/container"

	"caisson/sandbox"
)

// archiveLimits are smaller than those of a script: the archive is kept in
// memory until all of it is known to be good.
var archiveLimits = tarLimits{bytes: 64 << 20, entries: 5000, names: 4 << 20, depth: 64}

// writeArchive is what WriteFiles of archiveTools sends.
type writeArchive struct {
	a    archiveTools
	tw   *tar.Writer
	made map[string]bool // directories
}

// WriteFiles is WriteFiles of fileTools.
func (a archiveTools) WriteFiles(ctx context.Context, files []sandbox.FileWrite) ([]sandbox.FileWritten, error) {
	tools := fileTools{root: workspacePath}
	plan, err := tools.planWrite(files)
	if err != nil || len(files) == 0 {
		return nil, err
	}
	err = a.frozen(ctx, opWrite, func(ctx context.Context) error {
		var out bytes.Buffer
		w := writeArchive{a: a, tw: tar.NewWriter(&out), made: map[string]bool{}}
		paths := make([]string, len(files))
		for i, f := range files {
			at, err := tools.target(f.Path)
			if err == nil {
				paths[i], plan.written[i].Size, err = w.add(ctx, f, at)
			}
			if err != nil {
				return err
			}
		}
		if err := errors.Join(w.tw.Close(), a.put(ctx, opWrite, &out)); err != nil {
			return err
		}
		return a.verify(ctx, paths, plan.written)
	})
	if err != nil {
		return nil, err
	}
	return plan.written, nil
}

func (w writeArchive) add(ctx context.Context, f sandbox.FileWrite, at place) (name string, size int64, err error) {
	found, err := w.a.locate(ctx, opWrite, at)
	if err != nil {
		return "", 0, err
	}
	content, mode, err := w.a.merged(ctx, f, found)
	if err != nil {
		return "", 0, err
	}
	if f.Mode != nil {
		mode = f.Mode.Perm()
	}
	var dirs []string
	for dir := path.Dir(found.path); dir != found.have && found.stat == nil && !w.made[dir]; dir = path.Dir(dir) {
		w.made[dir] = true
		dirs = append(dirs, dir)
	}
	for i := len(dirs) - 1; i >= 0; i-- {
		if err := w.tw.WriteHeader(w.a.header(tar.TypeDir, dirs[i]+"/", 0o755, 0)); err != nil {
			return "", 0, err
		}
	}
	if err := w.tw.WriteHeader(w.a.header(tar.TypeReg, found.path, mode, len(content))); err != nil {
		return "", 0, err
	}
	_, err = w.tw.Write(content)
	return found.path, int64(len(content)), err
}

// merged is what a file will hold, and the mode that it has or gets.
func (a archiveTools) merged(ctx context.Context, f sandbox.FileWrite, found located) ([]byte, fs.FileMode, error) {
	before, mode := int64(0), fs.FileMode(0o644)
	if found.stat != nil {
		mode = found.stat.Mode.Perm()
		switch {
		case found.stat.Mode.IsDir():
			return nil, 0, sandbox.Errorf(opWrite, sandbox.KindIsDirectory, "%q: a directory is there", f.Path)
		case !found.stat.Mode.IsRegular():
			return nil, 0, sandbox.Invalid("path", "%q: not a regular file", f.Path)
		case mode&0o200 == 0:
			return nil, 0, sandbox.Errorf(opWrite, sandbox.KindPermission, "%q is read-only", f.Path)
		}
		before = found.stat.Size
	}
	if !f.Append {
		return f.Content, mode, nil
	}
	if f.ExpectedSize != nil && *f.ExpectedSize != before {
		return nil, 0, sandbox.Invalid("expected_size", "%q: the file is %d bytes long", f.Path, before)
	}
	if before > writesTotal {
		return nil, 0, sandbox.Errorf(opWrite, sandbox.KindNotSupported, "with this image nothing can be appended to files of more than %d bytes", writesTotal)
	}
	if before == 0 {
		return f.Content, mode, nil
	}
	var old bytes.Buffer
	err := a.open(ctx, opWrite, found.path, func(_ int64, r io.Reader) error {
		_, err := io.Copy(&old, r)
		return err
	})
	return append(old.Bytes(), f.Content...), mode, err
}

// header is for what belongs to the session's user, under an absolute path.
func (a archiveTools) header(kind byte, name string, mode fs.FileMode, size int) *tar.Header {
	return &tar.Header{
		Typeflag: kind, Name: strings.TrimPrefix(name, workspacePath+"/"), Mode: int64(mode.Perm()), Size: int64(size),
		Uid: a.s.user.uid, Gid: a.s.user.gid, ModTime: time.Now().Truncate(time.Second),
	}
}

func (a archiveTools) put(ctx context.Context, op string, content io.Reader) error {
	if err := a.s.p.api.CopyToContainer(ctx, a.s.containerID, workspacePath, content, container.CopyToContainerOptions{}); err != nil {
		return a.s.failed(op, err)
	}
	return nil
}

func (a archiveTools) verify(ctx context.Context, paths []string, written []sandbox.FileWritten) error {
	for i, name := range paths {
		stat, err := a.stat(ctx, opWrite, name)
		if err != nil {
			return err
		}
		if stat == nil || stat.Size != written[i].Size {
			return sandbox.Errorf(opWrite, sandbox.KindUnavailable, "%q did not arrive whole", written[i].Path)
		}
	}
	return nil
}

// WriteArchive is WriteArchive of fileTools, with smaller limits.
func (a archiveTools) WriteArchive(ctx context.Context, dir string, archive io.Reader) ([]sandbox.FileWritten, error) {
	at, err := fileTools{root: workspacePath}.place(dir)
	if err != nil {
		return nil, err
	}
	var plain bytes.Buffer
	p := newPlainTar(&plain, archiveLimits)
	if err := p.copy(archive); err != nil {
		return nil, err
	}
	err = a.frozen(ctx, opExtract, func(ctx context.Context) error {
		found, err := a.locate(ctx, opExtract, at)
		if err != nil {
			return err
		}
		if found.stat != nil && !found.stat.Mode.IsDir() {
			return sandbox.Errorf(opExtract, sandbox.KindNotDirectory, "%q is not a directory", dir)
		}
		placed, err := a.placed(ctx, &plain, found)
		if err != nil {
			return err
		}
		return a.put(ctx, opExtract, placed)
	})
	if err != nil {
		return nil, err
	}
	for i := range p.written {
		p.written[i].Path = path.Join(at.abs, p.written[i].Path)
	}
	return p.written, nil
}

// placed moves a plain tar below a directory and gives it to the session's user.
// What is there already may not be in its way; a link never gives way.
func (a archiveTools) placed(ctx context.Context, plain io.Reader, dir located) (io.Reader, error) {
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	var missing []string
	for up := dir.path; up != dir.have && dir.stat == nil; up = path.Dir(up) {
		missing = append(missing, up)
	}
	for i := len(missing) - 1; i >= 0; i-- {
		if err := w.WriteHeader(a.header(tar.TypeDir, missing[i]+"/", 0o755, 0)); err != nil {
			return nil, err
		}
	}
	free := map[string]bool{dir.path: dir.stat == nil}
	r := tar.NewReader(plain)
	for {
		hdr, err := r.Next()
		if errors.Is(err, io.EOF) || err == nil && hdr.Name == sumsName {
			return &out, w.Close()
		}
		if err != nil {
			return nil, err
		}
		name := path.Join(dir.path, hdr.Name)
		skip, err := a.collides(ctx, name, hdr, free)
		if err != nil {
			return nil, err
		}
		if skip {
			continue
		}
		moved := a.header(hdr.Typeflag, name, fs.FileMode(hdr.Mode), int(hdr.Size))
		moved.ModTime, moved.Linkname = hdr.ModTime, hdr.Linkname
		if hdr.Typeflag == tar.TypeLink {
			moved.Linkname = strings.TrimPrefix(path.Join(dir.path, hdr.Linkname), workspacePath+"/")
		}
		if hdr.Typeflag == tar.TypeDir {
			moved.Name += "/"
		}
		if err := w.WriteHeader(moved); err != nil {
			return nil, err
		}
		if _, err := io.Copy(w, r); err != nil {
			return nil, err
		}
	}
}

// collides asks what is at an entry's place. free remembers the directories that
// are new, in which nothing can be.
func (a archiveTools) collides(ctx context.Context, name string, hdr *tar.Header, free map[string]bool) (skip bool, err error) {
	if free[path.Dir(name)] {
		free[name] = true
		return false, nil
	}
	stat, err := a.stat(ctx, opExtract, name)
	if err != nil {
		return false, err
	}
	isDir := hdr.Typeflag == tar.TypeDir
	switch {
	case stat == nil:
		free[name] = true
		return false, nil
	case stat.LinkTarget != "" || stat.Mode&fs.ModeSymlink != 0:
		return false, sandbox.Errorf(opExtract, sandbox.KindPathEscapes, "%q: a link is there", name)
	case isDir && !stat.Mode.IsDir():
		return false, sandbox.Errorf(opExtract, sandbox.KindNotDirectory, "%q is not a directory", name)
	case !isDir && stat.Mode.IsDir():
		return false, sandbox.Errorf(opExtract, sandbox.KindIsDirectory, "%q: a directory is there", name)
	case !isDir && !stat.Mode.IsRegular():
		return false, sandbox.Invalid("path", "%q: not a regular file", name)
	case !isDir && stat.Mode&0o200 == 0:
		return false, sandbox.Errorf(opExtract, sandbox.KindPermission, "%q is read-only", name)
	}
	return isDir, nil // a directory that is there keeps its mode and owner
}
