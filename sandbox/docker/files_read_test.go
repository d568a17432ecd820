package docker

import (
	"bytes"
	"context"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"caisson/sandbox"
)

func (b *bench) read(r sandbox.FileRead) (sandbox.FileContent, error) {
	return b.ReadFile(context.Background(), r)
}

func TestBugFS05_EveryByteComesBackExactly(t *testing.T) {
	inEachShell(t, func(b *bench) {
		all := make([]byte, 256)
		for i := range all {
			all[i] = byte(i)
		}
		for _, content := range [][]byte{all, {}, []byte("\n"), []byte("no end"), []byte("\n\nE denied 0 \n"), noise(3 << 20)} {
			b.put("f", string(content), 0o640)
			got, err := b.read(sandbox.FileRead{Path: "f"})
			b.must(err)
			if !bytes.Equal(got.Content, content) || !got.EOF || got.Size != int64(len(content)) || got.SHA256 != sumOf(content) ||
				got.Mode != 0o640 || got.Path != b.at("f") || got.Dir {
				b.Errorf("of %d bytes came %d: %+.100v", len(content), len(got.Content), got)
			}
			_, err = b.write(sandbox.FileWrite{Path: "g", Content: got.Content})
			b.must(err)
			b.want("g", string(content))
		}
	})
}

func TestD19_PiecesOfAFile(t *testing.T) {
	inEachShell(t, testPieces)
	for name, missing := range map[string][]string{
		"no dd": {"dd"}, "no dd and stat": {"dd", "stat"}, "no stat": {"stat"}, "no head": {"head", "tail", "wc"},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, localShells["dash"])
			b.without(missing...)
			testPieces(b)
		})
	}
}

func testPieces(b *bench) {
	content := noise(300_001)
	b.put("-f\n", string(content), 0o751|fs.ModeSetuid)
	size := int64(len(content))
	for _, r := range []sandbox.FileRead{
		{Offset: 0, Limit: 1},
		{Offset: 1, Limit: 65_535},
		{Offset: 65_535, Limit: 2},
		{Offset: 65_536, Limit: 65_536},
		{Offset: 299_000, Limit: 5000},
		{Offset: 299_000, Limit: 1001},
		{Offset: -1, Limit: 10},
		{Offset: -1000, Limit: 10},
		{Offset: -9_999_999, Limit: 10},
		{Offset: size, Limit: 10},
		{Offset: size + 100_000, Limit: 10},
		{Offset: 3},
	} {
		r.Path = "-f\n"
		got, err := b.read(r)
		b.must(err)
		from := r.Offset
		if from < 0 {
			from = max(0, size+from)
		}
		to := size
		if r.Limit > 0 {
			to = min(size, from+r.Limit)
		}
		want := content[min(from, size):max(to, min(from, size))]
		if !bytes.Equal(got.Content, want) || got.Offset != from || got.EOF != (to == size) || got.Size != size {
			b.Errorf("%+v: %d bytes from %d, EOF %v; want %d from %d", r, len(got.Content), got.Offset, got.EOF, len(want), from)
		}
		if wantSum := sumOf(content); got.EOF && from < size && got.SHA256 != wantSum || !got.EOF && got.SHA256 != "" {
			b.Errorf("%+v: sum %q", r, got.SHA256)
		}
		if got.Mode != 0o751|fs.ModeSetuid {
			b.Errorf("mode %v", got.Mode)
		}
	}
}

func TestD19_LinesOfAFile(t *testing.T) {
	inEachShell(t, func(b *bench) {
		b.put("f", "one\ntwo\n\nfour\nlast", 0o644)
		for _, c := range []struct {
			from, count, limit int64
			want               string
			offset             int64
			eof                bool
		}{
			{1, 1, 100, "one\n", 0, false},
			{2, 2, 100, "two\n\n", 4, false},
			{4, 0, 100, "four\nlast", 9, true},
			{5, 9, 100, "last", 14, true},
			{0, 2, 6, "one\ntw", 0, false},
			{9, 2, 6, "", 18, true},
			{1, 0, 100, "one\ntwo\n\nfour\nlast", 0, true},
		} {
			got, err := b.read(sandbox.FileRead{Path: "f", StartLine: c.from, LineCount: c.count, Limit: c.limit, Offset: 77})
			b.must(err)
			if string(got.Content) != c.want || got.Offset != c.offset || got.EOF != c.eof || (got.SHA256 != "") != c.eof {
				b.Errorf("%+v: got %+v", c, got)
			}
		}
	})
}

func TestAPI09_ReadsThatAreRefused(t *testing.T) {
	inEachShell(t, func(b *bench) {
		b.put("file", "x", 0o644)
		b.put("closed", "x", 0o200)
		b.put("shut/f", "x", 0o644)
		b.must(os.Chmod(b.at("shut"), 0))
		b.Cleanup(func() { _ = os.Chmod(b.at("shut"), 0o755) })
		b.must(syscall.Mkfifo(b.at("fifo"), 0o666))
		socket, err := syscall.Socket(syscall.AF_UNIX, syscall.SOCK_STREAM, 0)
		b.must(err)
		b.Cleanup(func() { _ = syscall.Close(socket) })
		b.must(syscall.Bind(socket, &syscall.SockaddrUnix{Name: b.at("socket")}))
		b.link("../secret", "out")
		b.link("..", "up")
		b.link("nothing", "dangling")
		b.link("loop", "loop")
		b.link("/proc/self/fd/0", "stdin")
		start := time.Now()
		for path, kind := range map[string]sandbox.Kind{
			"":                       sandbox.KindInvalid,
			"missing":                sandbox.KindFileNotFound,
			"missing/deep":           sandbox.KindFileNotFound,
			"dangling":               sandbox.KindFileNotFound,
			"file/x":                 sandbox.KindNotDirectory,
			"closed":                 sandbox.KindPermission,
			"shut/f":                 sandbox.KindPermission,
			"shut":                   sandbox.KindPermission,
			"fifo":                   sandbox.KindInvalid,
			"socket":                 sandbox.KindInvalid,
			"loop":                   sandbox.KindInvalid,
			"stdin":                  sandbox.KindInvalid,
			strings.Repeat("a", 300): sandbox.KindInvalid,
			"out":                    sandbox.KindPathEscapes,
			"up":                     sandbox.KindPathEscapes,
			"up/secret":              sandbox.KindPathEscapes,
			"../secret":              sandbox.KindPathEscapes,
			"a/../../secret":         sandbox.KindPathEscapes,
			"/dev/zero":              sandbox.KindInvalid,
			"/dev/tty":               sandbox.KindInvalid,
			"/etc/shadow":            sandbox.KindPermission,
			"/proc/1/environ":        sandbox.KindPermission,
			"/proc/1/root/etc":       sandbox.KindPermission,
		} {
			_, err := b.read(sandbox.FileRead{Path: path})
			if sandbox.KindOf(err) != kind {
				b.Errorf("%.60q: %v, of kind %v, want %v", path, err, sandbox.KindOf(err), kind)
			}
		}
		if took := time.Since(start); took > 20*time.Second {
			b.Errorf("all together took %v", took)
		}
		for _, r := range []sandbox.FileRead{{Limit: -1}, {Limit: sandbox.FilePieceLimit + 1}, {StartLine: -1}, {LineCount: -1}} {
			r.Path = "file"
			_, err := b.read(r)
			wantKind(b.T, err, sandbox.KindInvalid)
		}
	})
}

func TestAPI07_ReadsThroughLinksThatStayInside(t *testing.T) {
	inEachShell(t, func(b *bench) {
		b.put("real/f", "content", 0o644)
		b.link("real", "dir")
		b.link(b.at("real/f"), "absolute")
		for _, path := range []string{"dir/f", "absolute", "real/../dir/f", b.at("dir/f"), "/" + b.at("absolute")} {
			got, err := b.read(sandbox.FileRead{Path: path})
			b.must(err)
			if string(got.Content) != "content" {
				b.Errorf("%s: %q", path, got.Content)
			}
		}
		got, err := b.read(sandbox.FileRead{Path: filepath.Join(b.dir, "secret")})
		b.must(err) // an absolute path is used as it is
		if string(got.Content) != "outside" {
			b.Errorf("%q", got.Content)
		}
	})
}

func TestD19_FilesOfProcHaveContent(t *testing.T) {
	inEachShell(t, func(b *bench) {
		want, err := os.ReadFile("/proc/filesystems")
		b.must(err)
		got, err := b.read(sandbox.FileRead{Path: "/proc/filesystems"})
		b.must(err)
		if !bytes.Equal(got.Content, want) || !got.EOF || got.Size != int64(len(want)) {
			b.Errorf("%+v", got)
		}
		got, err = b.read(sandbox.FileRead{Path: "/proc/filesystems", Offset: 5, Limit: 10})
		b.must(err)
		if !bytes.Equal(got.Content, want[5:15]) || got.EOF {
			b.Errorf("%+v", got)
		}
		got, err = b.read(sandbox.FileRead{Path: "/proc/filesystems", StartLine: 2, LineCount: 1})
		b.must(err)
		if line := strings.SplitAfter(string(want), "\n")[1]; string(got.Content) != line || got.EOF {
			b.Errorf("%+v", got)
		}
		_, err = b.read(sandbox.FileRead{Path: "/proc/self/mem", Limit: 10})
		if err == nil {
			b.Error("reading /proc/self/mem at 0 is a success")
		}
	})
}

func TestD19_CutDownloadIsNeverReturnedAsWhole(t *testing.T) {
	b := newBench(t, localShells["dash"])
	b.put("f", "content\n0123 0 -\n", 0o644)
	_, err := b.read(sandbox.FileRead{Path: "f"})
	b.must(err)
	whole := b.shell.outBytes
	for _, cut := range []int{1, 2, 12, 13, 14, whole - 50, whole - 31, whole - 30, whole - 29, whole - 6, whole - 5, whole - 2, whole - 1} {
		b.shell.cutOut = cut
		_, err := b.read(sandbox.FileRead{Path: "f"})
		wantKind(t, err, sandbox.KindUnavailable)
	}
	b.shell.cutOut = whole
	if _, err = b.read(sandbox.FileRead{Path: "f"}); err != nil {
		t.Errorf("the whole stream: %v", err)
	}
}

// The engine gives a stream 2 s after its process has ended, however slow the
// link: the process must not end before all has arrived.
func TestD27_ReadScriptWaitsUntilItsOutputHasArrived(t *testing.T) {
	inEachShell(t, func(b *bench) {
		b.put("f", "content", 0o644)
		for _, args := range [][]string{
			fileArgv(readScript(), "id", b.root, "workspace", "f", "bytes", "0", "0", "100", "100"),
			fileArgv(readScript(), "id", b.root, "workspace", "", "bytes", "0", "0", "100", "100000"),
			fileArgv(listScript(), "id", b.root, "workspace", "", "one", "100000"),
		} {
			arrived, release := make(chan struct{}), make(chan struct{})
			ended := make(chan struct{})
			go func() {
				defer close(ended)
				_, _ = b.shell.pipe(b.Context(), args, until{release}, &seen{want: "\nid 0 -\n", there: arrived}, io.Discard)
			}()
			<-arrived
			select {
			case <-ended:
				b.Errorf("%q has ended", args[4:])
			case <-time.After(200 * time.Millisecond):
			}
			close(release)
			<-ended
		}
	})
}

// seen says when a text has come.
type seen struct {
	got   []byte
	want  string
	there chan struct{}
}

func (s *seen) Write(p []byte) (int, error) {
	had := bytes.Contains(s.got, []byte(s.want))
	s.got = append(s.got, p...)
	if !had && bytes.Contains(s.got, []byte(s.want)) {
		close(s.there)
	}
	return len(p), nil
}

func TestAttackT23_HugeAndGrowingFilesAreReadInBounds(t *testing.T) {
	inEachShell(t, func(b *bench) {
		b.put("f", "", 0o644)
		b.must(os.Truncate(b.at("f"), 1<<40))
		start := time.Now()
		for _, offset := range []int64{0, 1<<39 + 5, -1 << 20} {
			got, err := b.read(sandbox.FileRead{Path: "f", Offset: offset, Limit: 1 << 20})
			b.must(err)
			if len(got.Content) != 1<<20 || got.Size != 1<<40 {
				b.Errorf("at %d: %d bytes of %d", offset, len(got.Content), got.Size)
			}
		}
		_, err := b.read(sandbox.FileRead{Path: "f", StartLine: 2, LineCount: 1})
		wantKind(b.T, err, sandbox.KindTooLarge)
		_, err = b.read(sandbox.FileRead{Path: "."})
		wantKind(b.T, err, sandbox.KindTooLarge)
		if took := time.Since(start); took > 10*time.Second {
			b.Errorf("took %v", took)
		}
	})
}

func TestAttackT23_OffsetsPastAnyFileAreEmptyPieces(t *testing.T) {
	inEachShell(t, func(b *bench) {
		b.put("three", "abc", 0o644)
		for _, offset := range []int64{3, 1 << 44, 1<<63 - 1} {
			got, err := b.ReadFile(t.Context(), sandbox.FileRead{Path: "three", Offset: offset})
			if err != nil || len(got.Content) != 0 || got.Size != 3 {
				b.Errorf("offset %d: %+v, %v", offset, got, err)
			}
		}
	})
}
