package docker

import (
	"bytes"
	"io"
	"strings"
	"sync"
	"testing"

	"caisson/sandbox"
)

// inEachArchive runs a test where files go by the engine's archive calls: since
// the image has too little for scripts, and since a setting says so.
func inEachArchive(t *testing.T, test func(t *testing.T, s *Session)) {
	t.Run("auto", func(t *testing.T) { test(t, create(t, provider(t), specOf("caisson-test-contract:latest"))) })
	t.Run("archive", func(t *testing.T) {
		cfg := engine(t)
		cfg.FileTransfer = TransferArchive
		test(t, create(t, newProvider(t, cfg), specOf(busybox)))
	})
}

func wantNote(t *testing.T, s *Session, code string) {
	t.Helper()
	for _, n := range s.Info().Notes {
		if n.Code == code {
			return
		}
	}
	t.Errorf("no note %s: %v", code, s.Info().Notes)
}

func TestD19_ArchiveCallsWriteAndRead(t *testing.T) {
	inEachArchive(t, func(t *testing.T, s *Session) {
		content := noise(3 << 20)
		written := upload(t, s, sandbox.FileWrite{Path: "new/deep/run", Content: content, Mode: modeOf(0o755)}, fileOf("/workspace/new/b", "b"))
		if written[0].Size != 3<<20 || written[0].Path != "/workspace/new/deep/run" || written[0].SHA256 != sumOf(content) || written[1].Size != 1 {
			t.Errorf("%+v", written)
		}
		wantNote(t, s, "file_transfer_archive")
		if out := sh(t, s, "ls -ln new/deep new; echo more >>new/b; : >new/deep/mine; rm new/deep/mine"); strings.Count(out, " 1000 ") < 2 || !strings.Contains(out, "-rwxr-xr-x") {
			t.Errorf("%s", out)
		}
		upload(t, s, sandbox.FileWrite{Path: "new/deep/run", Content: []byte("x"), Append: true, ExpectedSize: sizeOf(3 << 20)})
		got := download(t, s, sandbox.FileRead{Path: "new/deep/run", Offset: -3})
		if want := append(bytes.Clone(content[len(content)-2:]), 'x'); !bytes.Equal(got.Content, want) || got.Mode != 0o755 || !got.EOF {
			t.Errorf("%+v", got)
		}
		_, err := s.WriteFiles(t.Context(), []sandbox.FileWrite{{Path: "new/b", Append: true, ExpectedSize: sizeOf(1)}})
		wantError(t, err, sandbox.KindInvalid, "expected_size", "6 bytes")
		archive := packed(t, tarFile("d/f", "f"), tarKind('2', "l", "d/f"), tarKind('1', "twin", "d/f"), tarFile(strings.Repeat("n", 200), "long"))
		if _, err := s.WriteArchive(t.Context(), "x/y", bytes.NewReader(archive)); err != nil {
			t.Fatal(err)
		}
		if out := sh(t, s, "cd x/y; cat l twin nnn*; : >d/mine; rm d/mine"); out != "fflong" {
			t.Errorf("%q", out)
		}
		tree := download(t, s, sandbox.FileRead{Path: "x"})
		if headers, contents := unpack(t, tree.Content); contents["y/d/f"] != "f" || headers["y/twin"].Linkname != "y/d/f" || len(headers) != 6 || tree.Skipped != 0 {
			t.Errorf("%d skipped, %v", tree.Skipped, headers)
		}
		entries, more, err := s.ReadDir(t.Context(), "x", true, 3)
		if err != nil || !more || len(entries) != 3 || entries[0].Path != "y" || entries[2].Path != "y/d/f" || entries[2].Size != 1 {
			t.Errorf("%+v, %v, %v", entries, more, err)
		}
	})
}

func TestAttackT37_ArchiveCallsStayInTheWorkspace(t *testing.T) {
	cfg := engine(t)
	cfg.FileTransfer = TransferArchive
	s := create(t, newProvider(t, cfg), specOf(busybox))
	sh(t, s, `ln -s /etc etc; ln -s /etc/passwd passwd; ln -s ../etc/new dangling; ln -s real in; mkfifo fifo; cat >plain </dev/null`)
	upload(t, s, fileOf("real/f", "inside"))
	for path, kind := range map[string]sandbox.Kind{
		"etc/x": sandbox.KindPathEscapes, "passwd": sandbox.KindPathEscapes, "dangling": sandbox.KindPathEscapes, "../etc/x": sandbox.KindPathEscapes,
		"/etc/x": sandbox.KindNotSupported, "/workspace/../etc/x": sandbox.KindNotSupported, "fifo": sandbox.KindInvalid, "real": sandbox.KindIsDirectory,
		"plain/x": sandbox.KindNotDirectory,
	} {
		_, err := s.archive().WriteFiles(t.Context(), []sandbox.FileWrite{fileOf("good", "good"), fileOf(path, "bad")})
		wantKind(t, err, kind)
		if path == "real" {
			continue
		}
		if _, err := s.archive().ReadFile(t.Context(), sandbox.FileRead{Path: path}); err == nil {
			t.Errorf("%s is read", path)
		}
	}
	for name, row := range refusedTars(t) {
		_, err := s.archive().WriteArchive(t.Context(), "d", bytes.NewReader(row.archive))
		if sandbox.KindOf(err) != row.kind {
			t.Errorf("%s: %v, want %v", name, err, row.kind)
		}
	}
	for name, kind := range map[string]sandbox.Kind{
		"etc/x": sandbox.KindPathEscapes, "passwd": sandbox.KindPathEscapes, "plain/x": sandbox.KindNotDirectory, "fifo": sandbox.KindInvalid, "real": sandbox.KindIsDirectory,
	} {
		_, err := s.archive().WriteArchive(t.Context(), ".", bytes.NewReader(packed(t, tarFile("good", "good"), tarFile(name, "bad"))))
		wantKind(t, err, kind)
	}
	if got := download(t, s, sandbox.FileRead{Path: "in/f"}); string(got.Content) != "inside" {
		t.Errorf("%q", got.Content)
	}
	if out := sh(t, s, "ls -A /workspace; ls /etc"); strings.Contains(out, "good") || strings.Contains(out, "\nx\n") || strings.Contains(out, "new") {
		t.Errorf("%s", out)
	}
}

// Transfers freeze the session one after another, and it goes on afterwards.
func TestD19_ArchiveCallsSideBySide(t *testing.T) {
	cfg := engine(t)
	cfg.FileTransfer = TransferArchive
	s := create(t, newProvider(t, cfg), specOf(busybox))
	var work sync.WaitGroup
	for _, name := range []string{"a", "b", "c", "d"} {
		work.Go(func() {
			if _, err := s.WriteFiles(t.Context(), []sandbox.FileWrite{fileOf(name, name)}); err != nil {
				t.Error(err)
			}
		})
	}
	work.Wait()
	if out := sh(t, s, "cat a b c d"); out != "abcd" {
		t.Errorf("%q", out)
	}
}

func TestD19_PiecesOfAStream(t *testing.T) {
	text := "one\ntwo\n" + strings.Repeat("x", 100_000) + "\nlast"
	for _, c := range []struct {
		read   sandbox.FileRead
		want   string
		offset int64
		eof    bool
	}{
		{sandbox.FileRead{Limit: 5}, "one\nt", 0, false},
		{sandbox.FileRead{Offset: 4, Limit: 3}, "two", 4, false},
		{sandbox.FileRead{Offset: -4, Limit: 10}, "last", 100_009, true},
		{sandbox.FileRead{Offset: 1 << 40, Limit: 10}, "", 1 << 40, true},
		{sandbox.FileRead{StartLine: 2, LineCount: 1, Limit: 10}, "two\n", 4, false},
		{sandbox.FileRead{StartLine: 4, LineCount: 9, Limit: 10}, "last", 100_009, true},
		{sandbox.FileRead{StartLine: 3, LineCount: 1, Limit: 10}, "xxxxxxxxxx", 8, false},
		{sandbox.FileRead{StartLine: 3, LineCount: 1, Limit: 200_000}, strings.Repeat("x", 100_000) + "\n", 8, false},
		{sandbox.FileRead{StartLine: 4, Limit: 10}, "last", 100_009, true},
		{sandbox.FileRead{StartLine: 9, Limit: 10}, "", 100_013, true},
	} {
		var got sandbox.FileContent
		err := cutOut(&got, int64(len(text)), io.MultiReader(strings.NewReader(text)), c.read)
		if err != nil || string(got.Content) != c.want || got.Offset != c.offset || got.EOF != c.eof || (got.SHA256 == sumOf([]byte(text))) != c.eof {
			t.Errorf("%+v: %+.80v, %v", c.read, got, err)
		}
	}
}
