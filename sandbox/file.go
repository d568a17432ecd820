package sandbox

import (
	"io/fs"
	"time"
)

// FilePieceLimit is how much of a file one call carries at most, either way.
const FilePieceLimit = 8 << 20

// FileWrite is one file to be written. A relative Path starts at the workspace
// and may not leave it (KindPathEscapes); an absolute one is used as it is.
type FileWrite struct {
	Path         string
	Content      []byte
	Mode         *fs.FileMode // permission bits; nil: kept when overwriting, else 0644
	Append       bool
	ExpectedSize *int64 // with Append: the size before, or the write is refused with KindInvalid on expected_size
}

// FileWritten is what a write did. SHA256 is of the content sent, in hex.
type FileWritten struct {
	Path   string // absolute
	Bytes  int64  // written by this call
	Size   int64  // of the file now
	SHA256 string
}

// FileRead asks for a piece of a file, by bytes or by lines. Limit is in bytes,
// at most FilePieceLimit. With StartLine (from 1) and LineCount the piece is
// whole lines and Offset is not used; it still ends at Limit.
type FileRead struct {
	Path      string
	Offset    int64 // negative: from the end
	Limit     int64
	StartLine int64
	LineCount int64
}

// FileContent is a piece of a file. For a directory, Dir is true and Content
// holds a plain tar of it.
type FileContent struct {
	Path    string // absolute
	Size    int64  // of the whole file
	Offset  int64  // where Content begins
	Content []byte
	EOF     bool   // Content reaches the end
	SHA256  string // of the whole file, with the last piece, where it could be had
	Mode    fs.FileMode
	Dir     bool
	Skipped int // with Dir: special files left out
}

// DirEntry is one name in a listing. Path is relative to the listed directory.
type DirEntry struct {
	Path       string
	Type       string // file, directory, link, fifo, socket, device
	Size       int64
	Mode       fs.FileMode
	ModifiedAt time.Time
	LinkTarget string
}
