package docker

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"io"
	"path"
	"strings"
	"time"

	"caisson/sandbox"
)

// Bounds of the file tools, for callers whose context has none.
const (
	transferLimit = 5 * time.Minute  // a piece of a file, or a listing
	archiveLimit  = 15 * time.Minute // a whole archive
	pathLimit     = 4096             // bytes, as the kernel has it
	nameLimit     = 255
)

// piper runs a bare command in a session; see Session.pipe for what holds.
type piper interface {
	pipe(ctx context.Context, argv []string, stdin io.Reader, stdout, stderr io.Writer) (exitCode int, err error)
}

// fileTools moves files in and out of one running session by small scripts that
// run as the session's user (D19). So nothing that runs in the session can lead
// it to what that user may not touch, links are followed where the user would
// follow them, and what is mounted there is seen.
//
// Its methods may be called concurrently. A process of the session's user can
// disturb a transfer, since it could as well change the files themselves; a
// relative path is kept inside the workspace all the same, by checks on what
// was opened.
type fileTools struct {
	run  piper
	root string // of relative paths
}

// place is a path as the scripts take it.
type place struct {
	anchor string // "workspace" or "absolute": where rel begins
	rel    string // without a slash in front; empty: the anchor itself
	abs    string // for reports
}

// place checks a path. A relative one is made plain by its text alone, so that
// ".." never depends on what a link is; an absolute one is left as it is.
func (t fileTools) place(p string) (place, error) {
	switch {
	case p == "":
		return place{}, sandbox.Invalid("path", "path is empty")
	case strings.ContainsRune(p, 0):
		return place{}, sandbox.Invalid("path", "path contains a NUL byte")
	case len(p) > pathLimit:
		return place{}, sandbox.Invalid("path", "path is %d bytes long, and %d are the most", len(p), pathLimit)
	}
	if path.IsAbs(p) {
		abs := p
		if !hasDotDot(p) {
			abs = path.Clean(p)
		}
		return place{"absolute", strings.TrimLeft(p, "/"), abs}, nil
	}
	rel := path.Clean(p)
	if rel == ".." || strings.HasPrefix(rel, "../") {
		return place{}, sandbox.Errorf("check path", sandbox.KindPathEscapes, "%q leaves the workspace", p)
	}
	if rel == "." {
		rel = ""
	}
	return place{"workspace", rel, path.Join(t.root, rel)}, nil
}

// target is place for a file that is to be written.
func (t fileTools) target(p string) (place, error) {
	at, err := t.place(p)
	if err == nil && (at.rel == "" || strings.HasSuffix(p, "/")) {
		err = sandbox.Errorf("check path", sandbox.KindIsDirectory, "%q names a directory, not a file", p)
	}
	return at, err
}

func hasDotDot(p string) bool {
	for part := range strings.SplitSeq(p, "/") {
		if part == ".." {
			return true
		}
	}
	return false
}

// transferID names the temporary files and the trailer of one transfer. What
// runs in the session cannot know it before the transfer starts.
func transferID() string {
	var id [12]byte
	_, _ = rand.Read(id[:]) // never fails
	return hex.EncodeToString(id[:])
}
