package mcp

import (
	"encoding/base64"
	"unicode/utf8"

	"caisson/sandbox"
)

// maxRune is how many bytes a character of UTF-8 may have.
const maxRune = utf8.UTFMax

// piece is a run of a stream's bytes that is shown.
type piece struct {
	offset int64
	data   []byte
}

func (p piece) end() int64 { return p.offset + int64(len(p.data)) }

// omission is a run of a stream's bytes that a result leaves out.
type omission struct {
	Stream      string `json:"stream" enum:"stdout,stderr" about:"Which output."`
	Offset      int64  `json:"offset" about:"Where in the stream the missing bytes begin."`
	Bytes       int64  `json:"bytes" about:"How many are missing."`
	Recoverable bool   `json:"recoverable" about:"Whether exec_output with an explicit offset can still read them."`
}

// excerpt is what a result shows of one stream: all of it, or its head and its
// tail.
type excerpt struct {
	stream  sandbox.Stream
	pieces  []piece
	binary  bool  // shown as base64: some of it is not UTF-8
	total   int64 // bytes that the command has printed
	next    int64 // where the next read begins
	omitted []omission
}

// content is the excerpt exactly, with nothing put where bytes are left out:
// omitted tells where that is.
func (x *excerpt) content() string {
	var all []byte
	for _, p := range x.pieces {
		all = append(all, p.data...)
	}
	if x.binary {
		return base64.StdEncoding.EncodeToString(all)
	}
	return string(all)
}

func (x *excerpt) encoding() string {
	if x.binary {
		return encodingBase64
	}
	return encodingText
}

// source is one stream of a spool while an excerpt is taken from it.
type source struct {
	spool    *sandbox.Spool
	stream   sandbox.Stream
	from, to int64 // what is asked for; to is what had arrived
	ended    bool  // nothing more will come
	onwards  bool  // show what comes first, not head and tail
	pieces   []piece
	partial  bool // pieces are only the ends of what there is
	binary   bool
	arrived  int64      // after grep: where what can be looked at ends
	skipped  []omission // by grep: what it could not look at
}

// newSource reads what an excerpt of at most limit characters can need. An
// offset inside a character is moved back to its beginning, since a character
// is never cut.
func newSource(spool *sandbox.Spool, stream sandbox.Stream, from int64, onwards, ended bool, limit int64) *source {
	total := spool.Total(stream)
	if from < 0 {
		from = max(0, total+from)
	}
	s := &source{spool: spool, stream: stream, from: min(from, total), to: total, onwards: onwards, ended: ended}
	s.alignStart()
	s.read(maxRune*limit + 2*maxRune)
	s.judge()
	return s
}

func (s *source) alignStart() {
	back := min(maxRune-1, s.from)
	around := readPieces(s.spool, s.stream, s.from-back, min(s.from+maxRune, s.to))
	if len(around) != 1 || around[0].offset != s.from-back || around[0].end() <= s.from {
		return
	}
	for k := int64(1); k <= back; k++ {
		lead := around[0].data[back-k:]
		if !utf8.RuneStart(lead[0]) {
			continue
		}
		if r, size := utf8.DecodeRune(lead); r != utf8.RuneError && int64(size) > k {
			s.from -= k
		}
		return
	}
}

// read takes in at most limit bytes: the first ones, or the first and the last.
func (s *source) read(limit int64) {
	kept := within(s.spool.Kept(s.stream), s.from, s.to)
	if sizeOf(kept) <= limit {
		s.pieces = readPieces(s.spool, s.stream, s.from, s.to)
		return
	}
	s.partial = true
	head := limit / 2
	if s.onwards {
		head = limit
	}
	for _, r := range kept {
		n := min(head, r.End-r.Start)
		s.pieces = append(s.pieces, readPieces(s.spool, s.stream, r.Start, r.Start+n)...)
		if head -= n; head == 0 {
			break
		}
	}
	if s.onwards {
		return
	}
	var tail []piece
	rest := limit / 2
	for i := len(kept) - 1; i >= 0 && rest > 0; i-- {
		n := min(rest, kept[i].End-kept[i].Start)
		tail = append(readPieces(s.spool, s.stream, kept[i].End-n, kept[i].End), tail...)
		rest -= n
	}
	s.pieces = append(s.pieces, tail...)
}

// judge decides whether the stream is text. Halves of characters at the edges
// of what is missing, or at the end of what has arrived so far, do not count
// against it: they are left for the omission, or for the next read.
func (s *source) judge() {
	trimmed := make([]piece, len(s.pieces))
	for i, p := range s.pieces {
		if i > 0 {
			for n := 0; n < maxRune-1 && len(p.data) > 0 && !utf8.RuneStart(p.data[0]); n++ {
				p = piece{p.offset + 1, p.data[1:]}
			}
		}
		if i < len(s.pieces)-1 || p.end() < s.to || !s.ended {
			p.data = p.data[:len(p.data)-halfRune(p.data)]
		}
		if !utf8.Valid(p.data) {
			s.binary = true
			return
		}
		trimmed[i] = p
	}
	if n := len(trimmed); n > 0 && !s.ended && s.pieces[n-1].end() == s.to {
		s.to = trimmed[n-1].end() // the rest of the character is still to come
	}
	s.pieces = trimmed
}

// halfRune is how many bytes at the end of p are the beginning of a character
// whose rest is missing.
func halfRune(p []byte) int {
	for n := 1; n < maxRune && n <= len(p); n++ {
		if last := p[len(p)-n:]; utf8.RuneStart(last[0]) {
			if utf8.FullRune(last) {
				return 0
			}
			return n
		}
	}
	return 0
}

// chars is how many characters the whole would take in a result.
func (s *source) chars() int64 {
	var n int64
	for _, p := range s.pieces {
		if s.binary {
			n += int64(len(p.data))
		} else {
			n += int64(utf8.RuneCount(p.data))
		}
	}
	if s.binary {
		return (n + 2) / 3 * 4
	}
	return n
}

// take makes the excerpt of at most share characters.
func (s *source) take(share int64) *excerpt {
	x := &excerpt{stream: s.stream, binary: s.binary, total: s.spool.Total(s.stream), next: s.to, pieces: s.pieces}
	if s.partial || s.chars() > share {
		if s.binary {
			share = share / 4 * 3
		}
		head := (share + 1) / 2
		if s.onwards {
			head = share
		}
		x.pieces = append(front(s.pieces, head, s.binary), back(s.pieces, share-head, s.binary)...)
		if s.onwards {
			x.next = s.from
			if n := len(x.pieces); n > 0 {
				x.next = x.pieces[n-1].end()
			}
		}
	}
	x.omitted = s.missing(x.pieces)
	return x
}

// missing lists what lies in the asked range and is not shown.
func (s *source) missing(shown []piece) []omission {
	kept := s.spool.Kept(s.stream)
	var all []omission
	at := s.from
	gap := func(to int64) {
		for _, r := range within(kept, at, to) {
			all = s.omit(all, at, r.Start, false)
			all = s.omit(all, r.Start, r.End, true)
			at = r.End
		}
		all = s.omit(all, at, to, false)
	}
	for _, p := range shown {
		gap(p.offset)
		at = p.end()
	}
	gap(s.to)
	return all
}

func (s *source) omit(all []omission, from, to int64, recoverable bool) []omission {
	if to <= from {
		return all
	}
	return append(all, omission{s.stream.String(), from, to - from, recoverable})
}

// needs is how many characters the source could fill.
func (s *source) needs() int64 {
	if s.partial {
		return 1 << 40 // more than any budget
	}
	return s.chars()
}
