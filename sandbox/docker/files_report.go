package docker

import (
	"errors"
	"fmt"
	"strings"

	"caisson/sandbox"
)

// fileKinds maps what a file script reports to the contract's kinds.
var fileKinds = map[string]struct {
	kind sandbox.Kind
	text string
}{
	"denied":    {sandbox.KindPermission, "the session's user may not"},
	"directory": {sandbox.KindIsDirectory, "a directory is there"},
	"parent":    {sandbox.KindNotDirectory, "part of the path is not a directory"},
	"irregular": {sandbox.KindInvalid, "not a regular file"},
	"escapes":   {sandbox.KindPathEscapes, "leads out of the workspace through a link"},
	"link":      {sandbox.KindPathEscapes, "a link is where a directory has to be"},
	"cut":       {sandbox.KindUnavailable, "the content did not arrive whole"},
	"corrupt":   {sandbox.KindUnavailable, "what was written is not what was sent"},
	"size":      {sandbox.KindInvalid, "the file has another size"},
	"changed":   {sandbox.KindBusy, "the path changed while it was worked on"},
	"large":     {sandbox.KindTooLarge, "too large to count its lines; read it by offset and limit"},
	"partial":   {sandbox.KindUnknownOutcome, "the disk ran full while appending, and part of it could not be taken back"},
	"missing":   {sandbox.KindImageUnusable, "the session's image lacks a command that this needs"},
}

// errnoKinds maps the C library's words at the end of a line of stderr. The
// scripts set LC_ALL=C; dash and busybox have words of their own for some.
var errnoKinds = []struct {
	words string
	kind  sandbox.Kind
	text  string
}{
	{"No space left on device", sandbox.KindNoSpace, "no space left on the session's disk"},
	{"Disk quota exceeded", sandbox.KindNoSpace, "the session's disk quota is used up"},
	{"File size limit exceeded", sandbox.KindNoSpace, "larger than the session's disk limit"}, // the shell's word for SIGXFSZ
	{"File too large", sandbox.KindTooLarge, "larger than the file system takes"},
	{"Permission denied", sandbox.KindPermission, "the session's user may not"},
	{"Operation not permitted", sandbox.KindPermission, "the session's user may not"},
	{"Read-only file system", sandbox.KindPermission, "the file system is read-only"},
	{"No such file or directory", sandbox.KindFileNotFound, "no such file or directory"},
	{"No such file", sandbox.KindFileNotFound, "no such file"},
	{"Directory nonexistent", sandbox.KindFileNotFound, "no such directory"},
	{"nonexistent directory", sandbox.KindFileNotFound, "no such directory"},
	{"No such device or address", sandbox.KindFileNotFound, "nothing is behind that path"},
	{"Not a directory", sandbox.KindNotDirectory, "part of the path is not a directory"},
	{"Is a directory", sandbox.KindIsDirectory, "a directory is there"},
	{"File name too long", sandbox.KindInvalid, "the name is too long"},
	{"Too many levels of symbolic links", sandbox.KindInvalid, "the path is a loop of links"},
	{"Text file busy", sandbox.KindBusy, "the file is being run"},
	{"Device or resource busy", sandbox.KindBusy, "the file is in use"},
	{"File exists", sandbox.KindBusy, "something has taken the name meanwhile"},
	{"Cannot fork", sandbox.KindCapacity, "the session has no room for another process"},
	{"Resource temporarily unavailable", sandbox.KindCapacity, "the session has no room for another process"},
	{"Cannot allocate memory", sandbox.KindCapacity, "the session is out of memory"},
	{"Input/output error", sandbox.KindUnavailable, "the disk or the kernel gave an input/output error"},
}

// reportError is what a script said of a failure, kept as the cause: the file's
// number (from 1; 0: none of them) lets the caller name it.
type reportError struct {
	word, detail string
	file         int
	stderr       string
	code         int
}

func (e *reportError) Error() string {
	return fmt.Sprintf("file script: %s %s (file %d, exit %d): %q", e.word, e.detail, e.file, e.code, e.stderr)
}

// scriptFailure makes the error of a script that did not report success.
func scriptFailure(op, report, stderr string, code int) *sandbox.Error {
	cause := &reportError{stderr: stderr, code: code}
	if strings.HasPrefix(report, "E ") {
		if _, err := fmt.Sscanf(report, "E %s %d", &cause.word, &cause.file); err == nil {
			parts := strings.SplitN(strings.TrimSuffix(report, "\n"), " ", 4)
			cause.detail = parts[len(parts)-1]
		}
	}
	if row, ok := fileKinds[cause.word]; ok {
		text := row.text
		switch cause.word {
		case "missing":
			text += ": " + cause.detail
		case "size":
			text = "the file is " + cause.detail + " bytes long"
		}
		err := sandbox.Errorf(op, row.kind, "%s", text).Because(cause)
		switch {
		case cause.word == "size":
			err.Field = "expected_size"
		case row.kind == sandbox.KindInvalid:
			err.Field = "path"
		}
		return err
	}
	if err := errnoFailure(op, stderr); err != nil {
		return err.Because(cause)
	}
	switch {
	case cause.word == "" && stderr != "" && (code == 126 || code == 127):
		// Without a word the code is the engine's own, for a start whose connection broke.
		return sandbox.Errorf(op, sandbox.KindImageUnusable, "the session's image has no usable /bin/sh").Because(cause)
	case cause.word == "" && code == 137:
		return sandbox.Errorf(op, sandbox.KindUnavailable, "the transfer was killed in the session").Because(cause)
	case cause.word == "":
		return errCut(op).Because(cause)
	}
	return sandbox.Errorf(op, sandbox.KindInternal, "the session's shell failed in a way that is not understood").Because(cause)
}

// errnoFailure looks for the first line of stderr whose end is known.
func errnoFailure(op, stderr string) *sandbox.Error {
	for line := range strings.SplitSeq(stderr, "\n") {
		for _, row := range errnoKinds {
			if !strings.HasSuffix(strings.TrimSpace(line), row.words) {
				continue
			}
			err := sandbox.Errorf(op, row.kind, "%s", row.text)
			if row.kind == sandbox.KindInvalid {
				err.Field = "path"
			}
			return err
		}
	}
	return nil
}

// lacks says whether err is a script's word that the image has no such command.
func lacks(err error, command string) bool {
	var report *reportError
	return errors.As(err, &report) && report.word == "missing" && report.detail == command
}

// lacksAny says whether err is a script's word that the image lacks a command.
func lacksAny(err error) bool {
	var report *reportError
	return errors.As(err, &report) && report.word == "missing"
}

// about puts the path in front of the text of a script's failure.
func about(err error, path string) error {
	var own *sandbox.Error
	var report *reportError
	if errors.As(err, &own) && errors.As(err, &report) {
		own.Text = fmt.Sprintf("%q: %s", path, own.Text)
	}
	return err
}
