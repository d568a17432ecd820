package docker

import (
	"container/heap"
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"

	"caisson/sandbox"
)

const (
	opList      = "list a directory"
	listDefault = 1000
	listMax     = 100_000
	// listBytes is where a listing is cut in the session, so that a million
	// files cost neither the link nor our memory much.
	listBytes = 16 << 20
)

// ReadDir lists a directory by path (sandbox.Session); an empty path is the
// workspace. Of a directory so large that its listing is cut, the entries are
// the first by path among those that were seen.
func (t fileTools) ReadDir(ctx context.Context, dir string, recursive bool, limit int) ([]sandbox.DirEntry, bool, error) {
	if limit < 0 || limit > listMax {
		return nil, false, sandbox.Invalid("limit", "limit is 1 to %d entries", listMax)
	}
	if limit == 0 {
		limit = listDefault
	}
	if dir == "" {
		dir = "."
	}
	at, err := t.place(dir)
	if err != nil {
		return nil, false, err
	}
	ctx, cancel := context.WithTimeout(ctx, transferLimit)
	defer cancel()
	depth := "one"
	if recursive {
		depth = "all"
	}
	id := transferID()
	out := &listing{trailer: "\n" + id + " 0 -\n", limit: limit, hold: newHoldOpen()}
	words := &bounded{max: wordsMax}
	argv := fileArgv(listScript(), id, t.root, at.anchor, at.rel, depth, strconv.Itoa(listBytes))
	code, err := t.run.pipe(ctx, argv, out.hold, out, words)
	switch {
	case err != nil:
		return nil, false, err
	case out.report != nil || code != 0:
		return nil, false, about(scriptFailure(opList, string(out.report), words.String(), code), dir)
	case !out.whole:
		return nil, false, errCut(opList)
	case out.bad != nil:
		return nil, false, sandbox.Errorf(opList, sandbox.KindInternal, "the session's listing is not understood").Because(out.bad)
	}
	return out.sorted(), out.more, nil
}

// listing reads what the list script prints, as it comes, and keeps the first
// entries by path: its memory is bounded by them, whatever is listed.
type listing struct {
	trailer string
	limit   int
	hold    *holdOpen

	pending []byte
	started bool
	report  []byte // not nil: the script failed
	fields  []string
	kept    entryHeap
	seen    int // bytes
	more    bool
	whole   bool
	bad     error
}

var errListing = errors.New("an entry without end")

func (l *listing) Write(p []byte) (int, error) {
	l.seen += len(p)
	l.pending = append(l.pending, p...)
	if !l.started && len(l.pending) >= 2 {
		l.started = true
		if string(l.pending[:2]) != "L\n" {
			l.report = []byte{}
		} else {
			l.pending = l.pending[2:]
		}
	}
	if l.report != nil {
		l.report = append(l.report, l.pending...)
		l.pending = nil
		l.hold.release()
		if len(l.report) > reportMax {
			return 0, errListing
		}
		return len(p), nil
	}
	rest := string(l.pending)
	for {
		field, after, ok := strings.Cut(rest, "\x00")
		if !ok {
			break
		}
		rest = after
		if l.fields = append(l.fields, field); len(l.fields) == 3 {
			l.add()
		}
	}
	l.pending = append(l.pending[:0], rest...)
	if strings.HasSuffix(rest, l.trailer) {
		l.whole = true
		// An entry that was cut, or a listing that is as long as it may be.
		l.more = l.more || len(l.fields) > 0 || len(rest) > len(l.trailer) || l.seen-2-len(l.trailer) >= listBytes
		l.hold.release()
	}
	if len(rest) > 2*pathLimit+frameSlack {
		return 0, errListing
	}
	return len(p), nil
}

func (l *listing) add() {
	entry, err := parseEntry(l.fields)
	l.fields = l.fields[:0]
	if err != nil {
		l.bad = err
		return
	}
	l.take(entry)
}

// take keeps an entry if it is among the first by path.
func (l *listing) take(entry sandbox.DirEntry) {
	if len(l.kept) < l.limit {
		heap.Push(&l.kept, entry)
		return
	}
	l.more = true
	if entry.Path < l.kept[0].Path {
		l.kept[0] = entry
		heap.Fix(&l.kept, 0)
	}
}

func (l *listing) sorted() []sandbox.DirEntry {
	slices.SortFunc(l.kept, func(a, b sandbox.DirEntry) int { return strings.Compare(a.Path, b.Path) })
	return l.kept
}

// entryHeap has the last entry by path on top.
type entryHeap []sandbox.DirEntry

func (h entryHeap) Len() int           { return len(h) }
func (h entryHeap) Less(i, j int) bool { return h[i].Path > h[j].Path }
func (h entryHeap) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }
func (h *entryHeap) Push(x any)        { *h = append(*h, x.(sandbox.DirEntry)) }

func (h *entryHeap) Pop() any {
	old := *h
	last := old[len(old)-1]
	*h = old[:len(old)-1]
	return last
}
