package mcp

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"caisson/sandbox"
)

// readOutputs reads the files that run returns, up to one piece's size in all.
// One that is missing or too large does not fail the command that was to make
// it: a note says so.
func readOutputs(ctx context.Context, session sandbox.Session, paths []string) ([]outputFile, []sandbox.Note) {
	all := []outputFile{}
	var missing []string
	left := int64(sandbox.FilePieceLimit)
	for _, path := range paths {
		file, err := session.ReadFile(ctx, sandbox.FileRead{Path: path, Limit: left})
		switch {
		case err != nil:
			missing = append(missing, show(path)+": "+outputFault(path, err))
		case !file.EOF && !file.Dir, int64(len(file.Content)) > left:
			missing = append(missing, fmt.Sprintf("%s: too large (%d bytes), outputs are at most %d MiB together", show(path), file.Size, sandbox.FilePieceLimit>>20))
		default:
			left -= int64(len(file.Content))
			all = append(all, outputOfFile(path, file))
		}
	}
	if missing == nil {
		return all, nil
	}
	return all, []sandbox.Note{{Code: "outputs_missing", Text: "outputs that are not returned: " + strings.Join(missing, "; ")}}
}

// outputFault says why a file was not returned. What is wrong with a path is
// told in the words of whoever found it.
func outputFault(path string, err error) string {
	var e *sandbox.Error
	if errors.As(err, &e) && e.Kind == sandbox.KindInvalid && e.Text != "" {
		return strings.TrimPrefix(e.Text, fmt.Sprintf("%q: ", path))
	}
	return codes[sandbox.KindOf(err)].text
}

func outputOfFile(path string, file sandbox.FileContent) outputFile {
	if !file.Dir && utf8.Valid(file.Content) {
		return outputFile{path, string(file.Content), encodingText}
	}
	return outputFile{path, base64.StdEncoding.EncodeToString(file.Content), encodingBase64}
}

// outputsText shows the files in words, up to the most that a result's text may
// have of output; the structured result has all of each.
func outputsText(outputs []outputFile) string {
	if len(outputs) == 0 {
		return ""
	}
	var b strings.Builder
	fence := "=== " + newMark()
	left := int64(maxOutputChars)
	for _, o := range outputs {
		if o.Encoding == encodingBase64 {
			fmt.Fprintf(&b, "%s file %s, not text: in the structured result as base64\n", fence, show(o.Path))
			continue
		}
		fmt.Fprintf(&b, "%s file %s, %d bytes\n", fence, show(o.Path), len(o.Content))
		size, _ := runesFront([]byte(o.Content), left)
		shown := o.Content[:size]
		b.WriteString(shown)
		if !strings.HasSuffix(shown, "\n") {
			b.WriteByte('\n')
		}
		if more := utf8.RuneCountInString(o.Content[size:]); more > 0 {
			fmt.Fprintf(&b, "%s %d more characters are in the structured result\n", fence, more)
		}
		left -= int64(utf8.RuneCountInString(shown))
	}
	b.WriteString(fence + " end of files\n")
	return b.String()
}
