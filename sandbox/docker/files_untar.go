package docker

import (
	"archive/tar"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"path"
	"strings"

	"caisson/sandbox"
)

// tarLimits bound an archive that comes in, whatever it says of itself.
type tarLimits struct {
	bytes   int64 // of all files, expanded
	entries int
	names   int // bytes of all names, which we keep
	depth   int
}

var uploadLimits = tarLimits{bytes: 512 << 20, entries: 100_000, names: 16 << 20, depth: 64}

const (
	sumsName    = ".caisson-sums" // of the extract script
	ownPrefix   = ".caisson-"
	opExtract   = "extract an archive"
	tarFileMode = 0o600
)

// plainTar reads a tar that a caller sent and writes one in which nothing can
// surprise the session's tar: plain files, directories, links that stay inside,
// in the oldest form that carries them; no owners, no set-id bits, no
// attributes, each name once. Anything else is refused, not repaired: a caller
// is told what would be missing.
type plainTar struct {
	limits tarLimits
	tw     *tar.Writer

	types   map[string]byte // by name
	names   int
	left    int64
	sums    strings.Builder
	written []sandbox.FileWritten // Path is the name inside the archive
}

func newPlainTar(w io.Writer, limits tarLimits) *plainTar {
	return &plainTar{limits: limits, tw: tar.NewWriter(w), types: map[string]byte{}, left: limits.bytes}
}

// copy moves all of r and ends with the list of sums, without which the extract
// script takes the archive for cut.
func (p *plainTar) copy(r io.Reader) error {
	tr := tar.NewReader(r)
	for n := 0; ; n++ {
		hdr, err := tr.Next()
		switch {
		case errors.Is(err, io.EOF) && n == 0:
			return sandbox.Invalid("content", "the archive is empty")
		case errors.Is(err, io.EOF):
			return p.finish()
		case err != nil:
			return badTar(err)
		case n >= p.limits.entries:
			return sandbox.Errorf(opExtract, sandbox.KindTooLarge, "more than %d entries in the archive", p.limits.entries)
		}
		if err := p.entry(hdr, tr); err != nil {
			return err
		}
	}
}

func badTar(err error) error {
	if errors.Is(err, io.ErrUnexpectedEOF) {
		return sandbox.Invalid("content", "the archive is cut").Because(err)
	}
	return sandbox.Invalid("content", "not a tar archive, or a damaged one").Because(err)
}

func (p *plainTar) entry(hdr *tar.Header, r io.Reader) error {
	if hdr.Typeflag == tar.TypeXGlobalHeader {
		return nil // a comment, as git makes it; its fields are not carried over
	}
	name, err := p.name(hdr)
	if err != nil || name == "." {
		return err
	}
	if hdr.Mode&0o7000 != 0 {
		return refused(hdr.Name, "has set-user-id, set-group-id or sticky bits")
	}
	out := &tar.Header{Typeflag: hdr.Typeflag, Name: name, Mode: hdr.Mode & 0o777, ModTime: saneTime(hdr.ModTime), Format: tar.FormatGNU}
	switch hdr.Typeflag {
	case tar.TypeReg:
		return p.file(hdr, out, r)
	case tar.TypeDir:
		out.Name += "/"
		out.Mode |= 0o700 // or nothing could be put into it
	case tar.TypeSymlink:
		if !staysInside(name, hdr.Linkname) || len(hdr.Linkname) > pathLimit {
			return refused(hdr.Name, "is a link that leads out of the archive")
		}
		out.Linkname, out.Mode = hdr.Linkname, 0o777
	case tar.TypeLink:
		out.Linkname = path.Clean(hdr.Linkname)
		if p.types[out.Linkname] != tar.TypeReg {
			return refused(hdr.Name, "is a hard link to what is no earlier file of the archive")
		}
	default:
		return refused(hdr.Name, "is a device, a FIFO or another kind that is not taken")
	}
	if p.types[name] == tar.TypeDir {
		return nil // a directory named twice
	}
	p.types[name] = hdr.Typeflag
	return p.write(out)
}

// name checks an entry's name: inside, new, and not below one that is no
// directory. Directories that the archive only implies are written out.
func (p *plainTar) name(hdr *tar.Header) (string, error) {
	name := path.Clean(hdr.Name)
	p.names += len(name)
	parts := strings.Split(name, "/")
	switch {
	case hdr.Name == "" || strings.ContainsRune(hdr.Name, 0):
		return "", refused(hdr.Name, "has no usable name")
	case path.IsAbs(hdr.Name), hasDotDot(hdr.Name):
		return "", sandbox.Errorf(opExtract, sandbox.KindPathEscapes, "entry %.200q leaves the directory", hdr.Name)
	case len(name) > pathLimit/2 || len(parts) > p.limits.depth || p.names > p.limits.names:
		return "", sandbox.Errorf(opExtract, sandbox.KindTooLarge, "entry %.200q is too deep or its name too long", hdr.Name)
	case strings.HasPrefix(name, ownPrefix):
		return "", refused(hdr.Name, "has a name that is kept for transfers")
	}
	for i, part := range parts {
		if len(part) > nameLimit {
			return "", sandbox.Errorf(opExtract, sandbox.KindTooLarge, "entry %.200q has a name of over %d bytes", hdr.Name, nameLimit)
		}
		above := strings.Join(parts[:i], "/")
		if kind, ok := p.types[above]; ok && kind != tar.TypeDir {
			return "", refused(hdr.Name, "lies below an entry that is no directory")
		}
		if _, ok := p.types[above]; !ok && i > 0 {
			p.types[above] = tar.TypeDir
			out := &tar.Header{Typeflag: tar.TypeDir, Name: above + "/", Mode: 0o755, ModTime: saneTime(hdr.ModTime), Format: tar.FormatGNU}
			if err := p.write(out); err != nil {
				return "", err
			}
		}
	}
	if kind, ok := p.types[name]; ok && (kind != tar.TypeDir || hdr.Typeflag != tar.TypeDir) {
		return "", refused(hdr.Name, "is there twice")
	}
	return name, nil
}

func (p *plainTar) file(hdr, out *tar.Header, r io.Reader) error {
	for key := range hdr.PAXRecords {
		if strings.HasPrefix(key, "GNU.sparse.") {
			return refused(hdr.Name, "is a sparse file")
		}
	}
	if p.left -= hdr.Size; p.left < 0 {
		return sandbox.Errorf(opExtract, sandbox.KindTooLarge, "the archive holds more than %d bytes", p.limits.bytes)
	}
	p.types[out.Name] = tar.TypeReg
	out.Size, out.Mode = hdr.Size, out.Mode|0o400
	if err := p.write(out); err != nil {
		return err
	}
	hash := sha256.New()
	source := &readErr{r: r}
	if _, err := io.Copy(p.tw, io.TeeReader(source, hash)); err != nil {
		if source.err != nil {
			return badTar(source.err)
		}
		return errSent{err}
	}
	sum := hex.EncodeToString(hash.Sum(nil))
	if !strings.ContainsAny(out.Name, "\n\r\\") { // sha256sum has an escape for these that not all know
		p.sums.WriteString(sum + "  ./" + out.Name + "\n")
	}
	p.written = append(p.written, sandbox.FileWritten{Path: out.Name, Bytes: hdr.Size, Size: hdr.Size, SHA256: sum})
	return nil
}

func (p *plainTar) finish() error {
	sums := p.sums.String()
	if err := p.write(&tar.Header{Typeflag: tar.TypeReg, Name: sumsName, Mode: tarFileMode, Size: int64(len(sums)), Format: tar.FormatGNU}); err != nil {
		return err
	}
	if _, err := io.WriteString(p.tw, sums); err != nil {
		return errSent{err}
	}
	if err := p.tw.Close(); err != nil {
		return errSent{err}
	}
	return nil
}

func (p *plainTar) write(hdr *tar.Header) error {
	if err := p.tw.WriteHeader(hdr); err != nil {
		return errSent{err}
	}
	return nil
}

// errSent is a failure of the writing side: the session takes no more, and
// knows better why.
type errSent struct{ error }

func (e errSent) Unwrap() error { return e.error }

// readErr remembers that it was the source that failed.
type readErr struct {
	r   io.Reader
	err error
}

func (r *readErr) Read(p []byte) (int, error) {
	n, err := r.r.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		r.err = err
	}
	return n, err
}

func refused(name, why string) error {
	return sandbox.Invalid("content", "entry %.200q %s", name, why)
}
