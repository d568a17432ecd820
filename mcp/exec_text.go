package mcp

import (
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"strings"
)

// execText is an exec's result in words: how it stands first, what it printed
// last. Output stands between lines that carry a mark which no command can
// know, so that nothing it prints can pass for ours (T58).
func execText(r *execResult, stdout, stderr *excerpt) string {
	var b strings.Builder
	b.WriteString(statusLine(r) + "\n")
	fmt.Fprintf(&b, "exec_id: %s\nsession_id: %s", r.ExecID, r.SessionID)
	if r.SessionCreated != nil {
		b.WriteString(" (made by this call)")
	}
	b.WriteString("\n")
	for _, n := range r.Notes {
		fmt.Fprintf(&b, "note: %s\n", n.Text)
	}
	if len(stdout.pieces)+len(stderr.pieces)+len(r.Omitted) == 0 {
		fmt.Fprintf(&b, "no output%s (stdout %d bytes, stderr %d bytes in all)\n", sinceText(r), r.StdoutBytes, r.StderrBytes)
		return b.String()
	}
	fence := "=== " + newMark()
	writeExcerpt(&b, fence, stdout)
	writeExcerpt(&b, fence, stderr)
	b.WriteString(fence + " end of output\n")
	return b.String()
}

func sinceText(r *execResult) string {
	if r.StdoutBytes+r.StderrBytes > 0 {
		return " since the last result"
	}
	return ""
}

func newMark() string {
	var raw [4]byte
	_, _ = rand.Read(raw[:]) // crypto/rand never fails: it ends the process instead
	return hex.EncodeToString(raw[:])
}

func statusLine(r *execResult) string {
	took := fmt.Sprintf("%.1f s", float64(r.DurationMS)/1000)
	switch {
	case r.Status == "running" && r.CommandExitCode != nil:
		return fmt.Sprintf("the command exited with code %d, but a process it started still holds its output: running for %s", *r.CommandExitCode, took)
	case r.Status == "running":
		return "running for " + took
	case r.ExitCode != nil:
		return fmt.Sprintf("%s with code %d after %s", r.Status, *r.ExitCode, took)
	case r.Status == "exited" || r.Status == "killed":
		return fmt.Sprintf("%s after %s, exit code not known", r.Status, took)
	default:
		return fmt.Sprintf("%s after %s, no exit code", strings.ReplaceAll(r.Status, "_", " "), took)
	}
}

// writeExcerpt writes one stream, with a line of ours wherever bytes are left
// out. Base64 stands in the structured result alone.
func writeExcerpt(b *strings.Builder, fence string, x *excerpt) {
	if len(x.pieces) == 0 && len(x.omitted) == 0 {
		return
	}
	fmt.Fprintf(b, "%s %s, %d bytes in all", fence, x.stream, x.total)
	if x.binary {
		b.WriteString(", not text: its bytes are in the structured result as base64\n")
		return
	}
	b.WriteString(", as the command printed it\n")
	gaps := x.omitted
	for _, p := range x.pieces {
		for len(gaps) > 0 && gaps[0].Offset < p.offset {
			writeGap(b, fence, gaps[0])
			gaps = gaps[1:]
		}
		b.Write(p.data)
		if n := len(p.data); n > 0 && p.data[n-1] != '\n' {
			b.WriteByte('\n')
		}
	}
	for _, gap := range gaps {
		writeGap(b, fence, gap)
	}
}

func writeGap(b *strings.Builder, fence string, o omission) {
	if o.Recoverable {
		fmt.Fprintf(b, "%s %d bytes left out here; exec_output with %s_offset %d shows them\n", fence, o.Bytes, o.Stream, o.Offset)
	} else {
		fmt.Fprintf(b, "%s %d bytes are missing here: too much output to keep\n", fence, o.Bytes)
	}
}
