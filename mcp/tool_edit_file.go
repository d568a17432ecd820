package mcp

import (
	"bytes"
	"context"

	"caisson/sandbox"
)

type editFileInput struct {
	session    *string
	path       *string
	oldString  *string
	newString  *string
	replaceAll bool
}

type editFileResult struct {
	madeSession
	Path         string `json:"path" about:"Absolute."`
	Replacements int    `json:"replacements" about:"How many places were changed."`
	Size         int64  `json:"size" about:"Of the file now."`
	SHA256       string `json:"sha256" about:"Of the file now."`
}

func (in *editFileInput) fields() []field {
	return []field{
		sessionField(&in.session),
		nameField("path", &in.path, "The file, relative to the workspace or absolute.").must(),
		textField("old_string", &in.oldString, "The text to replace, exactly as it stands in the file, line ends and indentation included.").must(),
		textField("new_string", &in.newString, "What to put in its place.").must(),
		boolField("replace_all", &in.replaceAll, "Replace every occurrence. Without it, old_string must occur exactly once.").orElse(false),
	}
}

func (s *Server) editFileTool() tool {
	return define[editFileInput, editFileResult](about{
		name: "edit_file", title: "Edit a file",
		description: "Replaces a text in a file of a sandbox. old_string must match exactly once: give enough of the lines around it, or replace_all. " +
			"Permissions stay as they are. Nothing is written when it does not match. For a new file or a whole one use upload.",
		destructive: true,
	}, (*editFileInput).fields, s.editFile)
}

func (s *Server) editFile(ctx context.Context, c *call, in *editFileInput) (*reply, error) {
	switch {
	case *in.oldString == "":
		return nil, sandbox.Invalid("old_string", "old_string is empty: give the text to replace; upload writes whole files")
	case *in.oldString == *in.newString:
		return nil, sandbox.Invalid("new_string", "new_string is the same as old_string")
	}
	t, err := s.target(ctx, c, in.session)
	if err != nil {
		return nil, err
	}
	var (
		written []sandbox.FileWritten
		count   int
	)
	err = s.inSession(c, t, func(session sandbox.Session) error {
		file, err := session.ReadFile(ctx, sandbox.FileRead{Path: *in.path, Limit: sandbox.FilePieceLimit})
		if err != nil {
			return err
		}
		var edited []byte
		if edited, count, err = in.apply(file); err != nil {
			return err
		}
		written, err = session.WriteFiles(ctx, []sandbox.FileWrite{{Path: *in.path, Content: edited}})
		return err
	})
	if err != nil {
		return nil, err
	}
	result := editFileResult{t.made(), visible(written[0].Path), count, written[0].Size, written[0].SHA256}
	return jsonReply(result, "%d replacements", count)
}

// apply makes the file's new content.
func (in *editFileInput) apply(file sandbox.FileContent) (edited []byte, count int, err error) {
	switch {
	case file.Dir:
		return nil, 0, sandbox.Errorf("edit file", sandbox.KindIsDirectory, "%s is a directory", show(*in.path))
	case !file.EOF:
		return nil, 0, sandbox.Errorf("edit file", sandbox.KindTooLarge, "the file has %d bytes; edit_file takes up to %d MiB", file.Size, sandbox.FilePieceLimit>>20)
	}
	before, after := []byte(*in.oldString), []byte(*in.newString)
	count = bytes.Count(file.Content, before)
	switch {
	case count == 0:
		text := "old_string does not occur in the file"
		if bytes.Contains(bytes.ReplaceAll(file.Content, []byte("\r\n"), []byte("\n")), before) {
			text += " as it is: the file's lines end with \\r\\n"
		}
		return nil, 0, &failure{code: codeStringNotFound, field: "old_string", text: text + "; nothing was changed"}
	case count > 1 && !in.replaceAll:
		return nil, 0, (&failure{code: codeStringNotUnique, field: "old_string"}).says("old_string occurs %d times; give more of the lines around it, or replace_all; nothing was changed", count)
	}
	edited = bytes.ReplaceAll(file.Content, before, after)
	if len(edited) > sandbox.FilePieceLimit {
		return nil, 0, sandbox.Errorf("edit file", sandbox.KindTooLarge, "the file would have %d bytes; edit_file writes up to %d MiB", len(edited), sandbox.FilePieceLimit>>20)
	}
	return edited, count, nil
}
