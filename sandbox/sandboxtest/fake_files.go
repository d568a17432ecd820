package sandboxtest

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"io/fs"
	"path"
	"slices"
	"strings"
	"sync"
	"time"

	"caisson/sandbox"
)

// workspacePath is where relative paths of a fake session start.
const workspacePath = "/workspace"

// fakeFiles is a file tree: regular files by absolute path. A directory is
// there when something is below it.
type fakeFiles struct {
	mu      sync.Mutex
	files   map[string]fakeFile
	changed chan struct{} // closed at the next write
}

type fakeFile struct {
	content  []byte
	mode     fs.FileMode
	modified time.Time
}

func newFakeFiles() *fakeFiles {
	return &fakeFiles{files: map[string]fakeFile{}, changed: make(chan struct{})}
}

// resolve makes a path absolute. A relative one may not leave the workspace.
func resolve(name string) (string, error) {
	if path.IsAbs(name) {
		return path.Clean(name), nil
	}
	full := path.Join(workspacePath, name)
	if full != workspacePath && !strings.HasPrefix(full, workspacePath+"/") {
		return "", sandbox.Errorf("resolve path", sandbox.KindPathEscapes, "the path %q leaves the workspace", name)
	}
	return full, nil
}

// isDir says whether something is below the path; f.mu is held.
func (f *fakeFiles) isDir(full string) bool {
	if full == workspacePath || full == "/" {
		return true
	}
	for other := range f.files {
		if strings.HasPrefix(other, full+"/") {
			return true
		}
	}
	return false
}

func (f *fakeFiles) write(writes []sandbox.FileWrite) ([]sandbox.FileWritten, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	changes := map[string]fakeFile{}
	written := make([]sandbox.FileWritten, len(writes))
	for i, w := range writes {
		full, file, err := f.change(w)
		if err != nil {
			return nil, err // nothing is written yet
		}
		changes[full] = file
		sum := sha256.Sum256(w.Content)
		written[i] = sandbox.FileWritten{Path: full, Bytes: int64(len(w.Content)), Size: int64(len(file.content)), SHA256: hex.EncodeToString(sum[:])}
	}
	for full, file := range changes {
		f.files[full] = file
	}
	close(f.changed)
	f.changed = make(chan struct{})
	return written, nil
}

// change works out what a write makes of its file; f.mu is held.
func (f *fakeFiles) change(w sandbox.FileWrite) (string, fakeFile, error) {
	full, err := resolve(w.Path)
	if err != nil {
		return "", fakeFile{}, err
	}
	old, exists := f.files[full]
	switch {
	case f.isDir(full):
		return "", fakeFile{}, sandbox.Errorf("write file", sandbox.KindIsDirectory, "%q is a directory", w.Path)
	case exists && old.mode&0o200 == 0:
		return "", fakeFile{}, sandbox.Errorf("write file", sandbox.KindPermission, "%q is read-only", w.Path)
	case w.ExpectedSize != nil && *w.ExpectedSize != int64(len(old.content)):
		return "", fakeFile{}, sandbox.Invalid("expected_size", "the file has %d bytes, not %d", len(old.content), *w.ExpectedSize)
	}
	file := fakeFile{content: bytes.Clone(w.Content), mode: 0o644, modified: time.Now()}
	if exists {
		file.mode = old.mode
	}
	if w.Append {
		file.content = append(bytes.Clone(old.content), w.Content...)
	}
	if w.Mode != nil {
		file.mode = w.Mode.Perm()
	}
	return full, file, nil
}

func (f *fakeFiles) read(r sandbox.FileRead) (sandbox.FileContent, error) {
	full, err := resolve(r.Path)
	if err != nil {
		return sandbox.FileContent{}, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	file, ok := f.files[full]
	if !ok {
		if f.isDir(full) {
			return f.readTree(full)
		}
		return sandbox.FileContent{}, sandbox.Errorf("read file", sandbox.KindFileNotFound, "no file %q", r.Path)
	}
	size := int64(len(file.content))
	from, to := r.Offset, size
	if r.StartLine > 0 {
		from, to = lines(file.content, r.StartLine, r.LineCount)
	}
	if from < 0 {
		from = max(0, size+from)
	}
	from = min(from, size)
	to = min(to, from+r.Limit)
	got := sandbox.FileContent{Path: full, Size: size, Offset: from, Content: bytes.Clone(file.content[from:to]), EOF: to == size, Mode: file.mode}
	if got.EOF {
		sum := sha256.Sum256(file.content)
		got.SHA256 = hex.EncodeToString(sum[:])
	}
	return got, nil
}

// lines is where count lines from start on begin and end.
func lines(content []byte, start, count int64) (from, to int64) {
	at := int64(0)
	for n := int64(1); ; n++ {
		if n == start {
			from = at
		}
		if n >= start && count > 0 && n == start+count {
			return from, at
		}
		i := bytes.IndexByte(content[at:], '\n')
		if i < 0 {
			if n < start {
				from = int64(len(content))
			}
			return from, int64(len(content))
		}
		at += int64(i) + 1
	}
}

func (f *fakeFiles) readTree(full string) (sandbox.FileContent, error) {
	var buf bytes.Buffer
	w := tar.NewWriter(&buf)
	for _, name := range f.below(full) {
		file := f.files[name]
		err := w.WriteHeader(&tar.Header{Name: strings.TrimPrefix(name, full+"/"), Size: int64(len(file.content)), Mode: int64(file.mode), ModTime: file.modified})
		if err == nil {
			_, err = w.Write(file.content)
		}
		if err != nil {
			return sandbox.FileContent{}, sandbox.Errorf("read directory", sandbox.KindInternal, "").Because(err)
		}
	}
	if err := w.Close(); err != nil {
		return sandbox.FileContent{}, sandbox.Errorf("read directory", sandbox.KindInternal, "").Because(err)
	}
	return sandbox.FileContent{Path: full, Size: int64(buf.Len()), Content: buf.Bytes(), EOF: true, Mode: 0o755, Dir: true}, nil
}

// below lists the files under a directory, sorted; f.mu is held.
func (f *fakeFiles) below(full string) []string {
	var names []string
	for name := range f.files {
		if strings.HasPrefix(name, strings.TrimSuffix(full, "/")+"/") {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

func (f *fakeFiles) list(dir string, recursive bool, limit int) ([]sandbox.DirEntry, bool, error) {
	full, err := resolve(dir)
	if err != nil {
		return nil, false, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if _, isFile := f.files[full]; isFile {
		return nil, false, sandbox.Errorf("list directory", sandbox.KindNotDirectory, "%q is a file", dir)
	}
	if !f.isDir(full) {
		return nil, false, sandbox.Errorf("list directory", sandbox.KindFileNotFound, "no directory %q", dir)
	}
	seen := map[string]sandbox.DirEntry{}
	for _, name := range f.below(full) {
		rest := strings.TrimPrefix(name, strings.TrimSuffix(full, "/")+"/")
		for i := range rest {
			if rest[i] == '/' && (recursive || strings.Count(rest[:i], "/") == 0) {
				seen[rest[:i]] = sandbox.DirEntry{Path: rest[:i], Type: "directory", Mode: 0o755, ModifiedAt: f.files[name].modified}
			}
		}
		if recursive || !strings.Contains(rest, "/") {
			file := f.files[name]
			seen[rest] = sandbox.DirEntry{Path: rest, Type: "file", Size: int64(len(file.content)), Mode: file.mode, ModifiedAt: file.modified}
		}
	}
	var entries []sandbox.DirEntry
	for _, e := range seen {
		entries = append(entries, e)
	}
	slices.SortFunc(entries, func(a, b sandbox.DirEntry) int { return strings.Compare(a.Path, b.Path) })
	more := len(entries) > limit
	return entries[:min(len(entries), limit)], more, nil
}

// await waits until a file is there.
func (f *fakeFiles) await(full string, gone <-chan struct{}) bool {
	for {
		f.mu.Lock()
		_, there := f.files[full]
		changed := f.changed
		f.mu.Unlock()
		if there {
			return true
		}
		select {
		case <-changed:
		case <-gone:
			return false
		}
	}
}
