package sandbox

import (
	"os"
)

// spoolStep is how much of the pool's total a lane takes at a time as its file
// grows.
const spoolStep = 1 << 20

// lane holds one stream of a spool. It grows line by line until its cap, or
// until the pool gives no more room; from then on the first half stays as the
// head and the second half is overwritten in a ring as the tail. limit is 0
// while the lane still grows; once it is set, byte n past the head sits at
// head + (n-head) % (limit-head).
type lane struct {
	file     *os.File
	total    int64
	limit    int64
	reserved int64 // of the pool's files
	memory   []byte
	budget   int64 // of the pool's memory
	memCap   int64
	fileCap  int64
	lost     bool // the storage broke: bytes are counted and not kept
}

func (l *lane) append(pool *Spools, p []byte) {
	for len(p) > 0 && !l.lost {
		n := l.room(pool, int64(len(p)))
		if err := l.store(l.total, p[:n]); err != nil {
			// A full or broken disk must not stop the drain: what is in the file
			// is given up, and counting goes on.
			l.abandon(pool)
		}
		l.total += n
		p = p[n:]
	}
	l.total += int64(len(p))
}

// room says how many of want bytes can be stored in one run at the lane's end,
// growing the storage where it may.
func (l *lane) room(pool *Spools, want int64) int64 {
	if l.limit == 0 {
		if free := l.capacity() - l.total; free > 0 {
			return min(want, free)
		}
		if l.grow(pool) {
			return min(want, l.capacity()-l.total)
		}
		l.limit = l.total
	}
	return min(want, l.limit-l.place(l.total))
}

// capacity is how many bytes the storage takes at its present size.
func (l *lane) capacity() int64 {
	if l.file == nil {
		return min(l.budget, l.memCap)
	}
	return min(l.reserved, l.fileCap)
}

// grow takes more memory, moves the lane from memory to a file, or lengthens
// the file.
func (l *lane) grow(pool *Spools) bool {
	if l.file == nil && l.budget < l.memCap && pool.takeMemory(&l.budget, l.memCap) {
		return true
	}
	if l.fileCap <= l.total || (l.file != nil && l.reserved >= l.fileCap) || !pool.reserve(spoolStep) {
		return false
	}
	l.reserved += spoolStep
	if l.file != nil {
		return true
	}
	file, err := pool.tempFile()
	if err == nil {
		if _, err = file.WriteAt(l.memory, 0); err == nil {
			l.file, l.memory = file, nil
			pool.returnMemory(&l.budget)
			return l.capacity() > l.total
		}
		_ = file.Close() // its content is still in memory
	}
	pool.release(l.reserved)
	l.reserved = 0
	return false
}

func (l *lane) head() int64 { return l.limit / 2 }

// place is where byte n of the stream is stored.
func (l *lane) place(n int64) int64 {
	if l.limit == 0 || n < l.head() {
		return n
	}
	return l.head() + (n-l.head())%(l.limit-l.head())
}

func (l *lane) store(n int64, p []byte) error {
	at := l.place(n)
	if l.file != nil {
		_, err := l.file.WriteAt(p, at)
		return err
	}
	if at == int64(len(l.memory)) {
		l.memory = append(l.memory, p...)
		return nil
	}
	copy(l.memory[at:], p)
	return nil
}

// abandon gives up what is stored; the stream is only counted from here on.
func (l *lane) abandon(pool *Spools) {
	_ = l.close(pool) // the file is broken already, and has no name
	l.lost = true
}

func (l *lane) kept() []Range {
	switch {
	case l.total == 0 || l.lost:
		return nil
	case l.limit == 0 || l.total <= l.limit:
		return []Range{{0, l.total}}
	}
	tail := Range{l.total - (l.limit - l.head()), l.total}
	if l.head() == 0 {
		return []Range{tail}
	}
	return []Range{{0, l.head()}, tail}
}

func (l *lane) read(offset int64, limit int) (Chunk, error) {
	for _, r := range l.kept() {
		if offset >= r.End {
			continue
		}
		from := max(offset, r.Start)
		data := make([]byte, min(int64(limit), r.End-from))
		return Chunk{from, data}, l.load(from, data)
	}
	return Chunk{Offset: l.total}, nil
}

// load fills p with the stream's bytes from n on, all of which are kept.
func (l *lane) load(n int64, p []byte) error {
	for len(p) > 0 {
		run := int64(len(p))
		at := l.place(n)
		if l.limit != 0 && n >= l.head() {
			run = min(run, l.limit-at)
		} else if l.limit != 0 {
			run = min(run, l.head()-n)
		}
		if l.file == nil {
			copy(p[:run], l.memory[at:])
		} else if _, err := l.file.ReadAt(p[:run], at); err != nil {
			return err
		}
		n, p = n+run, p[run:]
	}
	return nil
}

func (l *lane) close(pool *Spools) error {
	pool.release(l.reserved)
	pool.returnMemory(&l.budget)
	l.reserved, l.memory = 0, nil
	if l.file == nil {
		return nil
	}
	file := l.file
	l.file = nil
	return file.Close()
}
