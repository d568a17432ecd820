package docker

import (
	"archive/tar"
	"bytes"
	"errors"
	"io"
	"path"
	"strings"
	"time"

	"caisson/sandbox"
)

var errTreeFull = errors.New("the archive is larger than one call carries")

// tree makes, of the tar that the session printed, one that its reader can lay
// out anywhere without looking: plain files, directories and links that stay
// inside, no owners, no set-id bits. The rest is left out and counted. Sparse
// files count with their full size.
func tree(got framed) (sandbox.FileContent, error) {
	if int64(len(got.content)) > treeMost {
		return sandbox.FileContent{}, errTreeLimit()
	}
	skipped, err := tarTrouble(got)
	if err != nil {
		return sandbox.FileContent{}, err
	}
	var out bytes.Buffer
	w := treeWriter{tw: tar.NewWriter(&limited{w: &out, room: sandbox.FilePieceLimit}), files: map[string]bool{}}
	err = w.copy(tar.NewReader(bytes.NewReader(got.content)))
	return w.content(&out, skipped, err)
}

// content is what was written, unless writing it failed with err.
func (w *treeWriter) content(out *bytes.Buffer, skipped int, err error) (sandbox.FileContent, error) {
	switch {
	case errors.Is(err, errTreeFull):
		return sandbox.FileContent{}, errTreeLimit()
	case err != nil:
		return sandbox.FileContent{}, errCut(opRead).Because(err)
	}
	return sandbox.FileContent{
		Dir: true, Content: out.Bytes(), Size: int64(out.Len()), EOF: true, Skipped: skipped + w.skipped,
		Mode: 0o755, SHA256: sumOf(out.Bytes()),
	}, nil
}

func errTreeLimit() *sandbox.Error {
	return sandbox.Errorf(opRead, sandbox.KindTooLarge, "the directory is more than the %d bytes that one call carries: read parts of it", sandbox.FilePieceLimit).Because(errTreeFull)
}

// tarTrouble reads tar's words: sockets that it left out are counted, files that
// changed are as they were found, anything else is a failure.
func tarTrouble(got framed) (sockets int, err error) {
	benign := true
	for line := range strings.SplitSeq(strings.TrimSpace(got.stderr), "\n") {
		switch {
		case strings.HasSuffix(line, "socket ignored"), strings.HasSuffix(line, "unknown file type"):
			sockets++
		case line == "", strings.HasSuffix(line, "file changed as we read it"), strings.HasSuffix(line, "File removed before we read it"),
			strings.HasSuffix(line, "Exiting with failure status due to previous errors"), strings.HasSuffix(line, "error exit delayed from previous errors"):
		default:
			benign = false
		}
	}
	if got.status == 0 || benign {
		return sockets, nil
	}
	cause := &reportError{word: "tar", stderr: got.stderr, code: got.status}
	if err := errnoFailure(opRead, got.stderr); err != nil {
		err.Text = "part of the directory: " + err.Text
		return 0, err.Because(cause)
	}
	return 0, sandbox.Errorf(opRead, sandbox.KindInternal, "the session's tar failed").Because(cause)
}

type treeWriter struct {
	tw      *tar.Writer
	files   map[string]bool // for hard links
	skipped int
	below   bool // names begin with the directory's own, which is left out
}

// strip makes a name of the engine's tar relative to the directory.
func (w *treeWriter) strip(name string) string {
	if w.below {
		_, name, _ = strings.Cut(name, "/")
	}
	return path.Clean(name)
}

func (w *treeWriter) copy(r *tar.Reader) error {
	for {
		hdr, err := r.Next()
		if errors.Is(err, io.EOF) {
			return w.tw.Close()
		}
		if err != nil {
			return err
		}
		if err := w.entry(hdr, r); err != nil {
			return err
		}
	}
}

func (w *treeWriter) entry(hdr *tar.Header, r io.Reader) error {
	name := w.strip(hdr.Name)
	if name == "." {
		return nil
	}
	out := &tar.Header{Typeflag: hdr.Typeflag, Name: name, Mode: hdr.Mode & 0o777, ModTime: saneTime(hdr.ModTime)}
	fits := !path.IsAbs(name) && name != ".." && !strings.HasPrefix(name, "../")
	switch hdr.Typeflag {
	case tar.TypeReg, tar.TypeGNUSparse:
		out.Typeflag, out.Size = tar.TypeReg, hdr.Size
		if hdr.Size > sandbox.FilePieceLimit {
			return errTreeFull
		}
		w.files[name] = true
	case tar.TypeDir:
		out.Name += "/"
	case tar.TypeSymlink:
		out.Linkname = hdr.Linkname
		fits = fits && staysInside(name, hdr.Linkname)
	case tar.TypeLink:
		out.Linkname = w.strip(hdr.Linkname)
		fits = fits && w.files[out.Linkname]
	default:
		fits = false
	}
	if !fits {
		w.skipped++
		return nil
	}
	if err := w.tw.WriteHeader(out); err != nil {
		return err
	}
	if out.Typeflag != tar.TypeReg {
		return nil
	}
	_, err := io.Copy(w.tw, r)
	return err
}

// staysInside says whether the link at name leads nowhere above the root of its
// archive. Names after which ".." comes may be links themselves, which makes
// the path's text worthless: ".." is taken in front only.
func staysInside(name, target string) bool {
	if target == "" || path.IsAbs(target) {
		return false
	}
	up, plain := 0, false
	for part := range strings.SplitSeq(target, "/") {
		switch part {
		case "", ".":
		case "..":
			if plain {
				return false
			}
			up++
		default:
			plain = true
		}
	}
	return up <= strings.Count(name, "/")
}

// saneTime keeps times that every tar can carry.
func saneTime(t time.Time) time.Time {
	if t.Unix() < 0 || t.Unix() > 1<<33-1 {
		return time.Unix(0, 0)
	}
	return t.Truncate(time.Second)
}

// limited fails once more than room bytes have been written.
type limited struct {
	w    io.Writer
	room int64
}

func (l *limited) Write(p []byte) (int, error) {
	if l.room -= int64(len(p)); l.room < 0 {
		return 0, errTreeFull
	}
	return l.w.Write(p)
}
