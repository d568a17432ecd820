package docker

import (
	"archive/tar"
	"bytes"
	"context"
	"path"
	"slices"
	"time"

	"github.com/containerd/errdefs"

	"caisson/sandbox"
)

// archive collects what is put into a container before it starts (D19): a plain tar from the
// root on. It has no entry for what is there already: that would give it another owner.
type archive struct {
	buffer  bytes.Buffer
	w       *tar.Writer
	entries int
}

func newArchive() *archive {
	a := &archive{}
	a.w = tar.NewWriter(&a.buffer)
	return a
}

// file adds a file; name is absolute.
func (a *archive) file(name string, mode int64, owner account, content string) error {
	a.entries++
	if err := a.w.WriteHeader(&tar.Header{
		Typeflag: tar.TypeReg, Name: name[1:], Mode: mode, Uid: owner.uid, Gid: owner.gid, Size: int64(len(content)), ModTime: time.Now(),
	}); err != nil {
		return err
	}
	_, err := a.w.Write([]byte(content))
	return err
}

// directory adds a directory; name is absolute.
func (a *archive) directory(name string, owner account) error {
	a.entries++
	return a.w.WriteHeader(&tar.Header{
		Typeflag: tar.TypeDir, Name: name[1:] + "/", Mode: 0o755, Uid: owner.uid, Gid: owner.gid, ModTime: time.Now(),
	})
}

// initialFiles adds an operator's files as the session's user's, with the parents that the
// container lacks.
func (c *creation) initialFiles(ctx context.Context, a *archive, files []sandbox.InitialFile) error {
	known := map[string]bool{"/": true}
	for _, f := range files {
		if err := c.parents(ctx, a, path.Dir(f.Path), known); err != nil {
			return err
		}
		mode := f.Mode
		if mode == 0 {
			mode = 0o600
		}
		if err := a.file(f.Path, mode, c.facts.user, f.Content.Reveal()); err != nil {
			return err
		}
	}
	return nil
}

// parents adds dir and what is above it, where it is neither in the container nor known.
func (c *creation) parents(ctx context.Context, a *archive, dir string, known map[string]bool) error {
	var above []string
	for ; !known[dir]; dir = path.Dir(dir) {
		above = append(above, dir)
		known[dir] = true
	}
	missing := false
	for _, name := range slices.Backward(above) {
		if !missing {
			there, err := c.p.exists(ctx, c.containerID, name)
			if err != nil {
				return err
			}
			missing = !there
		}
		if missing {
			if err := a.directory(name, c.facts.user); err != nil {
				return err
			}
		}
	}
	return nil
}

// exists says whether a container has something of that name. A link counts as what it is.
func (p *Provider) exists(ctx context.Context, id, name string) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, callLimit)
	defer cancel()
	_, err := p.api.ContainerStatPath(ctx, id, name)
	switch {
	case err == nil:
		return true, nil
	case errdefs.IsNotFound(err):
		return false, nil
	}
	return false, p.failed("look into the container", err)
}
