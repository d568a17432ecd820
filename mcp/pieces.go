package mcp

import (
	"unicode/utf8"

	"caisson/sandbox"
)

// readPieces reads what is kept of [from, to). Bytes that were dropped, also
// while it reads, are simply not there: whoever counts what is missing sees it.
func readPieces(spool *sandbox.Spool, stream sandbox.Stream, from, to int64) []piece {
	var all []piece
	for from < to {
		chunk, err := spool.Read(stream, from, int(min(to-from, 1<<20)))
		if err != nil || len(chunk.Data) == 0 || chunk.Offset >= to {
			break
		}
		data := chunk.Data[:min(int64(len(chunk.Data)), to-chunk.Offset)]
		if n := len(all); n > 0 && all[n-1].end() == chunk.Offset {
			all[n-1].data = append(all[n-1].data, data...)
		} else {
			all = append(all, piece{chunk.Offset, data})
		}
		from = chunk.Offset + int64(len(data))
	}
	return all
}

// within cuts ranges to [from, to).
func within(ranges []sandbox.Range, from, to int64) []sandbox.Range {
	var cut []sandbox.Range
	for _, r := range ranges {
		r.Start, r.End = max(r.Start, from), min(r.End, to)
		if r.Start < r.End {
			cut = append(cut, r)
		}
	}
	return cut
}

func sizeOf(ranges []sandbox.Range) int64 {
	var n int64
	for _, r := range ranges {
		n += r.End - r.Start
	}
	return n
}

// front takes the first n characters, or bytes of what is binary.
func front(pieces []piece, n int64, binary bool) []piece {
	var taken []piece
	for _, p := range pieces {
		if n == 0 {
			break
		}
		size := int64(len(p.data))
		if binary {
			size = min(size, n)
			n -= size
		} else {
			size, n = runesFront(p.data, n)
		}
		if size > 0 {
			taken = append(taken, piece{p.offset, p.data[:size]})
		}
	}
	return taken
}

// back takes the last n characters, or bytes of what is binary.
func back(pieces []piece, n int64, binary bool) []piece {
	var taken []piece
	for i := len(pieces) - 1; i >= 0 && n > 0; i-- {
		p := pieces[i]
		size := int64(len(p.data))
		if binary {
			size = min(size, n)
			n -= size
		} else {
			size, n = runesBack(p.data, n)
		}
		if size > 0 {
			skip := int64(len(p.data)) - size
			taken = append([]piece{{p.offset + skip, p.data[skip:]}}, taken...)
		}
	}
	return taken
}

// runesFront is how many bytes the first n characters take, and how many
// characters are then still to be taken elsewhere.
func runesFront(p []byte, n int64) (size, left int64) {
	for n > 0 && size < int64(len(p)) {
		_, w := utf8.DecodeRune(p[size:])
		size += int64(w)
		n--
	}
	return size, n
}

func runesBack(p []byte, n int64) (size, left int64) {
	for n > 0 && size < int64(len(p)) {
		_, w := utf8.DecodeLastRune(p[:int64(len(p))-size])
		size += int64(w)
		n--
	}
	return size, n
}

// shares divides a budget of characters between two streams that need a and b:
// what one does not need goes to the other.
func shares(budget, a, b int64) (int64, int64) {
	half := budget / 2
	switch {
	case a+b <= budget:
		return a, b
	case a <= half:
		return a, budget - a
	case b <= half:
		return budget - b, b
	default:
		return budget - half, half
	}
}
