package mcp

import (
	"context"
	"encoding/base64"
	"fmt"
	"net/http"
	"strings"
	"unicode/utf8"

	mcpgo "github.com/mark3labs/mcp-go/mcp"

	"caisson/sandbox"
)

// maxImage is the largest image file that is returned as an image.
const maxImage = 700 << 10

type downloadInput struct {
	session   *string
	path      *string
	offset    *int64
	limit     *int64
	startLine *int64
	lineCount *int64
	encoding  *string
}

type downloadResult struct {
	madeSession
	Path     string  `json:"path" about:"Absolute."`
	Size     int64   `json:"size" about:"Of the whole file."`
	Offset   int64   `json:"offset" about:"Where this piece begins."`
	Bytes    int64   `json:"bytes" about:"How many bytes of the file this piece is; the next begins at offset + bytes."`
	Encoding string  `json:"encoding" enum:"utf-8,base64" about:"How content is encoded."`
	Content  *string `json:"content,omitempty" about:"The piece; not there when it is returned as an image."`
	SHA256   string  `json:"sha256,omitempty" about:"Of the whole file, with its last piece."`
	Mode     string  `json:"mode" about:"Permissions in octal."`
	MimeType string  `json:"mime_type" about:"What it seems to be."`
}

func (in *downloadInput) fields() []field {
	return []field{
		sessionField(&in.session),
		nameField("path", &in.path, "The file, relative to the workspace or absolute. A directory is returned as a tar.").must(),
		intField("offset", &in.offset, "Begin at this byte; a negative number counts from the end."),
		intField("limit", &in.limit, "Return up to this many bytes. Default: about 16,000 characters.").within(1, sandbox.FilePieceLimit),
		intField("start_line", &in.startLine, "Begin at this line, counted from 1, and return whole lines.").atLeast(1),
		intField("line_count", &in.lineCount, "With start_line: how many lines.").atLeast(1),
		textField("encoding", &in.encoding, "auto is utf-8 for text and base64 for all else.").oneOf("auto", encodingText, encodingBase64).orElse("auto"),
	}
}

func (s *Server) downloadTool() tool {
	return define[downloadInput, downloadResult](about{
		name: "download", title: "Read a file",
		description: "Reads a file of a sandbox, or a piece of it by bytes or by lines. Without limit it returns what fits a result and says how much is left; go on with offset. " +
			"Images (png, jpeg, gif, webp up to 700 KiB) come as image content. A directory comes as a tar, in one piece.",
		readOnly: true, idempotent: true,
	}, (*downloadInput).fields, s.download)
}

func (s *Server) download(ctx context.Context, c *call, in *downloadInput) (*reply, error) {
	if err := in.check(); err != nil {
		return nil, err
	}
	t, err := s.target(ctx, c, in.session)
	if err != nil {
		return nil, err
	}
	read := sandbox.FileRead{
		Path: *in.path, Offset: or(in.offset, 0), Limit: or(in.limit, maxRune*defaultOutputChars),
		StartLine: or(in.startLine, 0), LineCount: or(in.lineCount, 0),
	}
	fit, err := roomForAnswer(ctx, max(read.Limit, maxImage))
	if err != nil {
		return nil, err
	}
	var file sandbox.FileContent
	err = s.inSession(c, t, func(session sandbox.Session) error {
		if file, err = session.ReadFile(ctx, read); err != nil {
			return err
		}
		if in.wantsImage(file) && !file.EOF {
			file, err = session.ReadFile(ctx, sandbox.FileRead{Path: *in.path, Limit: maxImage})
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	fit(int64(len(file.Content)))
	return in.reply(t, file)
}

func (in *downloadInput) check() error {
	switch {
	case in.startLine == nil && in.lineCount != nil:
		return sandbox.Invalid("line_count", "line_count goes with start_line")
	case in.startLine != nil && in.offset != nil:
		return sandbox.Invalid("offset", "give offset (bytes) or start_line (lines), not both")
	}
	return nil
}

// wantsImage says whether the file is one that is shown as an image: asked for
// whole, and without a say in how it is encoded.
func (in *downloadInput) wantsImage(file sandbox.FileContent) bool {
	whole := in.offset == nil && in.limit == nil && in.startLine == nil && or(in.encoding, "auto") == "auto"
	return whole && !file.Dir && file.Size <= maxImage && isImage(mimeType(file))
}

func isImage(mime string) bool {
	switch mime {
	case "image/png", "image/jpeg", "image/gif", "image/webp":
		return true
	default:
		return false
	}
}

func mimeType(file sandbox.FileContent) string {
	switch {
	case file.Dir:
		return "application/x-tar"
	case file.Offset > 0:
		return "application/octet-stream" // a piece from the middle says nothing of the whole
	default:
		return http.DetectContentType(file.Content)
	}
}

func (in *downloadInput) reply(t target, file sandbox.FileContent) (*reply, error) {
	result := downloadResult{
		madeSession: t.made(), Path: visible(file.Path), Size: file.Size, Offset: file.Offset, SHA256: file.SHA256,
		Mode: octal(file.Mode), MimeType: mimeType(file), Encoding: encodingBase64,
	}
	if in.wantsImage(file) && file.EOF {
		result.Bytes = int64(len(file.Content))
		image := mcpgo.NewImageContent(base64.StdEncoding.EncodeToString(file.Content), result.MimeType)
		return &reply{structured: result, text: result.heading("shown as an image"), extra: []mcpgo.Content{image}}, nil
	}
	content, text, err := in.cut(file)
	if err != nil {
		return nil, err
	}
	shown := base64.StdEncoding.EncodeToString(content)
	if text {
		result.Encoding, shown = encodingText, string(content)
	}
	result.Content, result.Bytes = &shown, int64(len(content))
	if len(content) < len(file.Content) {
		result.SHA256 = "" // not the last piece after all
	}
	return &reply{structured: result, text: result.text(text)}, nil
}

// cut shortens a piece to what the result may hold, at a character's end where
// it is text, and says whether it is.
func (in *downloadInput) cut(file sandbox.FileContent) (content []byte, text bool, err error) {
	content = file.Content
	whole := content
	if !file.EOF {
		whole = content[:len(content)-halfRune(content)]
	}
	text = !file.Dir && utf8.Valid(whole) && or(in.encoding, "auto") != encodingBase64
	switch {
	case or(in.encoding, "auto") == encodingText && !text:
		return nil, false, sandbox.Invalid("encoding", "the file (or this piece of it) is not UTF-8 text; leave encoding out, or ask for base64")
	case text:
		content = whole
	}
	if in.limit != nil || file.Dir {
		return content, text, nil
	}
	if text {
		size, _ := runesFront(content, defaultOutputChars)
		return content[:size], true, nil
	}
	return content[:min(len(content), defaultOutputChars/4*3)], false, nil
}

func (r *downloadResult) heading(what string) string {
	return r.line() + fmt.Sprintf("%s: %s, %d bytes, mode %s, %s", r.Path, r.MimeType, r.Size, r.Mode, what)
}

func (r *downloadResult) text(isText bool) string {
	end := r.Offset + r.Bytes
	what := fmt.Sprintf("bytes %d to %d", r.Offset, end)
	if left := r.Size - end; left > 0 {
		what += fmt.Sprintf("; %d bytes are left, go on with offset %d", left, end)
	}
	if !isText {
		return r.heading(what + "; not text: in the structured result as base64")
	}
	fence := "=== " + newMark()
	text := r.heading(what) + "\n" + fence + " content\n" + *r.Content
	if !strings.HasSuffix(*r.Content, "\n") {
		text += "\n"
	}
	return text + fence + " end of content\n"
}
