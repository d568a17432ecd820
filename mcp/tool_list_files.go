package mcp

import (
	"context"
	"fmt"
	"strings"
	"time"

	"caisson/sandbox"
)

// The limits of list_files, in entries.
const (
	defaultEntries = 1_000
	maxEntries     = 10_000
)

type listFilesInput struct {
	session   *string
	path      *string
	recursive bool
	limit     *int64
}

type listFilesResult struct {
	madeSession
	Entries   []fileEntry `json:"entries" about:"By path."`
	Truncated bool        `json:"truncated" about:"There are more than limit."`
}

type fileEntry struct {
	Path       string    `json:"path" about:"Relative to the directory that is listed; bytes that are not UTF-8 as \\xNN."`
	Type       string    `json:"type" enum:"file,directory,link,fifo,socket,device" about:"What it is."`
	Size       int64     `json:"size" about:"In bytes."`
	Mode       string    `json:"mode" about:"Permissions in octal."`
	ModifiedAt time.Time `json:"modified_at" about:"When its content last changed."`
	LinkTarget string    `json:"link_target,omitempty" about:"Where a link leads."`
}

func (in *listFilesInput) fields() []field {
	return []field{
		sessionField(&in.session),
		nameField("path", &in.path, "The directory, relative to the workspace or absolute. Default: the workspace."),
		boolField("recursive", &in.recursive, "List what is below it too.").orElse(false),
		intField("limit", &in.limit, "How many entries to return at most.").within(1, maxEntries).orElse(defaultEntries),
	}
}

func (s *Server) listFilesTool() tool {
	return define[listFilesInput, listFilesResult](about{
		name: "list_files", title: "List files",
		description: "Lists a directory of a sandbox, hidden files included, with type, size, permissions and time. Links are listed, not followed.",
		readOnly:    true, idempotent: true,
	}, (*listFilesInput).fields, s.listFiles)
}

func (s *Server) listFiles(ctx context.Context, c *call, in *listFilesInput) (*reply, error) {
	t, err := s.target(ctx, c, in.session)
	if err != nil {
		return nil, err
	}
	var (
		entries []sandbox.DirEntry
		more    bool
	)
	err = s.inSession(c, t, func(session sandbox.Session) error {
		entries, more, err = session.ReadDir(ctx, or(in.path, "."), in.recursive, int(or(in.limit, defaultEntries)))
		return err
	})
	if err != nil {
		return nil, err
	}
	result := listFilesResult{madeSession: t.made(), Entries: make([]fileEntry, len(entries)), Truncated: more}
	for i, e := range entries {
		result.Entries[i] = fileEntry{
			visible(e.Path), e.Type, e.Size, octal(e.Mode), e.ModifiedAt.UTC().Truncate(time.Second), visible(e.LinkTarget),
		}
	}
	return &reply{structured: result, text: result.text()}, nil
}

// text is the listing as a table, a line an entry: a name with a line end in it
// is quoted.
func (r *listFilesResult) text() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s%d entries", r.line(), len(r.Entries))
	if r.Truncated {
		b.WriteString(", and there are more: raise limit, or list a directory below")
	}
	for _, e := range r.Entries {
		fmt.Fprintf(&b, "\n%-9s %s %10d %s %s", e.Type, e.Mode, e.Size, e.ModifiedAt.Format(time.RFC3339), oneLine(e.Path))
		if e.LinkTarget != "" {
			b.WriteString(" -> " + oneLine(e.LinkTarget))
		}
	}
	return b.String()
}

func oneLine(name string) string {
	return strings.NewReplacer("\n", `\n`, "\t", `\t`).Replace(name)
}
