package mcp

import (
	"bytes"
	"unicode/utf8"
)

// maxLine is the longest line that grep looks at as a whole; a longer one is
// taken in parts of this size, or of less with a costly pattern.
const maxLine = 64 << 10

// grepChunk is how much grep reads at once. Reading anew for each line would
// copy every byte thousands of times.
const grepChunk = 1 << 20

// lineFilter is what grep looks for, and for how long: over says that the
// caller has no more time, or has gone, and ended is closed then.
type lineFilter struct {
	pattern *pattern
	search  *search
	over    func() bool
	ended   <-chan struct{}
	cut     bool // it was over before all had been looked at
}

// grep narrows the source to the lines that match. It reads onwards: what does
// not fit, or was not reached in time, is left for the next read, so next is
// where the reading stopped. What is no longer kept cannot be looked at, and is
// an omission. At least one line is looked at, so that every read
// gets on, unless others have the turns of searches for all that time. A last line without its end waits for the rest while the command
// runs.
func (s *source) grep(f *lineFilter, limit int64) {
	defer f.search.rest()
	s.arrived = s.to
	s.pieces, s.to, s.binary, s.partial = nil, s.from, false, false
	chars, looked, longest := int64(0), 0, f.pattern.part(maxLine)
	for s.to < s.arrived {
		block, last := s.block()
		if len(block.data) == 0 {
			s.skip(s.arrived) // dropped, or the spool is closed: nothing to look at
			return
		}
		s.skip(block.offset)
		for len(block.data) > 0 {
			if chars > limit {
				return
			}
			if looked > 0 && f.over() || !f.search.on(f.ended, nil) {
				f.cut = true
				return
			}
			n, whole := lineEnd(block.data, longest)
			if !whole && !last {
				break // the next block begins with it
			}
			if !whole && !s.ended && block.end() == s.arrived {
				s.arrived = s.to
				return
			}
			if line := block.data[:n]; f.pattern.Match(bytes.TrimRight(line, "\r\n")) {
				s.pieces = append(s.pieces, piece{s.to, bytes.Clone(line)}) // not the whole block with it
				s.binary = s.binary || !utf8.Valid(line)
				chars += int64(utf8.RuneCount(line))
			}
			looked++
			block = piece{block.offset + int64(n), block.data[n:]}
			s.to = block.offset
		}
	}
}

// skip goes on to an offset without a look at what lies before it.
func (s *source) skip(to int64) {
	rest := source{spool: s.spool, stream: s.stream, from: s.to, to: to}
	s.skipped = append(s.skipped, rest.missing(nil)...)
	s.to = to
}

// block reads what is kept next, from s.to on. last says that nothing adjoins
// it: there the output ends for now, or bytes were dropped.
func (s *source) block() (p piece, last bool) {
	kept := within(s.spool.Kept(s.stream), s.to, s.arrived)
	if len(kept) == 0 {
		return piece{}, true
	}
	end := min(kept[0].End, kept[0].Start+grepChunk)
	pieces := readPieces(s.spool, s.stream, kept[0].Start, end)
	if len(pieces) == 0 {
		return piece{}, true
	}
	return pieces[0], pieces[0].end() < end || end == kept[0].End
}

// lineEnd is how many bytes the first line has, or the first part of one that
// is too long. whole is false when its end is not there.
func lineEnd(data []byte, longest int) (n int, whole bool) {
	if i := bytes.IndexByte(data[:min(len(data), longest)], '\n'); i >= 0 {
		return i + 1, true
	}
	if len(data) < longest {
		return len(data), false
	}
	return longest - halfRune(data[:longest]), true
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
	for _, o := range s.skipped {
		if o.Offset < x.next {
			x.omitted = append(x.omitted, o)
		}
	}
	rest := source{spool: s.spool, stream: s.stream, from: x.next, to: s.arrived}
	x.omitted = append(x.omitted, rest.missing(nil)...)
	return x
}
