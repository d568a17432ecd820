package mcp

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"io"
	"io/fs"
	"strconv"

	"caisson/sandbox"
)

// maxExpanded is how large a compressed archive may become. It stops a small
// upload from filling a disk before the session's own limit does.
const maxExpanded = 512 << 20

type fileInput struct {
	path     *string
	content  *string
	encoding *string
	mode     *string
}

type uploadInput struct {
	session *string
	fileInput
	files        []fileInput
	appendTo     bool
	expectedSize *int64
	extract      bool
}

type uploadResult struct {
	madeSession
	Files []writtenFile `json:"files" about:"What was written, verified."`
}

type writtenFile struct {
	Path   string `json:"path" about:"Absolute."`
	Bytes  int64  `json:"bytes" about:"Written by this call."`
	Size   int64  `json:"size" about:"Of the file now."`
	SHA256 string `json:"sha256" about:"Of the content sent."`
}

func (in *fileInput) fields() []field {
	return []field{
		nameField("path", &in.path, "Where to write; a relative path is below the workspace. Missing directories are made.").must(),
		textField("content", &in.content, "The content.").must(),
		encodingField(&in.encoding, "How content is encoded."),
		nameField("mode", &in.mode, "Permissions in octal, such as 0755. Default: kept when overwriting, else 0644."),
	}
}

func (in *uploadInput) fields() []field {
	single := in.fileInput.fields()
	single[0].required, single[1].required = false, false // or files
	return append(append([]field{sessionField(&in.session)}, single...),
		listField("files", &in.files, "Several files, all written or none. Give this or path and content.", (*fileInput).fields),
		boolField("append", &in.appendTo, "Add to the end of the file, for content in several pieces.").orElse(false),
		intField("expected_size", &in.expectedSize, "With append: the file's size before. A piece that was sent twice is then refused.").atLeast(0),
		boolField("extract", &in.extract, "content is a tar or tar.gz (base64), laid out below path.").orElse(false),
	)
}

func sessionField(dst **string) field {
	return nameField("session_id", dst, "The session to work in. Without it, your default session is used, and made on first use.")
}

func (s *Server) uploadTool() tool {
	return define[uploadInput, uploadResult](about{
		name: "upload", title: "Write files",
		description: "Writes files into a sandbox: one by path and content, or several by files; it replaces what is there. A call carries at most 8 MiB: send larger files in pieces with append and expected_size. " +
			"extract lays out an archive. Success means that every file is there, whole, and readable by the session's user; sha256 is of the content sent.",
		destructive: true, idempotent: false,
	}, (*uploadInput).fields, s.upload)
}

func (s *Server) upload(ctx context.Context, c *call, in *uploadInput) (*reply, error) {
	if err := in.check(); err != nil {
		return nil, err
	}
	inputs := in.files
	if inputs == nil {
		inputs = []fileInput{in.fileInput}
	}
	files, err := fileWrites(inputs)
	if err != nil {
		return nil, err
	}
	files[0].Append, files[0].ExpectedSize = in.appendTo, in.expectedSize
	t, err := s.target(ctx, c, in.session)
	if err != nil {
		return nil, err
	}
	var written []sandbox.FileWritten
	err = s.inSession(c, t, func(session sandbox.Session) (err error) {
		if in.extract {
			written, err = s.extract(ctx, session, files[0])
		} else {
			written, err = session.WriteFiles(ctx, files)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	result := uploadResult{madeSession: t.made(), Files: make([]writtenFile, len(written))}
	for i, w := range written {
		result.Files[i] = writtenFile{visible(w.Path), w.Bytes, w.Size, w.SHA256}
	}
	return jsonReply(result, "%d files written", len(written))
}

func (in *uploadInput) check() error {
	one := in.path != nil || in.content != nil
	switch {
	case one && in.files != nil:
		return sandbox.Invalid("files", "give path and content for one file, or files for several, not both")
	case !one && len(in.files) == 0:
		return sandbox.Invalid("path", "give path and content for one file, or files for several")
	case in.files != nil && (in.appendTo || in.extract || in.expectedSize != nil || in.encoding != nil || in.mode != nil):
		return sandbox.Invalid("files", "append, expected_size, extract, encoding and mode beside files go with path and content alone; each of the files has its own encoding and mode")
	case one && in.path == nil:
		return sandbox.Invalid("path", "path is required with content")
	case one && in.content == nil:
		return sandbox.Invalid("content", "content is required with path")
	case in.appendTo && in.extract:
		return sandbox.Invalid("extract", "an archive cannot be appended: give append or extract")
	case in.expectedSize != nil && !in.appendTo:
		return sandbox.Invalid("expected_size", "expected_size goes with append")
	}
	return nil
}

// fileWrites makes the sandbox's form of files that a client sent.
func fileWrites(inputs []fileInput) ([]sandbox.FileWrite, error) {
	files := make([]sandbox.FileWrite, len(inputs))
	total := 0
	for i, in := range inputs {
		content, err := decodeContent("content", *in.content, in.encoding)
		if err != nil {
			return nil, err
		}
		if total += len(content); total > sandbox.FilePieceLimit {
			return nil, sandbox.Errorf("upload", sandbox.KindTooLarge, "one call carries at most %d MiB of content; send the rest in pieces with append", sandbox.FilePieceLimit>>20)
		}
		files[i] = sandbox.FileWrite{Path: *in.path, Content: content}
		if in.mode != nil {
			bits, err := strconv.ParseUint(*in.mode, 8, 32)
			if err != nil || bits > 0o777 {
				return nil, sandbox.Invalid("mode", "mode takes permissions in octal from 0000 to 0777, not %s", show(*in.mode))
			}
			if bits&0o400 == 0 {
				return nil, sandbox.Invalid("mode", "mode must let the owner read, such as 0600, not %s: an upload is verified by reading it", show(*in.mode))
			}
			mode := fs.FileMode(bits)
			files[i].Mode = &mode
		}
	}
	return files, nil
}

// extract lays out an archive. What the engine's side sees is always a plain
// tar: compressed data is expanded here, within a limit.
func (s *Server) extract(ctx context.Context, session sandbox.Session, archive sandbox.FileWrite) ([]sandbox.FileWritten, error) {
	if !bytes.HasPrefix(archive.Content, []byte{0x1f, 0x8b}) {
		if !isTar(bytes.NewReader(archive.Content)) {
			return nil, noArchive()
		}
		return session.WriteArchive(ctx, archive.Path, bytes.NewReader(archive.Content))
	}
	expanded, err := gzip.NewReader(bytes.NewReader(archive.Content))
	if err != nil {
		return nil, sandbox.Invalid("content", "content is not a whole tar.gz")
	}
	if head, err := gzip.NewReader(bytes.NewReader(archive.Content)); err != nil || !isTar(head) {
		return nil, noArchive()
	}
	return session.WriteArchive(ctx, archive.Path, &limitedReader{expanded, s.maxExpanded, s.maxExpanded})
}

func noArchive() error {
	return sandbox.Invalid("content", "content is no tar or tar.gz archive (a zip or another compression is not taken)")
}

// isTar says whether what r reads begins as a tar does: with a header, or with
// the zeroes that end an empty one.
func isTar(r io.Reader) bool {
	head := make([]byte, 512)
	if _, err := io.ReadFull(r, head); err != nil {
		return false
	}
	_, err := tar.NewReader(bytes.NewReader(head)).Next()
	return !errors.Is(err, tar.ErrHeader)
}

// limitedReader fails past its limit, where io.LimitReader would pretend that
// the archive ends.
type limitedReader struct {
	r           io.Reader
	left, limit int64
}

func (l *limitedReader) Read(p []byte) (int, error) {
	if l.left <= 0 {
		return 0, sandbox.Errorf("upload", sandbox.KindTooLarge, "the archive expands to more than %s", mebibytes(l.limit))
	}
	n, err := l.r.Read(p[:min(int64(len(p)), l.left)])
	l.left -= int64(n)
	return n, err
}
