package mcp

import (
	"bytes"
	"regexp"
	"unicode/utf8"
)

// maxLine is the longest line that grep looks at as a whole; a longer one is
// taken in parts of this size.
const maxLine = 64 << 10

// grep narrows the source to the lines that match. It reads onwards: what does
// not fit is left for the next read, so next is where the reading stopped. A
// last line without its end waits for the rest while the command runs.
func (s *source) grep(pattern *regexp.Regexp, limit int64) {
	arrived := s.to
	s.pieces, s.to, s.binary = nil, s.from, false
	for chars := int64(0); s.to < arrived && chars <= limit; {
		line, ok := s.line(s.to, arrived)
		if !ok {
			arrived = s.to
			break
		}
		if pattern.Match(bytes.TrimRight(line.data, "\r\n")) {
			s.pieces = append(s.pieces, line)
			s.binary = s.binary || !utf8.Valid(line.data)
			chars += int64(utf8.RuneCount(line.data))
		}
		s.to = line.end()
	}
	s.arrived = arrived
}

// line reads the line that begins at or, where bytes were dropped, after at.
// ok is false when there is none, or not yet all of it.
func (s *source) line(at, arrived int64) (piece, bool) {
	pieces := readPieces(s.spool, s.stream, at, min(arrived, at+maxLine))
	if kept := within(s.spool.Kept(s.stream), at, arrived); len(pieces) == 0 && len(kept) > 0 {
		pieces = readPieces(s.spool, s.stream, kept[0].Start, min(kept[0].End, kept[0].Start+maxLine))
	}
	if len(pieces) == 0 {
		return piece{}, false
	}
	p := pieces[0]
	if i := bytes.IndexByte(p.data, '\n'); i >= 0 {
		return piece{p.offset, p.data[:i+1]}, true
	}
	return p, s.ended || len(p.data) >= maxLine || p.end() < arrived
}

// takeMatches makes the excerpt of a source that grep has narrowed. Lines that
// did not match are no omissions: only what was not looked at is.
func (s *source) takeMatches(share int64) *excerpt {
	x := &excerpt{stream: s.stream, binary: s.binary, total: s.spool.Total(s.stream), next: s.to, pieces: s.pieces}
	if s.chars() > share {
		if s.binary {
			share = share / 4 * 3
		}
		x.pieces = front(s.pieces, share, s.binary)
		x.next = s.from
		if n := len(x.pieces); n > 0 {
			x.next = x.pieces[n-1].end()
		}
	}
	rest := source{spool: s.spool, stream: s.stream, from: x.next, to: s.arrived}
	x.omitted = rest.missing(nil)
	return x
}
