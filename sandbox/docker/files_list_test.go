package docker

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"caisson/sandbox"
)

func (b *bench) list(path string, recursive bool, limit int) ([]sandbox.DirEntry, bool, error) {
	return b.ReadDir(context.Background(), path, recursive, limit)
}

// listWays are further ways to list: by the commands that an image lacks.
var listWays = map[string][]string{"GNU": nil, "no find": {"find"}, "no head": {"head"}}

func inEachListWay(t *testing.T, test func(b *bench)) {
	inEachShell(t, test)
	for name, missing := range listWays {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, localShells["dash"])
			b.without(missing...)
			test(b)
		})
	}
}

var oddNames = []string{
	"-rf", "new\nline", "end\n", "\x1b[2J", "\u202egnp.exe", "\xff\xfe", strings.Repeat("n", 255), "*", " ", "'\"$(x)`", "\\n", "%s", ".hidden", "..two",
}

func TestAttackT38_OddNamesAreListedExactly(t *testing.T) {
	inEachListWay(t, func(b *bench) {
		for _, name := range oddNames {
			b.put(name, name, 0o644)
		}
		b.mkdir("d")
		b.must(syscall.Mkfifo(b.at("fifo"), 0o600))
		b.link("to\nsomewhere\n", "link")
		b.link("/etc/shadow", "absolute")
		at := time.Date(2001, 2, 3, 4, 5, 6, 0, time.UTC)
		b.must(os.Chtimes(b.at("*"), at, at))
		entries, more, err := b.list("", false, 0)
		b.must(err)
		if more || len(entries) != len(oddNames)+4 {
			b.Errorf("%d entries, more %v", len(entries), more)
		}
		got := map[string]sandbox.DirEntry{}
		for _, e := range entries {
			got[e.Path] = e
		}
		for _, name := range oddNames {
			if e := got[name]; e.Type != "file" || e.Size != int64(len(name)) || e.Mode != 0o644 || e.ModifiedAt.IsZero() {
				b.Errorf("%q: %+v", name, e)
			}
		}
		if !got["*"].ModifiedAt.Equal(at) || got["d"].Type != "directory" || got["d"].Mode != 0o755 || got["fifo"].Type != "fifo" ||
			got["link"].LinkTarget != "to\nsomewhere\n" || got["absolute"].LinkTarget != "/etc/shadow" || got["link"].Type != "link" {
			b.Errorf("%+v", got)
		}
		if !slices.IsSortedFunc(entries, func(x, y sandbox.DirEntry) int { return strings.Compare(x.Path, y.Path) }) {
			b.Error("not by path")
		}
	})
}

func TestD19_ListingGoesDeepAndStops(t *testing.T) {
	inEachShell(t, func(b *bench) {
		for i := range 30 {
			b.put(fmt.Sprintf("a/%02d/f", i), "", 0o644)
		}
		b.link("..", "a/up")
		entries, more, err := b.list("a", true, 100)
		b.must(err)
		if more || len(entries) != 61 || entries[0].Path != "00" || entries[1].Path != "00/f" || entries[60].Path != "up" {
			b.Errorf("more %v, %d entries: %+v", more, len(entries), entries)
		}
		entries, more, err = b.list(b.at("a"), true, 3)
		b.must(err)
		if !more || len(entries) != 3 || entries[2].Path != "01" {
			b.Errorf("more %v: %+v", more, entries)
		}
		entries, more, err = b.list("a/00", true, 1)
		b.must(err)
		if more || len(entries) != 1 {
			b.Errorf("more %v: %+v", more, entries)
		}
		b.mkdir("empty")
		entries, more, err = b.list("empty", true, 1)
		b.must(err)
		if more || len(entries) != 0 {
			b.Errorf("more %v: %+v", more, entries)
		}
	})
}

func TestAPI07_ListingsThatAreRefused(t *testing.T) {
	inEachListWay(t, func(b *bench) {
		b.put("file", "x", 0o644)
		b.mkdir("shut")
		b.must(os.Chmod(b.at("shut"), 0o100))
		b.link("..", "up")
		for path, kind := range map[string]sandbox.Kind{
			"missing": sandbox.KindFileNotFound, "file": sandbox.KindNotDirectory, "file/x": sandbox.KindNotDirectory,
			"shut": sandbox.KindPermission, "up": sandbox.KindPathEscapes, "up/workspace/..": sandbox.KindPathEscapes, "..": sandbox.KindPathEscapes,
		} {
			_, _, err := b.list(path, false, 0)
			if sandbox.KindOf(err) != kind {
				b.Errorf("%q: %v, of kind %v, want %v", path, err, sandbox.KindOf(err), kind)
			}
		}
		_, _, err := b.list(".", false, -1)
		wantKind(b.T, err, sandbox.KindInvalid)
	})
	b := newBench(t, localShells["dash"])
	b.without("find")
	_, _, err := b.list(".", true, 0)
	wantKind(t, err, sandbox.KindImageUnusable)
}

func TestD19_CutListingIsNeverReturnedAsWhole(t *testing.T) {
	b := newBench(t, localShells["dash"])
	b.put("f", "", 0o644)
	b.put("g", "", 0o644)
	_, _, err := b.list("", false, 0)
	b.must(err)
	whole := b.shell.outBytes
	for _, cut := range []int{1, 2, 10, whole - 35, whole - 30, whole - 5, whole - 1} {
		b.shell.cutOut = cut
		_, _, err := b.list("", false, 0)
		wantKind(t, err, sandbox.KindUnavailable)
	}
}

// A listing holds what it returns and a piece of what comes, nothing else.
func TestAttackT23_ListingOfAMillionFilesIsBounded(t *testing.T) {
	l := &listing{trailer: "\nid 0 -\n", limit: 10, hold: newHoldOpen()}
	_, err := l.Write([]byte("L\n"))
	if err != nil {
		t.Fatal(err)
	}
	for i := 1_000_000; i > 0; i-- {
		if _, err := fmt.Fprintf(l, "f 644 0 1700000000.5\x00%07d\x00\x00", i); err != nil {
			t.Fatal(err)
		}
	}
	_, _ = l.Write([]byte("\nid 0 -\n"))
	got := l.sorted()
	if !l.whole || !l.more || len(got) != 10 || got[0].Path != "0000001" || got[9].Path != "0000010" || cap(l.pending) > 1<<20 {
		t.Errorf("whole %v, more %v, pending %d: %+v", l.whole, l.more, cap(l.pending), got)
	}
	if _, err := l.Write([]byte(strings.Repeat("x", 64<<10))); err == nil {
		t.Error("a name without end is taken")
	}
}
