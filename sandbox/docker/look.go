package docker

import (
	"archive/tar"
	"context"
	"io"

	"github.com/containerd/errdefs"

	"caisson/sandbox"
)

// smallFile is the most that is read of a file of accounts.
const smallFile = 1 << 20

// readSmall reads a file of a container; nil when there is none.
func (p *Provider) readSmall(ctx context.Context, id, name string) ([]byte, error) {
	var content []byte
	err := p.firstEntry(ctx, id, name, func(h *tar.Header, r io.Reader) (err error) {
		if h.Typeflag != tar.TypeReg || h.Size > smallFile {
			return sandbox.Errorf("look into the image", sandbox.KindImageUnusable, "the image's %s is no file of at most %d KiB", name, smallFile>>10)
		}
		content, err = io.ReadAll(r)
		return err
	})
	return content, err
}

// writable says whether who may write into a directory of a container. One that
// is not there may not be written.
func (p *Provider) writable(ctx context.Context, id, name string, who account) (bool, error) {
	ok := false
	err := p.firstEntry(ctx, id, name, func(h *tar.Header, _ io.Reader) error {
		bits := h.Mode & 7
		switch {
		case h.Uid == who.uid:
			bits = h.Mode >> 6 & 7
		case h.Gid == who.gid:
			bits = h.Mode >> 3 & 7
		}
		ok = h.Typeflag == tar.TypeDir && bits == 7
		return nil
	})
	return ok, err
}

func (p *Provider) hasAny(ctx context.Context, id string, names []string) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, callLimit)
	defer cancel()
	for _, name := range names {
		_, err := p.api.ContainerStatPath(ctx, id, name)
		if err == nil {
			return true, nil
		}
		if !errdefs.IsNotFound(err) {
			return false, p.failed("look into the image", err)
		}
	}
	return false, nil
}

// mostLinks is how many symbolic links are followed to a file.
const mostLinks = 4

// firstEntry shows the first entry of the archive of a path: the file, or the
// directory itself. What follows is not read. A path that is not there is no
// error, and see is not called.
func (p *Provider) firstEntry(ctx context.Context, id, name string, see func(*tar.Header, io.Reader) error) error {
	ctx, cancel := context.WithTimeout(ctx, callLimit)
	defer cancel()
	for range mostLinks {
		body, stat, err := p.api.CopyFromContainer(ctx, id, name)
		if errdefs.IsNotFound(err) {
			return nil
		}
		if err != nil {
			return p.failed("look into the image", err)
		}
		if stat.LinkTarget != "" {
			name = stat.LinkTarget
			_ = body.Close() // nothing of it is wanted
			continue
		}
		r := tar.NewReader(body)
		h, err := r.Next()
		if err == nil {
			err = see(h, r)
		}
		_ = body.Close() // the rest is not wanted
		if err != nil {
			return p.failed("look into the image", err)
		}
		return nil
	}
	return nil
}
